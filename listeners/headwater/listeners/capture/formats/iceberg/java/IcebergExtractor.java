package headwater.capture;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.source.SparkChangelogTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** What is known of Iceberg's tables, and of what was read and committed of them. */
public final class IcebergExtractor implements FormatExtractor, NestedPlanExtractor, ProcedureCallExtractor, RddExtractor, TableLoader {
    private static final String TABLES = "iceberg.tables";
    private static final String WRITES = "iceberg.writes";

    public String format() { return "iceberg"; }

    public boolean table(Object table, Json json) throws Exception {
        if (table instanceof SparkTable) described((SparkTable) table, json);
        else if (table instanceof SparkChangelogTable) changes((Table) ofChanges(table), json);
        else if (table instanceof RowLevelOperationTable) return table(((RowLevelOperationTable) table).table(), json);
        else return false;
        return true;
    }

    /** What was asked for is part of the shape; what the next commit changes never is. */
    private static void described(SparkTable spark, Json json) {
        Table table = spark.table();
        json.key("iceberg").open().entry("name", table.name()).entry("location", table.location());
        if (table instanceof BaseMetadataTable) {
            json.entry("metadata", table.getClass().getSimpleName());
        } else {
            json.entry("uuid", table.uuid().toString()).entry("schemaId", table.schema().schemaId());
            IcebergTables.layout(table.schema(), table.spec(), table.sortOrder(), json);
            json.entry("branch", spark.branch()).entry("snapshot", spark.snapshotId());
        }
        json.close();
    }

    /** Iceberg for Spark 4.1 has another name for it. */
    private static Object ofChanges(Object table) throws Exception {
        return LazyFields.has(table.getClass(), "table") ? LazyFields.value(table, "table") : LazyFields.value(table, "icebergTable");
    }

    private static void changes(Table table, Json json) {
        json.key("iceberg").open().entry("name", table.name()).entry("location", table.location());
        json.entry("uuid", table.uuid().toString()).entry("changes", true).close();
    }

    public boolean relation(Object relation, Json json) { return false; }

    public boolean read(Object leaf, Json json) throws Exception {
        Object scan = leaf instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) leaf).scan()
            : leaf instanceof BatchScanExec ? ((BatchScanExec) leaf).scan() : null;
        return scan != null && IcebergScans.read(scan, json);
    }

    /**
     * The table that tasks get, with its branch where they get that too: else nobody knows that it was main. Of which snapshot
     * the files are is nowhere in it; a table about a table shows nothing.
     */
    public boolean rdd(RDD rdd, Json json) throws Exception {
        List partitions = RddSources.inputPartitions(rdd);
        Object first = partitions.isEmpty() ? null : partitions.get(0);
        if (first == null || !first.getClass().getName().equals("org.apache.iceberg.spark.source.SparkInputPartition")) return false;
        if (!LazyFields.has(first.getClass(), "branch")) return false;
        Table table = (Table) ((Broadcast) LazyFields.value(first, "tableBroadcast")).value();
        if (table.getClass().getName().contains("MetadataTable")) return false;
        json.entry("name", table.name()).entry("location", table.location()).entry("uuid", table.uuid().toString());
        json.entry("branch", (String) LazyFields.value(first, "branch"));
        return true;
    }

    /** A table that the statement makes is known to the execution that fills it. */
    public void nested(Statement statement, QueryExecution query, Json json) throws Exception {
        Object plan = LazyFields.value(query, "analyzed");
        if (plan == null) return;
        Map tables = new LinkedHashMap();
        written((QueryPlan) plan, tables);
        if (tables.isEmpty()) return;
        kept(statement, TABLES).putAll(tables);
        writes(statement, query);
        json.key("iceberg").openList();
        for (Iterator i = tables.values().iterator(); i.hasNext();) {
            Table table = (Table) i.next();
            json.open();
            IcebergTables.state(table.name(), table, json);
            json.close();
        }
        json.closeList();
    }

    private static void writes(Statement statement, QueryExecution query) throws Exception {
        Object executed = LazyFields.value(query, "executedPlan");
        String id = executed == null ? null : IcebergSnapshots.idOfWrite(executed);
        if (id != null) kept(statement, WRITES).put(id, id);
    }

    private static Map kept(Statement statement, String what) {
        Map known = (Map) statement.kept.get(what);
        if (known == null) {
            known = new LinkedHashMap();
            statement.kept.put(what, known);
        }
        return known;
    }

    public void ended(Statement statement, Json json) throws Exception {
        List committed = IcebergState.HOOK.take(statement.executions);
        if (!IcebergState.HOOK.covers(statement)) json.entry("hooked", false);
        Map tables = kept(statement, TABLES);
        written(statement.plan, tables);
        boolean command = IcebergCommands.describe(statement, committed, json);
        if (statement.stream != null) IcebergStreams.describe(statement.stream, json);
        if (tables.isEmpty()) return;
        if (statement.stream != null && committed.isEmpty()) IcebergStreams.repeated(statement, tables.values(), json);
        if (!command) writes(statement, statement.query);
        IcebergSnapshots.describe(statement, committed, tables, kept(statement, WRITES), json);
    }

    public boolean watches(org.apache.spark.sql.connector.catalog.CatalogPlugin catalog) {
        return IcebergState.PROCEDURES.isInstalled && catalog instanceof org.apache.iceberg.spark.source.HasIcebergCatalog;
    }

    public boolean hasTablesOf(org.apache.spark.sql.connector.catalog.CatalogPlugin catalog) {
        return catalog instanceof org.apache.iceberg.spark.source.HasIcebergCatalog;
    }

    public org.apache.spark.sql.connector.catalog.Table load(
        org.apache.spark.sql.connector.catalog.CatalogPlugin catalog, org.apache.spark.sql.connector.catalog.Identifier identifier, Statement statement) throws Exception {
        Table found = IcebergCommands.load(catalog, identifier, statement);
        return found == null ? null : spark(found);
    }

    /** As Spark sees it, never read anew. Later versions of Iceberg's have no word for that. */
    private static SparkTable spark(Table table) throws Exception {
        try {
            return (SparkTable) SparkTable.class.getConstructor(new Class[] {Table.class, Boolean.TYPE}).newInstance(new Object[] {table, Boolean.FALSE});
        } catch (NoSuchMethodException e) {
            return (SparkTable) SparkTable.class.getConstructor(new Class[] {Table.class}).newInstance(new Object[] {table});
        }
    }

    public void called(Statement statement, ProcedureCall called, Json json) throws Exception {
        IcebergCalls.describe(statement, called, IcebergState.HOOK.take(statement.executions), json);
    }

    /** The tables that a command names, by their place: first the one that it writes. */
    private static void written(QueryPlan plan, Map tables) throws Exception {
        scala.Product product = (scala.Product) plan;
        if (!(plan instanceof org.apache.spark.sql.catalyst.plans.logical.Command) && !StreamQuery.isBatch((LogicalPlan) plan)) return;
        for (int i = 0; i < product.productArity(); i++) {
            Object argument = ScalaOptions.get(product.productElement(i));
            while (argument instanceof QueryPlan && argument.getClass().getSimpleName().equals("SubqueryAlias"))
                argument = ((QueryPlan) argument).children().head();
            Object table = argument instanceof DataSourceV2Relation ? ((DataSourceV2Relation) argument).table()
                : argument instanceof org.apache.spark.sql.catalyst.analysis.ResolvedTable
                ? ((org.apache.spark.sql.catalyst.analysis.ResolvedTable) argument).table()
                : argument instanceof SparkTable ? argument : null;
            if (table instanceof RowLevelOperationTable) table = ((RowLevelOperationTable) table).table();
            if (!(table instanceof SparkTable)) continue;
            Table iceberg = ((SparkTable) table).table();
            if (!(iceberg instanceof BaseMetadataTable) && !tables.containsKey(iceberg.location()))
                tables.put(iceberg.location(), iceberg);
        }
    }
}
