package headwater.capture;

import org.apache.spark.sql.catalyst.plans.QueryPlan;

/** An extractor whose format has commands with literals that say what is to be done, not what data is. */
public interface LiteralArguments {
    /** Whether this is such a command. */
    boolean showsLiterals(QueryPlan command);
}
