package headwater.capture;

import org.apache.spark.sql.execution.QueryExecution;

/** An extractor that also looks into the executions nested in a statement. */
public interface NestedPlanExtractor {
    /** Entries of a hint, written into an object that is open; nothing where there is nothing to tell. */
    void nested(Statement statement, QueryExecution query, Json json) throws Exception;
}
