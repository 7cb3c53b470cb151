package headwater.capture;

import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.source.SparkTable;

/** Looks up the snapshots that a micro-batch's offsets name: how many files they added, and what they were made on. */
final class IcebergStreams {
    private static final Pattern SNAPSHOT = Pattern.compile("\"snapshot_id\":(-?[0-9]+)");
    /** At which offsets a stream may begin: before the first file of a snapshot. */
    private static final Pattern BEGINNING = Pattern.compile("\"position\":(0|-1)\\b");

    private IcebergStreams() { }

    static void describe(StreamQuery stream, Json json) throws Exception {
        boolean open = false;
        Set written = new TreeSet();
        for (int i = 0; i < stream.took.size(); i++) {
            Object[] took = (Object[]) stream.took.get(i);
            Object found = LazyFields.optional(took[0], "table");
            if (!(found instanceof SparkTable)) continue;
            if (!open) json.key("streamed").open();
            open = true;
            Table table = ((SparkTable) found).table();
            String start = (String) took[1];
            if (start == null || BEGINNING.matcher(start).find()) line(table, id(start), id((String) took[2]), written, json);
            snapshot(table, id(start), written, json);
            snapshot(table, id((String) took[2]), written, json);
        }
        if (open) json.close();
    }

    /**
     * What this very micro-batch committed before: run again after a crash, a sink that has it already commits nothing. It
     * names query and batch in each snapshot, so this is exact without the hook too.
     */
    static void repeated(Statement statement, Collection tables, Json json) {
        String batch = Long.toString(statement.batch);
        json.key("repeated").openList();
        for (Iterator i = tables.iterator(); i.hasNext();) {
            Table table = (Table) i.next();
            for (Iterator s = table.snapshots().iterator(); s.hasNext();) {
                Snapshot snapshot = (Snapshot) s.next();
                Map summary = snapshot.summary();
                boolean own = summary != null && statement.stream.id.equals(summary.get("spark.sql.streaming.queryId"));
                if (!own || !batch.equals(summary.get("spark.sql.streaming.epochId"))) continue;
                json.open();
                IcebergSnapshots.described(table, snapshot, json);
                json.close();
            }
        }
        json.closeList();
    }

    private static Long id(String offset) {
        Matcher found = SNAPSHOT.matcher(offset == null ? "" : offset);
        return found.find() ? Long.valueOf(found.group(1)) : null;
    }

    private static void snapshot(Table table, Long id, Set written, Json json) {
        Snapshot snapshot = id == null ? null : table.snapshot(id.longValue());
        if (snapshot == null || !written.add(id.toString())) return;
        Object added = snapshot.summary().get("added-data-files");
        json.key(id.toString()).open().entry("added", added == null ? 0L : Long.parseLong(added.toString()));
        json.entry("parent", snapshot.parentId()).close();
    }

    /** Walks from a snapshot back to one that a stream begins with, else as far as there are any, and says whether all only added rows. */
    private static void line(Table table, Long from, Long to, Set written, Json json) {
        String name = (from == null ? -1 : from.longValue()) + ".." + to;
        Snapshot at = to == null ? null : table.snapshot(to.longValue());
        if (at == null || !written.add(name)) return;
        boolean later = true;  // whether those after the first one only added rows
        for (Snapshot before = at; before != null; before = parent(table, at)) {
            later = later && (before == at || adds(at));
            at = before;
            if (from != null && at.snapshotId() == from.longValue()) break;
        }
        json.key(name).open().entry("first", Long.valueOf(at.snapshotId())).entry("before", at.parentId());
        json.entry("at", Long.valueOf(at.timestampMillis())).entry("adds", adds(at)).entry("adds_later", later).close();
    }

    private static Snapshot parent(Table table, Snapshot of) {
        return of.parentId() == null ? null : table.snapshot(of.parentId().longValue());
    }

    /** A compaction changes no row. */
    private static boolean adds(Snapshot snapshot) {
        return "append".equals(snapshot.operation()) || "replace".equals(snapshot.operation());
    }
}
