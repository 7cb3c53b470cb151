package headwater.capture;

import org.apache.spark.sql.execution.QueryExecution;

/** An eye that also looks into the executions nested in a statement. */
public interface NestedEye {
    /** Entries of a hint, written into an object that is open; nothing where there is nothing to tell. */
    void nested(Statement statement, QueryExecution query, Json json) throws Exception;
}
