package headwater.capture;

import org.apache.spark.sql.catalyst.plans.QueryPlan;

/** An extractor whose format has commands of its own that are to be understood as some of Spark's are. */
public interface FormatCommands {
    /** Whether the literals of this command say what is to be done, as in a CALL, and not what data is. */
    boolean showsLiterals(QueryPlan command);
    /** Whether its arguments name tables of Spark's own catalog, as those of Spark's v1 commands do. */
    boolean namesSessionTables(QueryPlan command);
}
