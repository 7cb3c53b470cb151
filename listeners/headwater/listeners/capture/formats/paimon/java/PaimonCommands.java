package headwater.capture;

import java.lang.reflect.Method;
import java.util.List;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.spark.SparkTable;
import org.apache.paimon.spark.catalog.WithPaimonCatalog;
import org.apache.paimon.spark.commands.DeleteFromPaimonTableCommand;
import org.apache.paimon.spark.commands.PaimonAnalyzeTableColumnCommand;
import org.apache.paimon.spark.commands.PaimonTruncateTableCommand;
import org.apache.paimon.spark.catalyst.plans.logical.PaimonCallCommand;
import org.apache.paimon.spark.procedure.Procedure;
import org.apache.paimon.table.FileStoreTable;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.DropPartitions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** Commands that commit without a writer, and so by a user that nobody has heard of: what was committed meanwhile. */
public final class PaimonCommands {
    private PaimonCommands() { }

    /** The command as it was run: the one in the analyzed plan may be another object. */
    public static Object executed(Statement statement) throws Exception {
        Object physical = LazyFields.value(statement.query, "executedPlan");
        return physical == null ? null : LazyFields.optional(physical, "cmd");
    }

    /** Commands whose plan doesn't have the table that they write. */
    public static boolean makesTable(LogicalPlan plan) {
        return plan instanceof V2CreateTableAsSelectPlan || plan instanceof SaveIntoDataSourceCommand;
    }

    public static void ended(Statement statement, boolean hasWriter, Json json) throws Exception {
        LogicalPlan plan = statement.plan;
        if (plan instanceof PaimonCallCommand) {
            called(statement, (PaimonCallCommand) plan, hasWriter, json);
        } else if (plan instanceof AlterTableCommand) {
            altered(((AlterTableCommand) plan).table(), json);
        } else if (!hasWriter) {
            FileStoreTable table = table(plan);
            if (table != null) within(statement, table, plan instanceof PaimonAnalyzeTableColumnCommand ? "ANALYZE" : "OVERWRITE", json);
            if (plan instanceof PaimonTruncateTableCommand) json.entry("catalog", catalog(statement, table));
        }
    }

    /** The schema that the table had when the statement was analysed, and the newest one that it has now. */
    private static void altered(LogicalPlan resolved, Json json) throws Exception {
        Object spark = resolved instanceof ResolvedTable ? ((ResolvedTable) resolved).table() : null;
        FileStoreTable table = spark instanceof SparkTable ? PaimonTables.data(((SparkTable) spark).getTable()) : null;
        if (table == null) return;
        java.util.Optional found = new SchemaManager(table.fileIO(), table.location(), PaimonTables.branch(table)).latest();
        if (!found.isPresent()) return;
        TableSchema newest = (TableSchema) found.get();
        json.key("altered").open().entry("before", table.schema().id()).entry("schema", newest.id());
        json.entry("at", newest.timeMillis()).close();
    }

    private static FileStoreTable table(LogicalPlan plan) throws Exception {
        if (plan instanceof PaimonTruncateTableCommand) return ((PaimonTruncateTableCommand) plan).table();
        if (plan instanceof DeleteFromPaimonTableCommand) return ((DeleteFromPaimonTableCommand) plan).table();
        if (plan instanceof PaimonAnalyzeTableColumnCommand) return ((PaimonAnalyzeTableColumnCommand) plan).table();
        if (!(plan instanceof DropPartitions) || !(((DropPartitions) plan).table() instanceof ResolvedTable)) return null;
        Object table = ((ResolvedTable) ((DropPartitions) plan).table()).table();
        return table instanceof SparkTable ? PaimonTables.data(((SparkTable) table).getTable()) : null;
    }

    /** The catalog that has this table under its name, which the command doesn't say: of those that are loaded. */
    private static String catalog(Statement statement, FileStoreTable table) {
        try {
            CatalogManager manager = statement.query.sparkSession().sessionState().catalogManager();
            int dot = table.fullName().lastIndexOf('.');
            Method named = Identifier.class.getMethod("of", new Class[] {String[].class, String.class});
            Object[] name = {new String[] {table.fullName().substring(0, dot)}, table.fullName().substring(dot + 1)};
            Identifier identifier = (Identifier) named.invoke(null, name);
            List names = PlanWriter.list(manager.listCatalogs(scala.Option.empty()));
            for (int i = 0; i < names.size(); i++) {
                CatalogPlugin catalog = manager.catalog((String) names.get(i));
                FileStoreTable there = catalog instanceof WithPaimonCatalog ? loaded(catalog, identifier) : null;
                if (there != null && there.location().equals(table.location())) return (String) names.get(i);
            }
        } catch (Throwable none) {
            CaughtErrors.reportUnforeseen("PaimonCommands.catalog", none);
            return null;
        }
        return null;
    }

    private static void within(Statement statement, FileStoreTable table, String kind, Json json) throws Exception {
        if (statement.started < 0) return;
        json.key("within").open();
        PaimonTables.place(table, json);
        PaimonSnapshots.within(statement.started, statement.ended, kind, table).write(json);
        json.close();
    }

    /** A procedure's table, and what can only be read from it afterwards. */
    private static void called(Statement statement, PaimonCallCommand call, boolean hasWriter, Json json) throws Exception {
        String name = call.procedure().getClass().getSimpleName();
        json.key("called").open();
        Identifier identifier = identifier(call.procedure(), argument(call, name.equals("MigrateFileProcedure") ? 2 : 0));
        if (identifier != null) {
            json.key("namespace").openList();
            for (int i = 0; i < identifier.namespace().length; i++) json.value(identifier.namespace()[i]);
            json.closeList().entry("name", identifier.name());
            FileStoreTable table = loaded(LazyFields.value(call.procedure(), "tableCatalog"), identifier);
            if (table != null) found(statement, name, call, hasWriter, table, json);
        }
        json.close();
    }

    private static void found(Statement statement, String name, PaimonCallCommand call, boolean hasWriter, FileStoreTable table, Json json)
        throws Exception {
        if (name.equals("CompactProcedure") || name.equals("ExpirePartitionsProcedure")) PaimonTables.create(table, json);
        else PaimonTables.described(table, json);
        if (name.equals("CreateTagProcedure") || name.equals("RollbackProcedure")) tag(table, argument(call, 1), json);
        else if (name.equals("CreateBranchProcedure")) tag(table, argument(call, 2), json);
        else if (name.equals("FastForwardProcedure")) heads(table, argument(call, 1), json);
        String kind = name.equals("CompactProcedure") ? "COMPACT" : name.equals("ExpirePartitionsProcedure") ? "OVERWRITE" : null;
        boolean noted = name.equals("CompactProcedure") && (hasWriter || PaimonWriter.isCovered(statement, table));
        if (kind != null && !noted) within(statement, table, kind, json);
    }

    private static void tag(FileStoreTable table, String tag, Json json) {
        if (tag != null && table.tagManager().tagExists(tag)) json.entry("tagged", table.tagManager().taggedSnapshot(tag).id());
    }

    private static void heads(FileStoreTable table, String branch, Json json) {
        json.entry("head", table.snapshotManager().latestSnapshotId());
        json.entry("branchHead", table.snapshotManager().copyWithBranch(branch).latestSnapshotId());
    }

    private static String argument(PaimonCallCommand call, int place) {
        if (call.args().size() <= place) return null;
        Object value = ((Expression) call.args().apply(place)).eval(null);
        return value == null ? null : value.toString();
    }

    /** As the procedure itself finds it. */
    private static Identifier identifier(Procedure procedure, String name) {
        try {
            Class base = procedure.getClass().getSuperclass();
            Method find = base.getDeclaredMethod("toIdentifier", new Class[] {String.class, String.class});
            find.setAccessible(true);
            return (Identifier) find.invoke(procedure, new Object[] {name, "table"});
        } catch (Throwable none) {
            CaughtErrors.reportUnforeseen("PaimonCommands.identifier", none);
            return null;
        }
    }

    private static FileStoreTable loaded(Object catalog, Identifier identifier) {
        try {
            Object table = ((TableCatalog) catalog).loadTable(identifier);
            return table instanceof SparkTable ? PaimonTables.data(((SparkTable) table).getTable()) : null;
        } catch (Throwable missing) {
            CaughtErrors.reportUnforeseen("PaimonCommands.loaded", missing);
            return null;
        }
    }
}
