package headwater.capture;

import java.util.UUID;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** Stands for streams on a Spark whose streaming classes aren't those that the sources name: each micro-batch is a gap. */
public final class NoStreamCapture implements StreamCapture {
    public NoStreamCapture() { }

    public void use(CatalogWriter catalogs, ValueWriter values, boolean sql) { }

    public String unknown() { return "streaming queries can't be read on this version of Spark"; }

    public void adopt(Statement statement, QueryExecution query) { }

    public StreamQuery at(UUID id, UUID run, Object running) { return null; }

    public StreamQuery of(StreamingQueryListener.Event event) { return null; }

    public StreamQuery ended(UUID run) { return null; }

    public void clear() { }

    public String started(StreamQuery stream, Statement first, QueryExecution query) { throw new IllegalStateException(unknown()); }

    public String ended(StreamingQueryListener.QueryTerminatedEvent end) { return null; }

    public LogicalPlan whole(StreamQuery stream, LogicalPlan batch) { throw new IllegalStateException(unknown()); }

    public PlanWriter shape(StreamQuery stream, LogicalPlan whole) { throw new IllegalStateException(unknown()); }

    public void batch(Statement statement, LogicalPlan plan, Json json) { throw new IllegalStateException(unknown()); }
}
