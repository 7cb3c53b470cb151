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
        Object table = Lazily.value(scan, "table");
        if (!(table instanceof Table)) return false;
        json.entry("scan", scan.getClass().getSimpleName());
        place((Table) table, json);
        asked(scan, json);
        Object snapshot = Lazily.value(scan, "snapshot");
        if (snapshot instanceof Snapshot) json.entry("pinned", ((Snapshot) snapshot).snapshotId());
        json.entry("planned", Lazily.value(scan, "tasks") != null || Lazily.value(scan, "taskGroups") != null);
        Object supplier = Lazily.value(scan, "scanReportSupplier");
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
    private static Long planned(Table table, Object scan, long reported) throws Exception {
        Snapshot told = table.snapshot(reported);
        Snapshot current = table.currentSnapshot();
        if (told == null || current == null || current.snapshotId() == reported) return Long.valueOf(reported);
        long youngest = youngest(Lazily.value(scan, "tasks"));
        if (youngest <= told.sequenceNumber()) return Long.valueOf(reported);
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
        json.entry("branch", (String) Lazily.value(scan, "branch")).entry("tag", (String) Lazily.value(scan, "tag"));
        json.entry("asked", (Long) Lazily.value(scan, "snapshotId"));
        json.entry("asOf", (Long) Lazily.value(scan, "asOfTimestamp"));
        json.entry("start", (Long) Lazily.value(scan, "startSnapshotId"));
        json.entry("end", (Long) Lazily.value(scan, "endSnapshotId"));
    }
}
