package headwater.capture;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.SortField;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.spark.SparkSchemaUtil;

/** How a table's metadata is written down. */
final class IcebergTables {
    private IcebergTables() { }

    /** Keys, partition fields and order, by the names of their columns. */
    static void layout(Schema schema, PartitionSpec spec, SortOrder order, Json json) {
        json.key("key").openList();
        for (Iterator i = new java.util.TreeSet(schema.identifierFieldNames()).iterator(); i.hasNext();) json.value((String) i.next());
        json.closeList().key("fields").openList();
        List fields = spec.fields();
        for (int i = 0; i < fields.size(); i++) {
            PartitionField field = (PartitionField) fields.get(i);
            if (!field.transform().isVoid()) by(schema, field.sourceId(), field.transform().toString(), json.open()).entry("name", field.name()).close();
        }
        json.closeList().key("order").openList();
        List parts = order.fields();
        for (int i = 0; i < parts.size(); i++) {
            SortField part = (SortField) parts.get(i);
            by(schema, part.sourceId(), part.transform().toString(), json.open());
            json.entry("descending", part.direction() == org.apache.iceberg.SortDirection.DESC);
            json.entry("nullsFirst", part.nullOrder() == org.apache.iceberg.NullOrder.NULLS_FIRST).close();
        }
        json.closeList();
    }

    private static Json by(Schema schema, int column, String transform, Json json) {
        return json.entry("transform", transform).entry("column", schema.findColumnName(column));
    }

    static TableMetadata metadata(Table table) {
        if (!(table instanceof HasTableOperations)) return null;
        TableOperations operations = ((HasTableOperations) table).operations();
        return operations.current();
    }

    static void state(String name, Table table, Json json) {
        TableMetadata metadata = table instanceof BaseTable ? metadata(table) : null;
        if (metadata != null) {
            state(name, metadata, json);
            return;
        }
        json.entry("name", name).entry("location", table.location()).entry("uuid", table.uuid().toString());
        description(table.schema(), table.spec(), table.sortOrder(), table.properties(), json);
    }

    static void state(String name, TableMetadata metadata, Json json) {
        json.entry("name", name).entry("location", metadata.location()).entry("uuid", metadata.uuid());
        json.entry("version", metadata.formatVersion()).entry("updated", metadata.lastUpdatedMillis()).entry("created", created(metadata));
        description(metadata.schema(), metadata.spec(), metadata.sortOrder(), metadata.properties(), json);
        if (metadata.currentSnapshot() != null) json.entry("current", metadata.currentSnapshot().snapshotId());
        json.key("refs").open();
        for (Iterator i = new TreeMap(metadata.refs()).entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            SnapshotRef ref = (SnapshotRef) entry.getValue();
            json.key((String) entry.getKey()).open().entry("snapshot", ref.snapshotId()).entry("tag", ref.isTag());
            json.entry("maxRefAgeMs", ref.maxRefAgeMs()).entry("maxSnapshotAgeMs", ref.maxSnapshotAgeMs());
            json.entry("minSnapshotsToKeep", ref.minSnapshotsToKeep()).close();
        }
        json.close();
    }

    private static void description(Schema schema, PartitionSpec spec, SortOrder order, Map properties, Json json) {
        json.entry("schemaId", schema.schemaId()).entry("schema", SparkSchemaUtil.convert(schema).json());
        layout(schema, spec, order, json);
        json.key("properties").open();
        for (Iterator i = new TreeMap(properties).entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            json.entry((String) entry.getKey(), (String) entry.getValue());
        }
        json.close();
    }

    /** When the first metadata that is still listed was written: of a table with a long history, not before that. */
    private static long created(TableMetadata metadata) {
        List log = metadata.previousFiles();
        return log.isEmpty() ? metadata.lastUpdatedMillis() : ((TableMetadata.MetadataLogEntry) log.get(0)).timestampMillis();
    }

    /**
     * Writes what a table was before and after what happened to it between two moments, and how many changes that were:
     * with more than one, nobody can tell whose is which.
     */
    static void change(Table table, long from, long to, Json json) throws Exception { change(table, null, from, to, json); }

    /** `known` is what is in memory of the table's earlier metadata: it needn't be read. */
    static void change(Table table, TableMetadata known, long from, long to, Json json) throws Exception {
        TableMetadata current = metadata(table);
        if (current == null) return;
        List log = current.previousFiles();
        int last = log.size();
        while (last >= 0 && timeOf(log, last, current) > to) last--;
        int before = last;
        while (before >= 0 && timeOf(log, before, current) >= from) before--;
        json.entry("changes", last - before);
        at("after", table, current, known, last, json);
        at("before", table, current, known, before, json);
    }

    private static void at(String key, Table table, TableMetadata current, TableMetadata known, int place, Json json) throws Exception {
        if (place < 0) return;
        List log = current.previousFiles();
        TableMetadata found = place == log.size() ? current : earlier(((HasTableOperations) table).operations(), known, log, place);
        if (found == null) return;
        json.key(key).open();
        state(table.name(), found, json);
        json.close();
    }

    /** The place behind the log's last is that of the current metadata. */
    private static long timeOf(List log, int at, TableMetadata current) {
        return at == log.size() ? current.lastUpdatedMillis() : ((TableMetadata.MetadataLogEntry) log.get(at)).timestampMillis();
    }

    /** Null where it is too large to be read. */
    private static TableMetadata earlier(TableOperations operations, TableMetadata known, List log, int at) throws Exception {
        String file = ((TableMetadata.MetadataLogEntry) log.get(at)).file();
        if (known != null && file.equals(known.metadataFileLocation())) return known;
        return IcebergMemory.isLarge(operations.io(), file) ? null : TableMetadataParser.read(operations.io(), file);
    }
}
