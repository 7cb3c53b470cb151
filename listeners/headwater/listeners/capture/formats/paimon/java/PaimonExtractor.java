package headwater.capture;

import java.util.ArrayList;
import java.util.List;
import org.apache.paimon.spark.SparkTable;
import org.apache.paimon.spark.catalyst.plans.logical.PaimonCallCommand;
import org.apache.paimon.spark.sources.PaimonSink;
import org.apache.paimon.table.FileStoreTable;
import org.apache.spark.sql.catalyst.QueryPlanningTracker.PhaseSummary;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapPartitions;
import org.apache.spark.sql.execution.QueryExecution;

/** What is known of Paimon's tables, of what was read of them, and by whose commits. */
public final class PaimonExtractor implements FormatExtractor, FormatCommands, NestedPlanExtractor {
    private static final String WRITERS = "paimon.writers";
    private static final String READS = "paimon.reads";
    private static final String BEHIND = "paimon.behind";

    public String format() { return "paimon"; }

    public boolean table(Object table, Json json) throws Exception {
        if (table instanceof PaimonSink) {
            FileStoreTable written = (FileStoreTable) LazyFields.value(table, "originTable");
            json.entry("table", written.fullName()).key("paimon").open();
            PaimonTables.described(written, json);
            json.close();
            return true;
        }
        if (!(table instanceof SparkTable)) return false;
        json.key("paimon").open();
        PaimonTables.described(((SparkTable) table).getTable(), json);
        json.close();
        return true;
    }

    public boolean showsLiterals(QueryPlan command) { return command instanceof PaimonCallCommand; }

    public boolean namesSessionTables(QueryPlan command) { return false; }

    public boolean relation(Object relation, Json json) { return false; }

    public boolean read(Object leaf, Json json) throws Exception { return PaimonReads.read(leaf, json); }

    /** Writes run in an execution of their own, whose functions hold the writer. */
    public void nested(Statement statement, QueryExecution query, Json json) throws Exception {
        boolean writes = inFunctions(query.logical(), statement);
        PaimonReads.replaced(query, reads(statement));
        Object physical = LazyFields.value(query, "executedPlan");
        if (writes && physical != null && PaimonReads.behind((QueryPlan) physical, reads(statement)))
            statement.kept.put(BEHIND, Boolean.TRUE);
    }

    private static boolean inFunctions(LogicalPlan plan, Statement statement) throws Exception {
        PaimonWriter writer = plan instanceof MapPartitions ? PaimonWriter.in(((MapPartitions) plan).func()) : null;
        if (writer != null) keep(statement, writer);
        boolean any = writer != null;
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) any |= inFunctions((LogicalPlan) children.get(i), statement);
        return any;
    }

    private static StringBuilder reads(Statement statement) {
        StringBuilder known = (StringBuilder) statement.kept.get(READS);
        if (known == null) statement.kept.put(READS, known = new StringBuilder());
        return known;
    }

    private static List writers(Statement statement) {
        List known = (List) statement.kept.get(WRITERS);
        if (known == null) statement.kept.put(WRITERS, known = new ArrayList());
        return known;
    }

    private static void keep(Statement statement, PaimonWriter writer) {
        List kept = writers(statement);
        for (int i = 0; i < kept.size(); i++) if (((PaimonWriter) kept.get(i)).user.equals(writer.user)) return;
        kept.add(writer);
    }

    /** All of it or nothing: what fails in the middle leaves no half of an object behind. */
    public void ended(Statement statement, Json json) throws Exception {
        Json found = new Json().open();
        lookedUp(statement, found);
        String text = found.close().toString();
        if (text.length() > 2) json.raw(text.substring(1, text.length() - 1));
    }

    private static void lookedUp(Statement statement, Json json) throws Exception {
        PaimonWriter own = PaimonWriter.of(PaimonCommands.executed(statement));
        if (own != null) keep(statement, own);
        List writers = writers(statement);
        if (!writers.isEmpty()) {
            json.key("writers").openList();
            for (int i = 0; i < writers.size(); i++) ((PaimonWriter) writers.get(i)).onCommit(statement, json);
            json.closeList();
        }
        PaimonCommands.ended(statement, !writers.isEmpty(), json);
        PaimonReads.replaced(statement.query, reads(statement));
        if (statement.kept.containsKey(BEHIND)) json.entry("behind", true);
        if (reads(statement).length() > 0) json.key("reads").raw("[" + reads(statement) + "]");
        Object phase = ScalaOptions.get(statement.query.tracker().phases().get("optimization"));
        if (phase != null) json.entry("planned", ((PhaseSummary) phase).startTimeMs());
    }
}
