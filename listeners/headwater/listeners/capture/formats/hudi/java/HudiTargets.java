package headwater.capture;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hudi.common.config.DFSPropertiesConfiguration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HoodieCatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.streaming.StreamingRelation;
import org.apache.spark.sql.hudi.command.CallProcedureHoodieCommand;
import org.apache.spark.sql.hudi.command.procedures.ProcedureArgs;
import org.apache.spark.sql.hudi.command.procedures.ProcedureParameter;

/** Which tables a command of Hudi's is about: where they are. The one that is written comes first. */
final class HudiTargets {
    private static final String COMMANDS = "org.apache.spark.sql.hudi.command.";
    static final String CALLBACK_OPTIONS = "hoodie.write.commit.callback.";
    private static final String[] WRITING = {"Insert", "Update", "Delete", "MergeInto", "CreateHoodieTableAs"};

    private HudiTargets() { }

    static boolean isHudis(LogicalPlan plan) { return plan.getClass().getName().startsWith(COMMANDS) || isSaved(plan); }

    private static boolean isSaved(LogicalPlan plan) {
        return plan instanceof SaveIntoDataSourceCommand
            && ((SaveIntoDataSourceCommand) plan).dataSource().getClass().getName().startsWith("org.apache.hudi.");
    }

    /** Whether all that the command commits asks for callbacks. */
    static boolean callsBack(LogicalPlan plan) {
        String name = plan.getClass().getSimpleName();
        for (int i = 0; i < WRITING.length; i++) if (name.startsWith(WRITING[i])) return true;
        return isSaved(plan);
    }

    static boolean isSink(Object sink) { return sink.getClass().getName().equals("org.apache.hudi.HoodieStreamingSink"); }

    static String path(Object sink) throws Exception { return (String) ScalaOptions.get(LazyFields.value(sink, "tablePath")); }

    /** Whether the hook saw all that this statement committed, as its session and its own options have it. */
    static boolean isCovered(Statement statement, SparkSession session, Map options) {
        return HudiState.HOOK.covers(statement) && CommitRecorder.listening() && !hasOwn(DFSPropertiesConfiguration.getGlobalProps().keySet())
            && !hasOwn(ValueWriter.javaMap(session.conf().getAll()).keySet()) && !hasOwn(options.keySet());
    }

    private static boolean hasOwn(Set keys) {
        for (Iterator i = keys.iterator(); i.hasNext();) if (i.next().toString().contains(CALLBACK_OPTIONS)) return true;
        return false;
    }

    /** One path is written in several ways: with its scheme or without, with one slash or three. */
    static String key(String path, String instant) { return new org.apache.hadoop.fs.Path(path).toUri().getPath() + "\n" + instant; }

    /** The tables that a query reads and writes: where they are. */
    static void streamed(Statement statement, SparkSession session, Set found, Json json) throws Exception {
        StreamQuery stream = statement.stream;
        Object sink = stream.sink();
        if (isSink(sink)) {
            boolean covered = isCovered(statement, session, new HashMap());
            json.entry("covered", covered).entry("target", path(sink));
            if (!covered) found.add(path(sink));
        }
        json.key("begins").openList();
        for (int i = 0; i < stream.took.size(); i++) {
            Object[] took = (Object[]) stream.took.get(i);
            String path = took[0] instanceof StreamingRelation ? source(((StreamingRelation) took[0]).dataSource()) : null;
            if (path == null) continue;
            found.add(path);
            if (took[1] == null && took[3] != null) begin(path, took[3], json);
        }
        json.closeList();
    }

    private static String source(DataSource source) {
        if (!source.className().toLowerCase().contains("hudi")) return null;
        CatalogTable table = (CatalogTable) ScalaOptions.get(source.catalogTable());
        Object path = table == null ? ScalaOptions.get(source.options().get("path")) : table.location();
        return path == null ? null : path.toString();
    }

    /** `[path, offset]`: behind which a query's first batch read. Hudi keeps it in the checkpoint, whatever the options say when it begins again. */
    private static void begin(String path, Object reader, Json json) throws Exception {
        Object offset = LazyFields.optional(reader, "initialOffsets");
        if (offset != null) json.openList().value(path).value(((Offset) offset).json()).closeList();
    }

    static Map options(LogicalPlan plan) {
        return isSaved(plan) ? ValueWriter.javaMap(((SaveIntoDataSourceCommand) plan).options()) : new HashMap();
    }

    static void collect(LogicalPlan plan, SparkSession session, Set found) throws Exception {
        if (isSaved(plan)) {
            Object path = options(plan).get("path");
            if (path != null) found.add(new org.apache.hadoop.fs.Path(path.toString()).toString());
        } else if (plan instanceof CallProcedureHoodieCommand) {
            called((CallProcedureHoodieCommand) plan, session, found);
        } else {
            scala.Product command = (scala.Product) plan;
            for (int i = 0; i < command.productArity(); i++) argument(ScalaOptions.get(command.productElement(i)), session, found);
        }
    }

    private static void argument(Object argument, SparkSession session, Set found) throws Exception {
        if (argument instanceof HoodieCatalogTable) found.add(((HoodieCatalogTable) argument).tableLocation());
        else if (argument instanceof CatalogTable) named(((CatalogTable) argument).identifier(), session, found);
        else if (argument instanceof TableIdentifier) named((TableIdentifier) argument, session, found);
        else if (argument instanceof LogicalPlan) relations((LogicalPlan) argument, session, found);
    }

    private static void relations(LogicalPlan plan, SparkSession session, Set found) throws Exception {
        if (plan instanceof LogicalRelation) {
            Object table = ScalaOptions.get(((LogicalRelation) plan).catalogTable());
            if (HudiExtractor.client(((LogicalRelation) plan).relation()) != null)
                found.add(HudiExtractor.client(((LogicalRelation) plan).relation()).getBasePath().toString());
            else if (table != null) named(((CatalogTable) table).identifier(), session, found);
        }
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) relations((LogicalPlan) children.get(i), session, found);
    }

    private static void named(TableIdentifier name, SparkSession session, Set found) {
        try {
            SessionCatalog catalog = session.sessionState().catalog();
            if (!catalog.tableExists(name)) return;
            Object location = ScalaOptions.get(catalog.getTableMetadata(name).storage().locationUri());
            if (location != null) found.add(location.toString());
        } catch (Throwable missing) {
            CaughtErrors.reportUnforeseen("HudiTargets.named", missing);
            // dropped meanwhile
        }
    }

    /** By the arguments that procedures have for a table. */
    private static void called(CallProcedureHoodieCommand call, SparkSession session, Set found) throws Exception {
        Object path = value(call, "path");
        TableIdentifier name = name(call, session);
        if (path != null) found.add(new org.apache.hadoop.fs.Path(path.toString()).toString());
        else if (name != null) named(name, session, found);
    }

    /** The table that a procedure was called for, with its database; null of any other command. */
    static TableIdentifier name(LogicalPlan plan, SparkSession session) throws Exception {
        if (!(plan instanceof CallProcedureHoodieCommand)) return null;
        Object text = value((CallProcedureHoodieCommand) plan, "table");
        if (text == null) return null;
        TableIdentifier name = session.sessionState().sqlParser().parseTableIdentifier(text.toString());
        return name.database().isDefined() ? name
            : new TableIdentifier(name.table(), new scala.Some(session.catalog().currentDatabase()));
    }

    private static Object value(CallProcedureHoodieCommand call, String name) throws Exception {
        ProcedureArgs args = call.args();
        Object place = args.map().get(name);
        ProcedureParameter[] parameters = call.procedure().parameters();
        for (int i = 0; !args.isNamedArgs() && i < parameters.length; i++)
            if (parameters[i].name().equals(name)) place = args.map().get(String.valueOf(parameters[i].index()));
        InternalRow row = args.internalRow();
        return place == null ? null : row.get(((Number) place).intValue(), org.apache.spark.sql.types.DataTypes.StringType);
    }
}
