package headwater.capture;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.HistoryEntry;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.execution.SparkPlan;

/** Finds the snapshots of a statement in its tables: their parents, schemas, and the branches they are on. */
final class IcebergSnapshots {
    /** Values of a summary that are longer are left out. */
    private static final int LONGEST = 200;
    private static final int FURTHEST = 1000;
    private static final int MOST_CANDIDATES = 50;
    private static final String PICKED = "source-snapshot-id";
    private static final String ANY_SCHEMA = "write.spark.accept-any-schema";

    private IcebergSnapshots() { }

    static void describe(Statement statement, List committed, Map tables, Map writes, Json json) throws Exception {
        json.entry("wapBranch", conf(statement, "spark.wap.branch")).entry("wapId", conf(statement, "spark.wap.id"));
        json.key("commits").openList();
        for (Iterator i = tables.values().iterator(); i.hasNext();) found((Table) i.next(), new HashSet(committed), json);
        json.closeList();
        if (statement.started < 0) return;
        evolved(statement, committed, tables, json);
        json.key("candidates").openList();
        if (!IcebergState.HOOK.covers(statement))
            for (Iterator i = tables.values().iterator(); i.hasNext();) candidates(statement, (Table) i.next(), writes.keySet(), json);
        json.closeList();
    }

    /** The session's own value, or the application's. */
    private static String conf(Statement statement, String key) {
        Object own = statement.confs.get(key);
        if (own != null) return (String) own;
        return statement.query.sparkSession().sparkContext().getConf().get(key, null);
    }

    private static void found(Table table, Set ids, Json json) {
        for (Iterator i = ids.iterator(); i.hasNext();) {
            Snapshot snapshot = table.snapshot(((Long) i.next()).longValue());
            if (snapshot == null) continue;
            json.open();
            described(table, snapshot, json);
            json.close();
        }
    }

    static void described(Table table, Snapshot snapshot, Json json) {
        json.entry("snapshot", snapshot.snapshotId()).entry("parent", snapshot.parentId());
        json.entry("operation", snapshot.operation()).entry("at", snapshot.timestampMillis());
        json.entry("location", table.location()).entry("uuid", table.uuid().toString());
        Integer schema = snapshot.schemaId();
        json.entry("schemaId", schema);
        summary(snapshot.summary(), json);
        line(table, snapshot, json);
        picked(table, snapshot, json);
    }

    private static void line(Table table, Snapshot snapshot, Json json) {
        if (wasMade(table, snapshot)) json.entry("main", true);
        else branches(table, snapshot.snapshotId(), json);
    }

    /** The snapshot whose changes this one has: Iceberg links them. Others' snapshots may have such a property, too. */
    private static void picked(Table table, Snapshot snapshot, Json json) {
        Snapshot source = snapshot(table, snapshot.summary() == null ? null : (String) snapshot.summary().get(PICKED));
        if (source == null) return;
        json.key("picked").open().entry("snapshot", source.snapshotId()).entry("parent", source.parentId());
        line(table, source, json);
        json.close();
    }

    private static Snapshot snapshot(Table table, String id) {
        try {
            return id == null ? null : table.snapshot(Long.parseLong(id));
        } catch (NumberFormatException foreign) {
            return null;
        }
    }

    /** Tables that take any schema: what they were before the statement and what they are now. */
    private static void evolved(Statement statement, List committed, Map tables, Json json) throws Exception {
        json.key("evolved").open();
        for (Iterator i = tables.values().iterator(); i.hasNext();) {
            Table table = (Table) i.next();
            if (!"true".equals(table.properties().get(ANY_SCHEMA)) || !(table instanceof BaseTable)) continue;
            Schema schema = schemaOf(table, committed);
            json.key(table.location()).open().entry("schemaId", schema.schemaId());
            json.entry("schema", SparkSchemaUtil.convert(schema).json());
            IcebergTables.change(table, planned(statement), statement.ended, json);
            json.close();
        }
        json.close();
    }

    /** When planning began, in which a write's schema is merged: a statement counts as started when it is planned. */
    private static long planned(Statement statement) {
        Object phase = ValueWriter.javaMap(statement.query.tracker().phases()).get("optimization");
        if (!(phase instanceof QueryPlanningTracker.PhaseSummary)) return statement.started;
        return Math.min(statement.started, ((QueryPlanningTracker.PhaseSummary) phase).startTimeMs());
    }

    /** The schema of what was committed: the table's own may have changed since. */
    private static Schema schemaOf(Table table, List committed) {
        for (int i = 0; i < committed.size(); i++) {
            Snapshot snapshot = table.snapshot(((Long) committed.get(i)).longValue());
            Object schema = snapshot == null ? null : table.schemas().get(snapshot.schemaId());
            if (schema != null) return (Schema) schema;
        }
        return table.schema();
    }

    /** Whether it became main's in the commit that made it: later moves of main have later times. */
    private static boolean wasMade(Table table, Snapshot snapshot) {
        List history = table.history();
        for (int i = history.size() - 1; i >= 0; i--) {
            HistoryEntry entry = (HistoryEntry) history.get(i);
            if (entry.timestampMillis() < snapshot.timestampMillis()) return false;
            if (entry.snapshotId() == snapshot.snapshotId()) return entry.timestampMillis() == snapshot.timestampMillis();
        }
        return false;
    }

    /** Branches that it is on. */
    private static void branches(Table table, long id, Json json) {
        json.key("branches").openList();
        for (Iterator i = new TreeMap(table.refs()).entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            SnapshotRef ref = (SnapshotRef) entry.getValue();
            if (ref.isBranch() && leads(table, ref.snapshotId(), id)) json.value((String) entry.getKey());
        }
        json.closeList();
    }

    private static boolean leads(Table table, long from, long to) {
        Snapshot at = table.snapshot(from);
        for (int i = 0; i < FURTHEST && at != null; i++) {
            if (at.snapshotId() == to) return true;
            if (at.parentId() == null) return false;
            at = table.snapshot(at.parentId().longValue());
        }
        return false;
    }

    /** What this application committed to a table while the statement ran, and whether the write's own files are in it. */
    private static void candidates(Statement statement, Table table, Set writes, Json json) throws Exception {
        String application = statement.query.sparkSession().sparkContext().applicationId();
        List found = new ArrayList();
        for (Iterator i = table.snapshots().iterator(); i.hasNext();) {
            Snapshot snapshot = (Snapshot) i.next();
            boolean meanwhile = snapshot.timestampMillis() >= statement.started && snapshot.timestampMillis() <= statement.ended;
            if (meanwhile && application.equals(snapshot.summary().get("spark.app.id"))) found.add(snapshot);
        }
        for (int i = 0; i < found.size() && i < MOST_CANDIDATES; i++) {
            Snapshot snapshot = (Snapshot) found.get(i);
            json.open();
            described(table, snapshot, json);
            Boolean own = holds(table, snapshot, writes);
            if (own != null) json.entry("own", own.booleanValue());
            json.close();
        }
    }

    /** A write gives its files names that hold its own id: none where it added no file. */
    private static Boolean holds(Table table, Snapshot snapshot, Set writes) {
        Iterator files = snapshot.addedDataFiles(table.io()).iterator();
        if (!files.hasNext()) files = snapshot.addedDeleteFiles(table.io()).iterator();
        if (!files.hasNext() || writes.isEmpty()) return null;
        String path = ((ContentFile) files.next()).location();
        for (Iterator i = writes.iterator(); i.hasNext();) if (path.contains((String) i.next())) return Boolean.TRUE;
        return Boolean.FALSE;
    }

    /** The id of the write that a command's topmost operator does; null where it is no write of Iceberg's. */
    static String idOfWrite(Object physical) throws Exception {
        Object write = physical instanceof SparkPlan ? LazyFields.optional(physical, "write") : null;
        return write == null || !write.getClass().getName().startsWith("org.apache.iceberg.") ? null : (String) LazyFields.optional(write, "queryId");
    }

    /** Without what is recorded of single partitions, of which there may be many. */
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
