package headwater.capture;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.StreamExecution;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/** Captures streaming queries. Those that run are kept by their runs, and looked up when Spark first tells of them. */
public final class StreamRuns implements StreamCapture {
    private final Map byRun = new HashMap();
    private StreamWriter writer;

    public StreamRuns() { }

    public void use(CatalogWriter catalogs, ValueWriter values, boolean sql) { writer = new StreamWriter(catalogs, values, sql); }

    public String unknown() { return "its query had ended before it could be looked at"; }

    public void adopt(Statement statement, QueryExecution query) {
        IncrementalExecution batch = (IncrementalExecution) query;
        statement.stream = at(batch.queryId(), batch.runId());
        statement.batch = batch.currentBatchId();
    }

    private StreamQuery at(UUID id, UUID run) { return at(id, run, null); }

    public synchronized StreamQuery at(UUID id, UUID run, Object kept) {
        StreamRun known = (StreamRun) byRun.get(run);
        if (known != null) return known;
        StreamExecution running = kept instanceof StreamExecution ? (StreamExecution) kept : running(id, run);
        if (running == null) return null;
        StreamRun made = new StreamRun(running);
        byRun.put(run, made);
        return made;
    }

    private static StreamExecution running(UUID id, UUID run) {
        SparkSession session = (SparkSession) ScalaOptions.get(SparkSession.getDefaultSession());
        if (session == null) return null;
        Object found = session.sharedState().activeStreamingQueries().get(id);
        boolean fits = found instanceof StreamExecution && run.equals(((StreamExecution) found).runId());
        return fits ? (StreamExecution) found : null;
    }

    public StreamQuery of(StreamingQueryListener.Event event) {
        if (event instanceof StreamingQueryListener.QueryProgressEvent) {
            StreamingQueryProgress progress = ((StreamingQueryListener.QueryProgressEvent) event).progress();
            return at(progress.id(), progress.runId());
        }
        if (!(event instanceof StreamingQueryListener.QueryIdleEvent)) return null;
        StreamingQueryListener.QueryIdleEvent idle = (StreamingQueryListener.QueryIdleEvent) event;
        return at(idle.id(), idle.runId());
    }

    public synchronized StreamQuery ended(UUID run) { return (StreamQuery) byRun.remove(run); }

    public synchronized void clear() { byRun.clear(); }

    public String started(StreamQuery stream, Statement first, QueryExecution query) { return writer.started((StreamRun) stream, first, query); }

    public String ended(StreamingQueryListener.QueryTerminatedEvent end) { return writer.ended(end); }

    public LogicalPlan whole(StreamQuery stream, LogicalPlan batch) throws Exception { return writer.whole((StreamRun) stream, batch); }

    public PlanWriter shape(StreamQuery stream, LogicalPlan whole) throws Exception { return writer.shape((StreamRun) stream, whole); }

    public void batch(Statement statement, LogicalPlan plan, Json json) throws Exception { writer.batch(statement, plan, json); }
}
