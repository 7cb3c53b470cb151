package headwater.capture;

import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ContentScanTask;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.metrics.ScanReport;

/** Which snapshot a scan really planned. Its own report says so, whatever has become of the table since. */
final class IcebergScans {
    private static final String PACKAGE = "org.apache.iceberg.spark.source.";

    private IcebergScans() { }

    static boolean read(Object scan, Json json) throws Exception {
        if (!scan.getClass().getName().startsWith(PACKAGE)) return false;
        Object table = LazyFields.optional(scan, "table");
        if (!(table instanceof Table)) return false;
        json.entry("scan", scan.getClass().getSimpleName());
        place((Table) table, json);
        asked(scan, json);
        Object snapshot = LazyFields.optional(scan, "snapshot");
        if (snapshot instanceof Snapshot) json.entry("pinned", ((Snapshot) snapshot).snapshotId());
        json.entry("planned", LazyFields.optional(scan, "tasks") != null || LazyFields.optional(scan, "taskGroups") != null);
        Object supplier = LazyFields.optional(scan, "scanReportSupplier");
        Object report = supplier instanceof Supplier ? ((Supplier) supplier).get() : null;
        if (report instanceof ScanReport) {
            json.entry("read", planned((Table) table, scan, ((ScanReport) report).snapshotId()));
        }
        return true;
    }

    /**
     * Iceberg asks a table for its snapshot twice when it plans: to report it, and to read it. Where somebody committed
     * in between, files were planned that are younger than what was reported, and say of which snapshot they are.
     */
    private static Long planned(Table table, Object scan, long reportedId) throws Exception {
        Snapshot reported = table.snapshot(reportedId);
        Snapshot current = table.currentSnapshot();
        if (reported == null || current == null || current.snapshotId() == reportedId) return Long.valueOf(reportedId);
        long youngest = youngest(LazyFields.optional(scan, "tasks"));
        if (youngest <= reported.sequenceNumber()) return Long.valueOf(reportedId);
        for (Iterator i = table.snapshots().iterator(); i.hasNext();) {
            Snapshot each = (Snapshot) i.next();
            if (each.sequenceNumber() == youngest) return Long.valueOf(each.snapshotId());
        }
        return null;
    }

    /** When the last of these files was added. */
    private static long youngest(Object tasks) {
        long found = -1L;
        if (!(tasks instanceof List)) return found;
        for (Iterator i = ((List) tasks).iterator(); i.hasNext();) {
            Object task = i.next();
            if (task instanceof ContentScanTask) found = Math.max(found, added(((ContentScanTask) task).file()));
            if (!(task instanceof FileScanTask)) continue;
            for (Iterator j = ((FileScanTask) task).deletes().iterator(); j.hasNext();) {
                found = Math.max(found, added((ContentFile) j.next()));
            }
        }
        return found;
    }

    private static long added(ContentFile file) {
        Long number = file.fileSequenceNumber();
        return number == null ? -1L : number.longValue();
    }

    private static void place(Table table, Json json) {
        json.entry("table", table.name()).entry("location", table.location());
        if (table instanceof BaseMetadataTable) json.entry("metadata", table.getClass().getSimpleName());
    }

    private static void asked(Object scan, Json json) throws Exception {
        json.entry("branch", (String) LazyFields.optional(scan, "branch")).entry("tag", (String) LazyFields.optional(scan, "tag"));
        json.entry("asked", (Long) LazyFields.optional(scan, "snapshotId"));
        json.entry("asOf", (Long) LazyFields.optional(scan, "asOfTimestamp"));
        json.entry("start", (Long) LazyFields.optional(scan, "startSnapshotId"));
        json.entry("end", (Long) LazyFields.optional(scan, "endSnapshotId"));
    }
}
