package headwater.capture;

import java.util.Queue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/**
 * Keeps what Spark reports for a SqlExecutionListener that isn't ready yet, each event with what is only there while it runs:
 * of an execution its query, of a job of RDDs its last stage, of the start of a stream what runs it.
 *
 * It names no other class of ours, so it can be compiled by itself. What finds no room is counted.
 */
public final class EarlyEvents extends SparkListener {
    private final SparkContext context;
    /** Of pairs: an event, and what goes with it or null. */
    private final LinkedBlockingQueue events;
    private final AtomicLong dropped = new AtomicLong();
    private final long lost;
    private final long last;

    public EarlyEvents(SparkContext context, int most) {
        this.context = context;
        this.events = new LinkedBlockingQueue(most);
        this.lost = context.listenerBus().metrics().metricRegistry().counter("queue.headwater.numDroppedEvents").getCount();
        this.last = lastExecution();
    }

    public Queue events() { return events; }

    /** How many events found no room. */
    public long dropped() { return dropped.get(); }

    /** How many events Spark's queue of ours had dropped when this was made. */
    public long lost() { return lost; }

    /** The execution that had begun last when this was made; below all if nobody knows. */
    public long last() { return last; }

    private static long lastExecution() {
        try {
            java.lang.reflect.Field next = SQLExecution$.class.getDeclaredField("_nextExecutionId");
            next.setAccessible(true);
            return ((AtomicLong) next.get(SQLExecution$.MODULE$)).get() - 1;
        } catch (Throwable e) {
            return -1;  // ExecutionTracker reports that the field isn't there
        }
    }

    public void onJobStart(SparkListenerJobStart job) {
        boolean isOfRdds = job.properties() != null && job.properties().getProperty("spark.sql.execution.id") == null;
        keep(job, isOfRdds ? stageOf(job.jobId()) : null);
    }

    public void onJobEnd(SparkListenerJobEnd job) { keep(job, null); }

    /** Of tasks only those that failed matter: where one is tried again, rows are counted twice. */
    public void onTaskEnd(SparkListenerTaskEnd task) {
        if (task.taskInfo() == null || !task.taskInfo().successful()) keep(task, null);
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionStart)
            keep(event, SQLExecution.getQueryExecution(((SparkListenerSQLExecutionStart) event).executionId()));
        else if (event instanceof StreamingQueryListener.QueryStartedEvent)
            keep(event, queryOf(((StreamingQueryListener.QueryStartedEvent) event).id()));
        else if (event.getClass().getName().indexOf("Update") < 0) keep(event, null);
    }

    private void keep(Object event, Object beside) {
        if (!events.offer(new Object[] {event, beside})) dropped.incrementAndGet();
    }

    /** Null where it has ended. */
    private static Object queryOf(java.util.UUID id) {
        try {
            scala.Option session = SparkSession.getDefaultSession();
            return session.isEmpty() ? null : ((SparkSession) session.get()).sharedState().activeStreamingQueries().get(id);
        } catch (Throwable e) {
            return null;  // it is looked up later, or said to be unknown
        }
    }

    /** Null where it has ended: the scheduler's map is another thread's. */
    private Object stageOf(int job) {
        try {
            scala.Option active = context.dagScheduler().jobIdToActiveJob().get(Integer.valueOf(job));
            return active.isEmpty() ? null : ((ActiveJob) active.get()).finalStage();
        } catch (Throwable e) {
            return null;  // that it saved something unknown is reported
        }
    }
}
