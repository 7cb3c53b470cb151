package headwater.capture;

import java.util.Arrays;
import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/** Which statement an execution belongs to, in the orders in which a driver reports them. */
public final class ExecutionTrackerTest {
    private final ExecutionTracker tracker = new ExecutionTracker(new NoStreamCapture());

    public void testParts() throws Exception {
        TrackedExecution whole = start(1, 1, "Execute CreateTableAsSelect");
        Tests.isTrue("the part is of the whole", start(2, 1, "AppendData") == whole);
        Tests.equal(longs(1, 2), whole.statement.executions);
        Tests.isTrue("its end is an end within the whole", tracker.ended(2) == whole && !whole.isOver);
        Tests.isTrue("the whole ends by its own end", tracker.ended(1) == whole && whole.isOver);
    }

    /** What a builder runs may be reported before the builder's own start. */
    public void testPartFirst() throws Exception {
        TrackedExecution whole = start(4, 3, "AppendData");
        Tests.isTrue("its own start wasn't seen", !whole.isBegun);
        Tests.isTrue("it is the same statement", start(3, 3, "Execute Merge") == whole && whole.isBegun);
        Tests.equal(3L, whole.statement.id);
    }

    /** A thread that was born in an execution names it as its root for as long as it lives. */
    public void testThreadOutlivesItsRoot() throws Exception {
        start(1, 1, "Execute Insert");
        tracker.ended(1);
        TrackedExecution first = start(2, 1, "Execute Insert");
        Tests.equal(longs(2), first.statement.executions);
        Tests.isTrue("it runs while the first does", start(3, 1, "Execute Insert").outer == first);
        tracker.ended(3);
        Tests.isTrue("its end is its own", tracker.ended(2) == first && first.isOver);
        TrackedExecution later = start(4, 1, "Execute Insert");
        Tests.isTrue("nothing else runs there", later.outer == null);
        Tests.equal(longs(4), later.beside);
    }

    /** Executions whose ends are lost don't fill the driver. */
    public void testEldestIsForgotten() throws Exception {
        TrackedExecution eldest = start(1, 1, "Scan");
        for (long id = 2; id <= 10001; id++) start(id, id, "Scan");
        Tests.equal(10000, tracker.statements().size());
        Tests.isTrue("the eldest isn't among them", !tracker.statements().contains(eldest.statement));
        Tests.equal(null, tracker.ended(1));
    }

    public void testClose() throws Exception {
        TrackedExecution whole = start(1, 1, "Execute Insert");
        start(2, 1, "AppendData");
        tracker.ended(1);
        tracker.close(whole);
        Tests.isTrue("nothing of it is left", tracker.statements().isEmpty());
    }

    private TrackedExecution start(long id, long root, String operator) throws Exception {
        scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
        scala.collection.immutable.Seq nobody = scala.collection.immutable.Nil$.MODULE$;
        SparkPlanInfo plan = new SparkPlanInfo(operator, operator, nobody, none, nobody);
        scala.collection.immutable.Set tags = scala.collection.immutable.Set$.MODULE$.empty();
        return tracker.started(new SparkListenerSQLExecutionStart(
            id, scala.Option.apply((Object) Long.valueOf(root)), "text", "", "", plan, 1000L, none, tags), null);
    }

    private static java.util.List longs(long one) { return Arrays.asList(new Object[] {Long.valueOf(one)}); }

    private static java.util.List longs(long one, long other) { return Arrays.asList(new Object[] {Long.valueOf(one), Long.valueOf(other)}); }
}
