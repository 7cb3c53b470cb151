package headwater.lens;

import org.apache.spark.SparkContext;

/** Which execution this thread is in. */
final class Executions {
    private Executions() { }

    /** Whether a library analyses something of its own to run a command that was checked. In a micro-batch, it's users. */
    static boolean isInternal(SparkContext active) {
        return active.getLocalProperty("spark.sql.execution.id") != null && active.getLocalProperty("sql.streaming.queryId") == null;
    }

    /** The plan of the statement that this thread runs; null if it runs none, or a part of one only. */
    static org.apache.spark.sql.execution.QueryExecution root(SparkContext active) {
        String id = active.getLocalProperty("spark.sql.execution.id");
        String root = active.getLocalProperty("spark.sql.execution.root.id");
        if (id == null || (root != null && !root.equals(id))) return null;
        return org.apache.spark.sql.execution.SQLExecution.getQueryExecution(Long.parseLong(id));
    }
}
