package headwater.capture;

import java.util.List;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.delta.actions.CommitInfo;
import org.apache.spark.sql.delta.actions.Metadata;

/** How the actions of Delta's log are written down. All of it is in memory. */
final class DeltaActionWriter {
    private DeltaActionWriter() { }

    static void table(CatalogTable table, Json json) {
        if (table == null) return;
        json.key("table").open().entry("catalog", (String) ScalaOptions.get(table.identifier().catalog()));
        json.entry("database", (String) ScalaOptions.get(table.identifier().database())).entry("name", table.identifier().table());
        json.entry("type", table.tableType().name()).close();
    }

    static void metadata(String key, Metadata metadata, Json json) {
        if (metadata == null) return;
        json.key(key).open().entry("id", metadata.id()).entry("name", metadata.name()).entry("description", metadata.description());
        json.entry("schema", metadata.schemaString()).key("partitions").openList();
        List partitions = PlanWriter.list(metadata.partitionColumns());
        for (int i = 0; i < partitions.size(); i++) json.value((String) partitions.get(i));
        json.closeList().key("configuration");
        texts(metadata.configuration(), json);
        json.entry("created", (Long) ScalaOptions.get(metadata.createdTime())).close();
    }

    static void commitInfo(CommitInfo info, Json json) {
        if (info == null) return;
        json.entry("operation", info.operation());
        if (info.timestamp() != null) json.entry("timestamp", info.timestamp().getTime());
        json.key("parameters");
        texts(info.operationParameters(), json);
        Object metrics = ScalaOptions.get(info.operationMetrics());
        if (metrics != null) {
            json.key("metrics");
            texts((scala.collection.Map) metrics, json);
        }
    }

    static void texts(scala.collection.Map map, Json json) {
        json.open();
        java.util.TreeMap sorted = new java.util.TreeMap(ValueWriter.javaMap(map));
        for (java.util.Iterator i = sorted.entrySet().iterator(); i.hasNext();) {
            java.util.Map.Entry entry = (java.util.Map.Entry) i.next();
            json.entry((String) entry.getKey(), entry.getValue() == null ? null : entry.getValue().toString());
        }
        json.close();
    }
}
