package headwater.capture;

import java.util.UUID;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/**
 * What is captured of streaming queries.
 *
 * Spark moves the classes of streaming between its versions. All that names them is behind this, so that where it
 * doesn't compile, statements that are no micro-batches are captured all the same.
 */
public interface StreamCapture {
    /** Who writes plans and catalogs for it, given once. */
    void use(CatalogWriter catalogs, ValueWriter values, boolean sql);
    /** Why a micro-batch of a query that isn't known can't be read. */
    String unknown();
    /** Set which query and batch a statement is of. */
    void adopt(Statement statement, QueryExecution query);
    /** The run, where it is known or still active; else null. `running` is what runs it, where somebody kept that. */
    StreamQuery at(UUID id, UUID run, Object running);
    /** The run of which something was reported that isn't its start or end; null where it isn't there any more. */
    StreamQuery of(StreamingQueryListener.Event event);
    /** Forget a run, and return it if it was known. */
    StreamQuery ended(UUID run);
    void clear();
    /** The text that a query runs: `first` is its first batch, where it has one. */
    String started(StreamQuery stream, Statement first, QueryExecution query);
    /** The text that a query ended. */
    String ended(StreamingQueryListener.QueryTerminatedEvent end);
    /** The write of a batch, over the query as it was analysed. */
    LogicalPlan whole(StreamQuery stream, LogicalPlan batch) throws Exception;
    /** Who knows the attributes of the query's shape, which is written with the first batch. */
    PlanWriter shape(StreamQuery stream, LogicalPlan whole) throws Exception;
    /** Write what is a batch's own into the open object of its statement. */
    void batch(Statement statement, LogicalPlan plan, Json json) throws Exception;
}
