package headwater.capture;

import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.command.ExecutedCommandExec;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Writes a statement that has ended: its facts, and its shape (the plan) by its digest. The plan itself goes to the
 * statement: whether it is written along is up to the queue.
 *
 * One at a time, on the reader's thread.
 */
public final class StatementWriter {
    private static final String CALL = "Call";
    private final CatalogWriter catalogs = new CatalogWriter();
    private final ValueWriter values;
    private final StreamCapture streams;
    private final FormatExtractor[] extractors;
    private final boolean sql;

    public StatementWriter(FormatExtractor[] extractors, StreamCapture streams, boolean sql) {
        this.extractors = extractors;
        this.sql = sql;
        this.values = new ValueWriter(catalogs, extractors);
        this.streams = streams;
        streams.use(catalogs, values, sql);
    }

    /** Whether this execution does something, or only looks. Never makes Spark compute anything. */
    public static boolean isCommand(QueryExecution query) {
        try {
            LogicalPlan plan = planOf(query);
            if (plan instanceof Command) return true;
            List children = PlanWriter.list(plan.children());
            for (int i = 0; i < children.size(); i++) if (children.get(i) instanceof Command) return true;
            return false;
        } catch (Throwable e) {
            CaughtErrors.log("StatementWriter.isCommand", e);
            return true;
        }
    }

    static LogicalPlan planOf(QueryExecution query) throws Exception {
        Object analyzed = LazyFields.value(query, "analyzed");
        return analyzed == null ? query.logical() : (LogicalPlan) analyzed;
    }

    /** What this plan makes is a table of results that were there already: the command ran in another execution. */
    private static boolean isRepeated(QueryExecution query) throws Exception {
        Object executed = LazyFields.value(query, "commandExecuted");
        return executed != null && executed.getClass().getSimpleName().equals("CommandResult");
    }

    /** Whether this shows what a procedure answered that was called while Spark analysed: nothing else shows the call. */
    private static boolean isCalled(QueryExecution query) throws Exception {
        return query.logical().getClass().getSimpleName().equals(CALL) && !planOf(query).getClass().getSimpleName().equals(CALL);
    }

    /** Whose call a hook has seen, that is reported already. */
    private String procedureCall(Statement statement, SparkListenerSQLExecutionEnd end) throws Exception {
        List name = PlanWriter.list(LazyFields.value(end.qe().logical().children().head(), "nameParts"));
        CatalogManager catalogs = end.qe().sparkSession().sessionState().catalogManager();
        CatalogPlugin catalog = name.size() > 1 && catalogs.isCatalogRegistered((String) name.get(0))
            ? catalogs.catalog((String) name.get(0)) : catalogs.currentCatalog();
        for (int i = 0; i < extractors.length; i++) if (extractors[i] instanceof ProcedureCallExtractor && ((ProcedureCallExtractor) extractors[i]).watches(catalog)) return null;
        Json json = startJson("procedureCall", statement).entry("procedure", String.join(".", (String[]) name.toArray(new String[0])));
        return json.close().toString();
    }

    private String analysisFailure(Statement statement, SparkListenerSQLExecutionEnd end, LogicalPlan write) throws Exception {
        catalogs.session(end.qe().sparkSession());
        Json json = startJson("analysisFailure", statement);
        failure((Throwable) ScalaOptions.get(end.executionFailure()), json);
        PlanWriter shape = new PlanWriter(values, sql);
        AnalysisFailure.describe(write, end, shape, json);
        json.key("plan").raw(shape.finish(0));
        if (sql && write.origin() != null) json.entry("sql", (String) ScalaOptions.get(write.origin().sqlText()));
        String newCatalogs = catalogs.takeNew();
        if (newCatalogs.length() > 0) json.key("catalogs").raw("[" + newCatalogs + "]");
        return json.close().toString();
    }

    /** A text that was written didn't arrive: the catalogs that it reported are reported again. */
    public void forget() { catalogs.forget(); }

    /** A nested execution ended: only what its leaves read, and what extractors look for. */
    public void nested(Statement statement, SparkListenerSQLExecutionEnd end) {
        try {
            leaves(end.qe(), null, statement.reads);
            command(statement, end.qe());
            for (int i = 0; i < extractors.length; i++) {
                Json json = new Json().open();
                if (extractors[i] instanceof NestedPlanExtractor) ((NestedPlanExtractor) extractors[i]).nested(statement, end.qe(), json);
                String text = json.close().toString();
                if (text.length() > 2) statement.hints.add(text);
            }
        } catch (Throwable e) {
            CaughtErrors.report("StatementWriter.nested", e);
            statement.hints.add(new Json().open().entry("unreadable", CaughtErrors.text("StatementWriter.nested", e)).close().toString());
        }
    }

    /** A command within a command: that it ran, and what it counted. */
    private static void command(Statement statement, QueryExecution query) throws Exception {
        LogicalPlan plan = planOf(query);
        if (!(plan instanceof Command) || isRepeated(query)) return;
        Json json = new Json().open().entry("command", plan.getClass().getSimpleName());
        if (plan instanceof org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand)
            json.entry("outputPath", ((org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand) plan).outputPath().toString());
        metrics(query, json);
        statement.hints.add(json.close().toString());
    }

    /** The operator that a query ran as: below what an adaptive query wraps around it, as it ran in the end. */
    private static SparkPlan topmost(QueryExecution query) throws Exception {
        SparkPlan plan = (SparkPlan) LazyFields.value(query, "executedPlan");
        while (plan instanceof AdaptiveSparkPlanExec || plan instanceof QueryStageExec)
            plan = plan instanceof QueryStageExec ? ((QueryStageExec) plan).plan() : ((AdaptiveSparkPlanExec) plan).executedPlan();
        return plan;
    }

    /** What the topmost operator counted. */
    private static void metrics(QueryExecution query, Json json) throws Exception {
        SparkPlan physical = topmost(query);
        Object metrics = physical == null ? null : LazyFields.optional(physical, "metrics");
        if (!(metrics instanceof scala.collection.Map)) return;
        Map found = new java.util.TreeMap(ValueWriter.javaMap((scala.collection.Map) metrics));
        if (found.isEmpty()) return;
        json.key("metrics").open();
        java.util.Iterator each = found.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry entry = (Map.Entry) each.next();
            json.entry((String) entry.getKey(), (Number) ((org.apache.spark.util.AccumulatorV2) entry.getValue()).value());
        }
        json.close();
    }

    /**
     * Whether there is something to tell of a statement: cheap, and asked before anything of it is kept. One whose command
     * ran in an execution nested in it (a builder of a format's API) isn't a repetition.
     */
    public static boolean matters(SparkListenerSQLExecutionEnd end, Statement statement, boolean reads, Set ignored) {
        try {
            QueryExecution query = end.qe();
            if (isCalled(query)) return !end.executionFailure().isDefined();
            if (AnalysisFailure.write(end) != null) return true;
            if (StreamQuery.isExecution(query))
                return StreamQuery.isBatch(planOf(query)) && (reads || statement.stream == null || !statement.stream.isForLooking());
            if (StreamQuery.describes(statement.description) && !isCommand(query)) return false;
            int executions = statement.executions.size();
            if (!reads && !isCommand(query) && !keepsRows(end)) return false;
            return (executions > 1 || !isRepeated(query)) && !ignored.contains(planOf(query).getClass().getSimpleName());
        } catch (Throwable e) {
            CaughtErrors.log("StatementWriter.matters", e);
            return true;
        }
    }

    /** The text of a statement; null where there is nothing to tell. */
    public String write(Statement statement, SparkListenerSQLExecutionEnd end, boolean reads, Set ignored) throws Exception {
        QueryExecution query = end.qe();
        if (query == null || !matters(end, statement, reads, ignored)) return null;
        if (StreamQuery.isExecution(query) && statement.stream == null) return unreadable(statement, end, streams.unknown());
        boolean keeps = keepsRows(end);
        LogicalPlan plan = statement.stream == null ? planOf(query) : streams.whole(statement.stream, planOf(query));
        statement.ended = end.time();
        if (isCalled(query)) return procedureCall(statement, end);
        LogicalPlan failedWrite = AnalysisFailure.write(end);
        if (failedWrite != null) return analysisFailure(statement, end, failedWrite);
        statement.query = query;
        statement.session = query.sparkSession();
        statement.plan = plan;
        statement.catalogs = catalogs;
        statement.extractors = extractors;
        catalogs.session(statement.session);
        Json json = startJson("statement", statement);
        Throwable failure = (Throwable) ScalaOptions.get(end.executionFailure());
        String message = (String) ScalaOptions.get(end.errorMessage());
        if (failure != null) failure(failure, json);
        else if (message != null && message.length() > 0) json.key("failure").open().entry("message", message).close();
        PlanWriter shape = statement.stream == null ? PlanWriter.of(plan, values, sql) : streams.shape(statement.stream, plan);
        String text = statement.stream == null ? shape.finish(shape.node(plan)) : statement.stream.text;
        boolean looks = statement.stream == null ? !isCommand(query) : statement.stream.isForLooking();
        if (looks) json.entry("readsOnly", true);
        if (statement.stream != null) streams.batch(statement, planOf(query), json);
        if (keeps) checkpointColumns(plan, json);
        list("parts", statement.parts, json);
        list("rdds", shape.rdds(), json);
        facts(statement, shape, json);
        shape(text, statement, json);
        if (sql && plan.origin() != null) json.entry("sql", (String) ScalaOptions.get(plan.origin().sqlText()));
        String newCatalogs = catalogs.takeNew();
        if (newCatalogs.length() > 0) json.key("catalogs").raw("[" + newCatalogs + "]");
        return json.close().toString();
    }

    /** The text of a call that no execution is around: what a procedure tells where it is a statement of its own. */
    public String write(Statement statement, ProcedureCall called) throws Exception {
        statement.catalogs = catalogs;
        statement.extractors = extractors;
        catalogs.session(statement.session);
        Json json = startJson("statement", statement);
        if (called.failure != null) failure(called.failure, json);
        writeNotes(statement, json);
        rows(called.rows, called.schema, json);
        json.key("formats").open();
        for (int i = 0; i < extractors.length; i++) {
            if (!(extractors[i] instanceof ProcedureCallExtractor)) continue;
            Json facts = new Json().open();
            try {
                ((ProcedureCallExtractor) extractors[i]).called(statement, called, facts);
            } catch (Throwable e) {
                CaughtErrors.report("StatementWriter.write", e);
                facts.entry("unreadable", CaughtErrors.text("StatementWriter.write", e));
            }
            json.key(extractors[i].format()).raw(facts.close().toString());
        }
        json.close();
        PlanWriter shape = new PlanWriter(values, sql);
        shape(shape.finish(shape.call(called)), statement, json);
        String newCatalogs = catalogs.takeNew();
        if (newCatalogs.length() > 0) json.key("catalogs").raw("[" + newCatalogs + "]");
        return json.close().toString();
    }

    /** Spark's own ids of the columns that a checkpoint keeps. */
    private static void checkpointColumns(LogicalPlan plan, Json json) {
        json.key("checkpointColumns").openList();
        List output = PlanWriter.list(plan.output());
        for (int i = 0; i < output.size(); i++) json.value(((Attribute) output.get(i)).exprId().id());
        json.closeList();
    }

    public static boolean keepsRows(SparkListenerSQLExecutionEnd end) {
        Object name = ScalaOptions.get(end.executionName());
        return "localCheckpoint".equals(name) || "checkpoint".equals(name);
    }

    private static Json startJson(String kind, Statement statement) {
        Json json = new Json().open().entry("kind", kind);
        if (statement.id >= 0) json.entry("id", statement.id);
        json.entry("started", statement.started).entry("ended", statement.ended);
        if (statement.client != null) json.key("client").raw(statement.client);
        context(statement, json);
        return json;
    }

    /** What the statement's session said of headwater, and its job tags. */
    static void context(Statement statement, Json json) {
        json.key("confs").open();
        java.util.Iterator each = new java.util.TreeMap(statement.confs).entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry entry = (Map.Entry) each.next();
            if (((String) entry.getKey()).startsWith("spark.headwater.")) json.entry((String) entry.getKey(), (String) entry.getValue());
        }
        json.close().key("tags").openList();
        for (int i = 0; i < statement.tags.size(); i++) json.value((String) statement.tags.get(i));
        json.closeList();
    }

    private static void failure(Throwable failure, Json json) {
        json.key("failure").open().entry("type", failure.getClass().getName());
        String message = String.valueOf(failure.getMessage());
        json.entry("message", message.length() > 20000 ? message.substring(0, 20000) : message);
        if (failure instanceof org.apache.spark.SparkThrowable) {
            json.entry("condition", ((org.apache.spark.SparkThrowable) failure).getErrorClass());
            json.entry("sqlState", ((org.apache.spark.SparkThrowable) failure).getSqlState());
            parameters(((org.apache.spark.SparkThrowable) failure).getMessageParameters(), json);
        }
        json.close();
    }

    /** What is longer than this isn't reported as it stands, so a value that is cut here is hidden. */
    private static void parameters(Map parameters, Json json) {
        if (parameters == null || parameters.isEmpty()) return;
        json.key("parameters").open();
        java.util.Iterator each = new java.util.TreeMap(parameters).entrySet().iterator();
        for (int i = 0; i < 30 && each.hasNext(); i++) {
            Map.Entry entry = (Map.Entry) each.next();
            String value = String.valueOf(entry.getValue());
            json.entry((String) entry.getKey(), value.length() > 2000 ? value.substring(0, 2000) : value);
        }
        json.close();
    }

    private void facts(Statement statement, PlanWriter shape, Json json) throws Exception {
        list("reads", reads(statement.query, shape), json);
        list("nestedReads", statement.reads, json);
        list("nestedFacts", statement.hints, json);
        writeNotes(statement, json);
        rows(statement.query, json);
        metrics(statement.query, json);
        json.key("formats").open();
        for (int i = 0; i < extractors.length; i++) {
            Json ended = new Json().open();
            try {
                extractors[i].ended(statement, ended);
            } catch (Throwable e) {
                CaughtErrors.report("StatementWriter.facts", e);
                ended.entry("unreadable", CaughtErrors.text("StatementWriter.facts", e));
            }
            String text = ended.close().toString();
            if (text.length() > 2) json.key(extractors[i].format()).raw(text);
        }
        json.close();
    }

    /** What the leaves read; as much of it as can be seen. */
    private List reads(QueryExecution query, PlanWriter shape) {
        List reads = new ArrayList();
        try {
            leaves(query, shape, reads);
        } catch (Throwable e) {
            CaughtErrors.report("StatementWriter.reads", e);
        }
        return reads;
    }

    private static void writeNotes(Statement statement, Json json) {
        List noted = new ArrayList();
        for (int i = 0; i < statement.executions.size(); i++) noted.addAll(CommitRecorder.take(statement.executions.get(i).toString()));
        list("hookFacts", noted, json);
        statement.noted = noted;
    }

    private static void list(String name, List objects, Json json) {
        if (objects.isEmpty()) return;
        json.key(name).openList();
        for (int i = 0; i < objects.size(); i++) json.raw((String) objects.get(i));
        json.closeList();
    }

    private static void shape(String text, Statement statement, Json json) throws Exception {
        StringBuilder digest = new StringBuilder();
        byte[] bytes = MessageDigest.getInstance("SHA-256").digest(text.getBytes("UTF-8"));
        for (int i = 0; i < 16; i++) digest.append(Integer.toHexString(bytes[i] & 255 | 256).substring(1));
        json.entry("planDigest", digest.toString());
        statement.shapes.put(digest.toString(), text);
    }

    /** What a command answered, where Spark keeps it: the ids that procedures return. */
    private static void rows(QueryExecution query, Json json) throws Exception {
        SparkPlan physical = topmost(query);
        if (physical == null) return;
        Object result = physical instanceof ExecutedCommandExec ? LazyFields.value(physical, "sideEffectResult") : LazyFields.optional(physical, "result");
        if (!(result instanceof scala.collection.Iterable)) return;
        rows(PlanWriter.list(result), physical.schema(), json);
    }

    private static void rows(List rows, org.apache.spark.sql.types.StructType schema, Json json) {
        if (rows.isEmpty() || rows.size() > 100) return;
        json.key("rows").openList();
        for (int i = 0; i < rows.size(); i++) row(rows.get(i), schema, json);
        json.closeList();
    }

    private static void row(Object row, org.apache.spark.sql.types.StructType schema, Json json) {
        json.open();
        if (row instanceof org.apache.spark.sql.catalyst.InternalRow) {
            org.apache.spark.sql.types.StructField[] fields = schema.fields();
            for (int i = 0; i < fields.length; i++) {
                Object cell = ((org.apache.spark.sql.catalyst.InternalRow) row).get(i, fields[i].dataType());
                if (cell instanceof Number) json.key(fields[i].name()).raw(cell.toString());
                else if (cell != null) json.entry(fields[i].name(), cell.toString());
            }
        }
        json.close();
    }

    /** Facts of all leaves of what was really executed: the optimized plan's, and the physical one's. */
    private void leaves(QueryExecution query, PlanWriter shape, List found) throws Exception {
        Object optimized = LazyFields.value(query, "optimizedPlan");
        if (optimized != null) walk((QueryPlan) optimized, shape, found, new java.util.IdentityHashMap(), "optimized");
        Object physical = LazyFields.value(query, "executedPlan");
        if (physical != null) walk((QueryPlan) physical, shape, found, new java.util.IdentityHashMap(), "physical");
    }

    private void walk(QueryPlan plan, PlanWriter shape, List found, Map seen, String where) throws Exception {
        if (plan == null || seen.put(plan, plan) != null) return;
        List children = PlanWriter.list(plan.children());
        if (plan instanceof AdaptiveSparkPlanExec) walk(((AdaptiveSparkPlanExec) plan).executedPlan(), shape, found, seen, where);
        else if (plan instanceof QueryStageExec) walk(((QueryStageExec) plan).plan(), shape, found, seen, where);
        else if (plan instanceof InMemoryRelation) walk(((InMemoryRelation) plan).cacheBuilder().cachedPlan(), shape, found, seen, "cached");
        else if (plan instanceof InMemoryTableScanExec) walk(((InMemoryTableScanExec) plan).relation(), shape, found, seen, where);
        else if (children.isEmpty()) leaf(plan, shape, found, where);
        for (int i = 0; i < children.size(); i++) walk((QueryPlan) children.get(i), shape, found, seen, where);
        List subqueries = PlanWriter.list(plan.subqueries());
        for (int i = 0; i < subqueries.size(); i++) walk((QueryPlan) subqueries.get(i), shape, found, seen, where);
        List inner = PlanWriter.list(plan.innerChildren());
        for (int i = 0; i < inner.size(); i++)
            if (inner.get(i) instanceof QueryPlan) walk((QueryPlan) inner.get(i), shape, found, seen, where);
    }

    /** One leaf that can't be read doesn't hide the others, nor the statement. */
    private static boolean isRead(FormatExtractor extractor, QueryPlan leaf, Json json) {
        try {
            return extractor.read(leaf, json);
        } catch (Throwable e) {
            CaughtErrors.report("StatementWriter.isRead", e);
            return false;
        }
    }

    private void leaf(QueryPlan leaf, PlanWriter shape, List found, String where) throws Exception {
        for (int i = 0; i < extractors.length; i++) {
            Json json = new Json().open().entry("format", extractors[i].format()).entry("in", where);
            if (!isRead(extractors[i], leaf, json)) continue;
            if (shape != null) {
                json.key("attributes").openList();
                List output = PlanWriter.list(leaf.output());
                java.util.LinkedHashSet numbers = new java.util.LinkedHashSet();
                for (int a = 0; a < output.size(); a++) numbers.add(Integer.valueOf(shape.known(((Attribute) output.get(a)).exprId().id())));
                for (java.util.Iterator each = numbers.iterator(); each.hasNext();) {
                    int known = ((Integer) each.next()).intValue();
                    if (known >= 0) json.value(known);
                }
                json.closeList();
            }
            found.add(json.close().toString());
            return;
        }
    }

    /** Reported where a statement couldn't be read: that there was one, and why it can't be determined. */
    public static String unreadable(Statement statement, SparkListenerEvent event, String why) {
        Json json = new Json().open().entry("kind", "unreadable");
        if (statement.id >= 0) json.entry("id", statement.id);
        json.entry("started", statement.started);
        json.entry("ended", event instanceof SparkListenerSQLExecutionEnd ? ((SparkListenerSQLExecutionEnd) event).time() : statement.ended);
        if (statement.client != null) json.key("client").raw(statement.client);
        return json.entry("why", why).close().toString();
    }
}
