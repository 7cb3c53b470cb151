package headwater.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/** One run of a streaming query, as statements and formats see it. It names no class of streaming: those move. */
abstract class StreamQuery {
    private static final Pattern DESCRIPTION =
        Pattern.compile("(?s).*\\nid = [0-9a-f-]{36}\\nrunId = [0-9a-f-]{36}\\nbatch = (?:[0-9]+|init)");
    /** Sinks that only show, or keep for those who look. */
    private static final List SHOWING = Arrays.asList(new Object[] {"MemorySink", "ConsoleTable$", "NoopTable$"});

    final String id;
    final String run;
    final String name;
    /** That it runs was reported. For the thread that listens. */
    boolean isAnnounced;
    /** The text of its shape, and who knows its attributes: written with the first batch. For the thread that reads. */
    String text;
    PlanWriter shape;
    /** What each stream gave to the batch that is being written: the leaf, two offsets as JSON, the reader or null. For the thread that reads. */
    final List took = new ArrayList();

    StreamQuery(String id, String run, String name) {
        this.id = id;
        this.run = run;
        this.name = name;
    }

    /** What it writes to. */
    abstract Object sink();

    /** What it writes to is a function of the user's, which does with a batch what it likes. */
    boolean isOfUsersFunction() { return sink().getClass().getSimpleName().equals("ForeachBatchSink"); }

    boolean isForLooking() { return SHOWING.contains(sink().getClass().getSimpleName()); }

    /** Whether this execution is of a streaming query: a batch, or what a source or sink makes of one. */
    static boolean isExecution(QueryExecution query) {
        for (Class at = query == null ? null : query.getClass(); at != null; at = at.getSuperclass())
            if (at.getSimpleName().equals("IncrementalExecution")) return true;
        return false;
    }

    /** Whether this plan, Spark's for one trigger, writes; the others are what a sink makes of it. */
    static boolean isBatch(LogicalPlan plan) { return plan.getClass().getSimpleName().startsWith("WriteToMicroBatchDataSource"); }

    /** Whether this describes what a query does, be it its batch, or what its sources do to find out what is new. */
    static boolean describes(String text) { return text != null && text.indexOf("\nrunId = ") >= 0 && DESCRIPTION.matcher(text).matches(); }
}
