package headwater.capture;

import java.util.function.Supplier;
import org.apache.iceberg.BaseMetadataTable;
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
        if (report instanceof ScanReport) json.entry("read", ((ScanReport) report).snapshotId());
        return true;
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
