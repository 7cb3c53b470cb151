package headwater.capture;

import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.sources.DeltaSink;
import org.apache.spark.sql.execution.datasources.DataSource;

/** The tables that streaming queries read and write: which they are, and how they are partitioned. */
final class DeltaStreams {
    private DeltaStreams() { }

    static boolean told(Object value, Json json) throws Exception {
        DeltaLog log = value instanceof DeltaSink ? written((DeltaSink) value) : null;
        if (value instanceof DataSource && ((DataSource) value).className().equalsIgnoreCase("delta")) log = read((DataSource) value);
        if (log == null) return false;
        Snapshot snapshot = log.unsafeVolatileSnapshot();
        if (snapshot != null && snapshot.version() >= 0) partitioning(PlanWriter.list(snapshot.metadata().partitionColumns()), json);
        json.key("delta").open().entry("path", log.dataPath().toString());
        if (snapshot != null && snapshot.version() >= 0) json.entry("life", snapshot.metadata().id());
        json.close();
        return true;
    }

    private static DeltaLog written(DeltaSink sink) throws Exception {
        SQLContext context = (SQLContext) Lazily.field(DeltaSink.class, "sqlContext").get(sink);
        return DeltaLog.forTable(context.sparkSession(), (Path) Lazily.field(DeltaSink.class, "path").get(sink));
    }

    /** The log that the stream reads: it is in memory already. */
    private static DeltaLog read(DataSource source) {
        CatalogTable table = (CatalogTable) Options.get(source.catalogTable());
        if (table != null) return DeltaLog.forTable(source.sparkSession(), table);
        Object path = Options.get(source.options().get("path"));
        return path == null ? null : DeltaLog.forTable(source.sparkSession(), path.toString());
    }

    private static void partitioning(List columns, Json json) {
        json.key("partitioning").openList();
        for (int i = 0; i < columns.size(); i++) {
            json.open().entry("transform", "identity").key("arguments").openList().open().key("column").openList();
            json.value((String) columns.get(i)).closeList().close().closeList().close();
        }
        json.closeList();
    }
}
