package headwater.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.CatalogDatabase;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/**
 * Looks up, when DDL has ended, what its plan doesn't tell: where a managed table is, what a database has become.
 *
 * Spark's own catalog is asked for tables as it keeps them, whatever wraps it; others by their own interface. What was
 * found may be later than the statement: whoever reads it has to see whether it fits.
 */
public final class SessionExtractor implements FormatExtractor {
    private static final String SESSION = "spark_catalog";
    private static final List MAKING =
        Arrays.asList(new Object[] {"CreateTable", "ReplaceTable", "CreateTableAsSelect", "ReplaceTableAsSelect"});
    /** Commands that something about Spark's own catalog is evidence for. */
    private static final String[] CHANGING = {"Create", "Replace", "Drop", "Alter", "SaveAsV1Table"};
    private static final List OF_NAMESPACES = Arrays.asList(
        new Object[] {"CreateNamespace", "SetNamespaceProperties", "UnsetNamespaceProperties", "SetNamespaceLocation", "CommentOnNamespace"});

    public String format() { return "session"; }

    public boolean table(Object table, Json json) { return false; }

    public boolean relation(Object relation, Json json) { return false; }

    public boolean read(Object leaf, Json json) { return false; }

    public void ended(Statement statement, Json json) throws Exception {
        LogicalPlan command = command(statement.plan);
        String name = command == null ? "" : command.getClass().getSimpleName();
        if (changesCatalogs(name)) CatalogHook.writeFacts(statement, json);
        CatalogHook.attach();
        if (command == null) return;
        overwrites(statement, json);
        SparkSession session = statement.query.sparkSession();
        if (isOfFirstKind(command, name, statement.extractors)) firstKind(session, command, json);
        else if (MAKING.contains(name) || name.equals("RenameTable")) secondKind(session, command, statement, json);
        else if (OF_NAMESPACES.contains(name)) namespace(command, json);
    }

    /**
     * Whether a write takes the place of the partitions only that it has rows for. The session says so as the write runs:
     * the command that has run knows, the analyzed one doesn't.
     */
    private static void overwrites(Statement statement, Json json) throws Exception {
        Object physical = LazyFields.value(statement.query, "executedPlan");
        if (!(physical instanceof DataWritingCommandExec)) return;
        Object ran = ((DataWritingCommandExec) physical).cmd();
        if (ran instanceof InsertIntoHadoopFsRelationCommand)
            json.entry("dynamic", ((Boolean) LazyFields.value(ran, "dynamicPartitionOverwrite")).booleanValue());
    }

    private static boolean changesCatalogs(String command) {
        for (int i = 0; i < CHANGING.length; i++) if (command.startsWith(CHANGING[i])) return true;
        return false;
    }

    private static LogicalPlan command(LogicalPlan plan) {
        if (plan instanceof Command) return plan;
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) if (children.get(i) instanceof Command) return (LogicalPlan) children.get(i);
        return null;
    }

    private static boolean isOfFirstKind(LogicalPlan command, String name, FormatExtractor[] extractors) {
        String kind = command.getClass().getName();
        boolean namesTables = kind.startsWith("org.apache.spark.sql.execution.") || kind.startsWith("org.apache.spark.sql.hive.execution.");
        for (int i = 0; i < extractors.length; i++)
            namesTables |= extractors[i] instanceof FormatCommands && ((FormatCommands) extractors[i]).namesSessionTables(command);
        return namesTables && name.endsWith("Command")
            && (name.startsWith("Create") || name.startsWith("SaveAsV1Table") || name.startsWith("Alter") || name.startsWith("Repair") || name.startsWith("Load"));
    }

    private void firstKind(SparkSession session, LogicalPlan command, Json json) throws Exception {
        ExternalCatalog catalog = session.sharedState().externalCatalog();
        scala.Product product = (scala.Product) command;
        List names = new ArrayList();
        for (int i = 0; i < product.productArity(); i++) {
            Object argument = ScalaOptions.get(product.productElement(i));
            if (argument instanceof CatalogTable) names.add(((CatalogTable) argument).identifier());
            if (argument instanceof TableIdentifier) names.add(argument);
            if (argument instanceof String && command.getClass().getSimpleName().contains("Database") && i == 0) database(catalog, (String) argument, json);
        }
        tables(catalog, names, command.getClass().getSimpleName().startsWith("AlterTableRenameC"), session, json);
    }

    /** A name without a database has the one of the name before it, as in ALTER TABLE … RENAME, or the current one. */
    private void tables(ExternalCatalog catalog, List names, boolean isMove, SparkSession session, Json json) throws Exception {
        String database = null;
        json.key("tables").openList();
        for (int i = 0; i < names.size(); i++) {
            TableIdentifier name = (TableIdentifier) names.get(i);
            Object value = ScalaOptions.get(name.database());
            if (value != null) database = (String) value;
            else if (database == null) database = session.catalog().currentDatabase();
            if (!isMove || i == names.size() - 1) table(catalog, database, name.table(), json);
        }
        json.closeList();
    }

    /** One question, for a metastore's client answers one at a time: whatever else the job asks it waits for ours. */
    private static void table(ExternalCatalog catalog, String database, String name, Json json) throws Exception {
        CatalogTable table;
        try {
            table = catalog.getTable(database, name);
        } catch (Throwable e) {
            if (isMissing(e)) return;
            throw new IllegalStateException(e);
        }
        json.open().entry("schemaText", table.schema().json());
        ValueWriter.catalogTable(table, json);
        json.close();
    }

    private static boolean isMissing(Throwable e) { return e.getClass().getSimpleName().startsWith("NoSuch"); }

    private static void database(ExternalCatalog catalog, String name, Json json) throws Exception {
        CatalogDatabase found;
        try {
            found = catalog.getDatabase(name);
        } catch (Throwable e) {
            if (isMissing(e)) return;
            throw new IllegalStateException(e);
        }
        TreeMap all = new TreeMap(ValueWriter.javaMap(found.properties()));
        all.put("location", found.locationUri().toString());
        if (found.description() != null && found.description().length() > 0) all.put("comment", found.description());
        json.key("namespace");
        texts(all, json);
    }

    private void secondKind(SparkSession session, LogicalPlan command, Statement statement, Json json) throws Exception {
        CatalogPlugin catalog = null;
        Identifier identifier = null;
        Object named = command.getClass().getSimpleName().equals("RenameTable") ? LazyFields.value(command, "child") : LazyFields.value(command, "name");
        if (named instanceof ResolvedIdentifier) {
            catalog = ((ResolvedIdentifier) named).catalog();
            identifier = ((ResolvedIdentifier) named).identifier();
        } else if (named instanceof ResolvedTable) {
            catalog = ((ResolvedTable) named).catalog();
            identifier = renamed(PlanWriter.list(LazyFields.value(command, "newName")));
        }
        if (catalog == null || identifier == null) return;
        json.key("tables").openList();
        if (SESSION.equals(catalog.name())) {
            String[] space = identifier.namespace();
            if (space.length == 1) table(session.sharedState().externalCatalog(), space[0], identifier.name(), json);
        } else if (catalog instanceof TableCatalog) {
            org.apache.spark.sql.connector.catalog.Table found = load((TableCatalog) catalog, identifier, statement);
            if (found != null) loaded(found, statement.extractors, json);
        }
        json.closeList();
    }

    private static org.apache.spark.sql.connector.catalog.Table load(TableCatalog catalog, Identifier identifier, Statement statement) throws Exception {
        for (int i = 0; i < statement.extractors.length; i++)
            if (statement.extractors[i] instanceof TableLoader && ((TableLoader) statement.extractors[i]).hasTablesOf(catalog))
                return ((TableLoader) statement.extractors[i]).load(catalog, identifier, statement);
        try {
            return catalog.loadTable(identifier);
        } catch (Throwable e) {
            if (isMissing(e)) return null;
            throw new IllegalStateException(e);
        }
    }

    /** By reflection: the compiler knows no static methods of interfaces. */
    private static Identifier renamed(List parts) throws Exception {
        String[] space = new String[parts.size() - 1];
        for (int i = 0; i < space.length; i++) space[i] = (String) parts.get(i);
        java.lang.reflect.Method of = Identifier.class.getMethod("of", new Class[] {String[].class, String.class});
        return (Identifier) of.invoke(null, new Object[] {space, parts.get(space.length)});
    }

    private static void loaded(org.apache.spark.sql.connector.catalog.Table table, FormatExtractor[] extractors, Json json) throws Exception {
        json.open().entry("table", table.name()).entry("class", table.getClass().getName());
        json.entry("schemaText", org.apache.spark.sql.connector.catalog.CatalogV2Util.v2ColumnsToStructType(table.columns()).json());
        ValueWriter.layout(table, json);
        ValueWriter.ofFormat(table, extractors, json);
        json.close();
    }

    private static void namespace(LogicalPlan command, Json json) throws Exception {
        List children = PlanWriter.list(command.children());
        Object child = children.isEmpty() ? null : children.get(0);
        if (!(child instanceof ResolvedNamespace)) return;
        CatalogPlugin catalog = ((ResolvedNamespace) child).catalog();
        List parts = PlanWriter.list(((ResolvedNamespace) child).namespace());
        String[] space = (String[]) parts.toArray(new String[0]);
        if (!(catalog instanceof SupportsNamespaces)) return;
        Map found;
        try {
            found = ((SupportsNamespaces) catalog).loadNamespaceMetadata(space);
        } catch (Throwable e) {
            if (isMissing(e)) return;
            throw new IllegalStateException(e);
        }
        json.key("namespace");
        texts(found, json);
    }

    private static void texts(Map map, Json json) {
        json.open();
        TreeMap sorted = new TreeMap(map);
        for (java.util.Iterator i = sorted.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            json.entry((String) entry.getKey(), entry.getValue() == null ? null : entry.getValue().toString());
        }
        json.close();
    }
}
