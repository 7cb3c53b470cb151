package headwater.capture;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.events.CreateSnapshotEvent;
import org.apache.iceberg.events.IncrementalScanEvent;
import org.apache.iceberg.events.Listener;
import org.apache.iceberg.events.Listeners;
import org.apache.iceberg.events.ScanEvent;

/**
 * Notes each snapshot that a thread commits, and each that it plans a scan of.
 *
 * Iceberg's registry knows no removal: what is registered stays, once for the JVM, and does nothing while nobody listens.
 */
public final class IcebergHook {
    private static final int LONGEST = 200;
    private static boolean registered;
    private static volatile boolean active;
    /** By execution: snapshots that were committed, which the eye finds in the tables. */
    private static final Pending PENDING = new Pending(10000);

    private IcebergHook() { }

    public static boolean isActive() { return active; }

    public static synchronized void install() throws Exception {
        if (!registered) {
            probe(CreateSnapshotEvent.class, new String[] {"tableName", "operation", "snapshotId", "sequenceNumber", "summary"});
            probe(ScanEvent.class, new String[] {"tableName", "snapshotId"});
            probe(IncrementalScanEvent.class, new String[] {"tableName", "fromSnapshotId", "toSnapshotId", "isFromSnapshotInclusive"});
            Listener listener = new Listener() { public void notify(Object event) { noticed(event); } };
            Listeners.register(listener, CreateSnapshotEvent.class);
            Listeners.register(listener, ScanEvent.class);
            Listeners.register(listener, IncrementalScanEvent.class);
            registered = true;
        }
        active = true;
        IcebergProcedures.install();
    }

    public static synchronized void uninstall() throws Exception {
        active = false;
        PENDING.clear();
        IcebergProcedures.uninstall();
    }

    /** Takes the ids of what these executions committed. */
    static List committed(List executions) { return PENDING.take(executions); }

    private static void probe(Class owner, String[] methods) throws Exception {
        for (int i = 0; i < methods.length; i++) owner.getMethod(methods[i], new Class[0]);
    }

    static void noticed(Object event) {
        if (!active || !Facts.listening()) return;
        try {
            String execution = Facts.execution();
            if (event instanceof CreateSnapshotEvent) committed((CreateSnapshotEvent) event, execution);
            else if (execution == null) return;
            else if (event instanceof ScanEvent) scanned((ScanEvent) event, execution);
            else ranged((IncrementalScanEvent) event, execution);
        } catch (Throwable e) {
            Facts.FAILED.incrementAndGet();
        }
    }

    private static void committed(CreateSnapshotEvent event, String execution) {
        Json json = begun("committed", event.tableName()).entry("operation", event.operation());
        json.entry("snapshot", event.snapshotId()).entry("sequence", event.sequenceNumber());
        summary(event.summary(), json);
        if (execution == null) {
            Facts.noteLoose(new IcebergLoose(json.toString(), event.tableName(), event.snapshotId()));
            return;
        }
        Facts.noteFor(execution, json.close());
        PENDING.add(execution, Long.valueOf(event.snapshotId()));
    }

    private static void scanned(ScanEvent event, String execution) {
        Facts.noteFor(execution, begun("scanned", event.tableName()).entry("snapshot", event.snapshotId()).close());
    }

    private static void ranged(IncrementalScanEvent event, String execution) {
        Json json = begun("ranged", event.tableName()).entry("from", event.fromSnapshotId()).entry("to", event.toSnapshotId());
        Facts.noteFor(execution, json.entry("inclusive", event.isFromSnapshotInclusive()).close());
    }

    private static Json begun(String what, String table) {
        return new Json().open().entry("hook", "iceberg").entry("did", what).entry("table", table);
    }

    /** Without what is told of single partitions, of which there may be many. */
    static void summary(Map summary, Json json) {
        if (summary == null) return;
        json.key("summary").open();
        for (Iterator i = new TreeMap(summary).entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            String key = (String) entry.getKey();
            String value = (String) entry.getValue();
            if (!key.startsWith("partitions.") && value != null && value.length() < LONGEST) json.entry(key, value);
        }
        json.close();
    }
}
