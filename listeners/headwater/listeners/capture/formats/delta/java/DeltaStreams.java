package headwater.capture;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;
import org.apache.spark.sql.delta.sources.DeltaSink;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** The tables that streaming queries read and write: which they are, and how they are partitioned. */
final class DeltaStreams {
    private DeltaStreams() { }

    static boolean describe(Object value, Json json) throws Exception {
        DeltaLog log = value instanceof DeltaSink ? written((DeltaSink) value) : null;
        if (value instanceof DataSource && ((DataSource) value).className().equalsIgnoreCase("delta")) log = read((DataSource) value);
        if (log == null) return false;
        Snapshot snapshot = log.unsafeVolatileSnapshot();
        if (snapshot != null && snapshot.version() >= 0) partitioning(PlanWriter.list(snapshot.metadata().partitionColumns()), json);
        json.key("delta").open().entry("path", log.dataPath().toString());
        if (snapshot != null && snapshot.version() >= 0) json.entry("generation", snapshot.metadata().id());
        json.close();
        return true;
    }

    /**
     * What this very micro-batch committed before: run again after a crash, the sink skips what it has already. Query and
     * batch stand in the commit, so this is exact without the hook too.
     */
    static void repeated(Statement statement, Json json) throws Exception {
        if (statement.stream == null && !statement.isPart || isNoted(statement)) return;
        Json found = new Json().openList();
        Object sink = statement.stream == null ? null : statement.stream.sink();
        if (sink instanceof DeltaSink) {
            DeltaCommitFiles.byApplication(written((DeltaSink) sink), statement.stream.id, statement.batch, found);
        } else if (statement.isPart) {
            idempotent(statement.plan, statement.query, found);
        }
        String text = found.closeList().toString();
        if (text.length() > 2) json.key("repeated").raw(text);
    }

    private static boolean isNoted(Statement statement) {
        for (int i = 0; i < statement.noted.size(); i++)
            if (((String) statement.noted.get(i)).startsWith("{\"hook\":\"delta\",\"did\":\"committed\"")) return true;
        return false;
    }

    /** A write within foreachBatch that says which transaction it is: `txnAppId` and `txnVersion`. */
    private static void idempotent(LogicalPlan plan, QueryExecution query, Json json) throws Exception {
        Map options = new TreeMap(String.CASE_INSENSITIVE_ORDER);
        DeltaLog log = null;
        scala.Product product = (scala.Product) plan;
        for (int i = 0; i < product.productArity(); i++) {
            Object argument = product.productElement(i);
            if (argument instanceof scala.collection.Map) options.putAll(ValueWriter.javaMap((scala.collection.Map) argument));
            if (argument instanceof DataSourceV2Relation && ((DataSourceV2Relation) argument).table() instanceof DeltaTableV2)
                log = ((DeltaTableV2) ((DataSourceV2Relation) argument).table()).deltaLog();
        }
        Object application = options.get("txnAppId");
        Object version = options.get("txnVersion");
        if (application == null || version == null) return;
        if (log == null && plan instanceof SaveIntoDataSourceCommand && options.get("path") != null)
            log = DeltaLog.forTable(query.sparkSession(), options.get("path").toString());
        if (log != null) DeltaCommitFiles.byApplication(log, application.toString(), Long.parseLong(version.toString()), json);
    }

    private static DeltaLog written(DeltaSink sink) throws Exception {
        SQLContext context = (SQLContext) LazyFields.value(sink, "sqlContext");
        return DeltaLog.forTable(context.sparkSession(), (Path) LazyFields.value(sink, "path"));
    }

    /** The log that the stream reads: it is in memory already. */
    private static DeltaLog read(DataSource source) {
        CatalogTable table = (CatalogTable) ScalaOptions.get(source.catalogTable());
        if (table != null) return DeltaLog.forTable(source.sparkSession(), table);
        Object path = ScalaOptions.get(source.options().get("path"));
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
