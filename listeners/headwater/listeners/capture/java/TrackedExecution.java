package headwater.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;

/** An execution that has begun: a statement, part of one, or a statement within a micro-batch. */
final class TrackedExecution {
    final Statement statement;
    /** Not the job's doing. */
    final boolean isOwn;
    /** Its own start was seen, not only that of a part. */
    boolean isBegun;
    /** A part of it found no room. */
    boolean isPartial;
    /** The micro-batch that this statement is a part of: what a user's function does with it. */
    TrackedExecution batch;
    /** Where Spark's root isn't the statement: the one that was running in that root when this one began, and may have made it. */
    TrackedExecution outer;
    /** In that case, ids of all that runs in that root, in the order in which it began. */
    List beside;
    /** Of a micro-batch whose rows a user's function gets. */
    QueryExecution query;
    /** It runs other commands to do what it does. */
    boolean isComposite;
    boolean isOver;
    /** Ids of executions that were seen to begin within it, to be forgotten with it. */
    final List members = new ArrayList();

    /** Whether a command reads the very rows that this micro-batch gave to a user's function. */
    boolean isReadBy(QueryExecution command) {
        try {
            Object rows = query == null ? null : LazyFields.value(query, "toRdd");
            return rows != null && StatementWriter.isCommand(command) && reads(StatementWriter.planOf(command), rows);
        } catch (Throwable e) {
            CaughtErrors.report("TrackedExecution.isReadBy", e);
            return false;
        }
    }

    /** Commands have their query among their children, or among what they show as inner ones. */
    private static boolean reads(QueryPlan plan, Object rows) {
        List waiting = new ArrayList(Arrays.asList(new Object[] {plan}));
        IdentityHashMap seen = new IdentityHashMap();
        while (!waiting.isEmpty()) {
            Object next = waiting.remove(waiting.size() - 1);
            if (!(next instanceof QueryPlan) || seen.put(next, next) != null) continue;
            if (next instanceof LogicalRDD && ((LogicalRDD) next).rdd() == rows) return true;
            waiting.addAll(PlanWriter.list(((QueryPlan) next).children()));
            waiting.addAll(PlanWriter.list(((QueryPlan) next).innerChildren()));
            waiting.addAll(PlanWriter.list(((QueryPlan) next).subqueries()));
            scala.collection.Iterator arguments = next instanceof Command ? ((scala.Product) next).productIterator() : null;
            while (arguments != null && arguments.hasNext()) waiting.add(arguments.next());
        }
        return false;
    }

    TrackedExecution(Statement statement, boolean isOwn) {
        this.statement = statement;
        this.isOwn = isOwn;
    }

    /** It turned out to be part of a micro-batch, if there is one. */
    void readsOf(TrackedExecution batch) {
        this.batch = batch;
        statement.isPart = batch != null;
    }

    boolean isOfUsersFunction() { return statement.stream != null && statement.stream.isOfUsersFunction(); }
}
