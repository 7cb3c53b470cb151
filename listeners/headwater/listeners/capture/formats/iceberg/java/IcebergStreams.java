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

/** Looks up the snapshots that a micro-batch's offsets name: how many files they added, what they were made on, and whether that was a table's first. */
final class IcebergStreams {
    private static final Pattern SNAPSHOT = Pattern.compile("\"snapshot_id\":(-?[0-9]+)");

    private IcebergStreams() { }

    static void describe(StreamQuery stream, Json json) throws Exception {
        boolean open = false;
        Set written = new TreeSet();
        for (int i = 0; i < stream.took.size(); i++) {
            Object[] took = (Object[]) stream.took.get(i);
            Object table = LazyFields.optional(took[0], "table");
            if (!(table instanceof SparkTable)) continue;
            if (!open) json.key("streamed").open();
            open = true;
            for (int side = 1; side < took.length; side++) snapshot(((SparkTable) table).table(), (String) took[side], written, json);
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

    private static void snapshot(Table table, String offset, Set written, Json json) {
        Matcher found = SNAPSHOT.matcher(offset == null ? "" : offset);
        if (!found.find() || !written.add(found.group(1))) return;
        Snapshot snapshot = table.snapshot(Long.parseLong(found.group(1)));
        if (snapshot == null) return;
        Object added = snapshot.summary().get("added-data-files");
        json.key(found.group(1)).open().entry("added", added == null ? 0L : Long.parseLong(added.toString()));
        Snapshot parent = snapshot.parentId() == null ? null : table.snapshot(snapshot.parentId().longValue());
        json.entry("parent", snapshot.parentId());
        json.entry("second", parent != null && parent.parentId() == null).close();
    }
}
