package headwater.capture;

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
    private static boolean registered;

    private IcebergHook() { }

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
        IcebergState.HOOK.installed();
    }

    public static synchronized void uninstall() throws Exception {
        IcebergState.HOOK.uninstalled();
    }

    private static void probe(Class owner, String[] methods) throws Exception {
        for (int i = 0; i < methods.length; i++) owner.getMethod(methods[i], new Class[0]);
    }

    static void noticed(Object event) {
        if (!IcebergState.HOOK.isInstalled || !CommitRecorder.listening()) return;
        try {
            String execution = CommitRecorder.execution();
            if (event instanceof CreateSnapshotEvent) onCommit((CreateSnapshotEvent) event, execution);
            else if (execution == null) return;
            else if (event instanceof ScanEvent) onScan((ScanEvent) event, execution);
            else ranged((IncrementalScanEvent) event, execution);
        } catch (Throwable e) {
            CaughtErrors.report("IcebergHook.noticed", e);
        }
    }

    private static void onCommit(CreateSnapshotEvent event, String execution) {
        Json json = startJson("committed", event.tableName()).entry("operation", event.operation());
        json.entry("snapshot", event.snapshotId()).entry("sequence", event.sequenceNumber());
        IcebergSnapshots.summary(event.summary(), json);
        if (execution == null) {
            CommitRecorder.noteOutsideExecution(new IcebergOutsideCommit(json.toString(), event.tableName(), event.snapshotId()));
            return;
        }
        CommitRecorder.noteFor(execution, json.close());
        IcebergState.HOOK.later(execution, Long.valueOf(event.snapshotId()));
    }

    private static void onScan(ScanEvent event, String execution) {
        CommitRecorder.noteFor(execution, startJson("scanned", event.tableName()).entry("snapshot", event.snapshotId()).close());
    }

    private static void ranged(IncrementalScanEvent event, String execution) {
        Json json = startJson("ranged", event.tableName()).entry("from", event.fromSnapshotId()).entry("to", event.toSnapshotId());
        CommitRecorder.noteFor(execution, json.entry("inclusive", event.isFromSnapshotInclusive()).close());
    }

    private static Json startJson(String what, String table) {
        return new Json().open().entry("hook", "iceberg").entry("action", what).entry("table", table);
    }
}
