package headwater.capture;

import org.apache.spark.sql.catalyst.plans.QueryPlan;

/** An extractor that also knows what a command means to its format. */
public interface CommandExtractor {
    /** Entries of a command's arguments, written into an object that is open; nothing where it isn't this format's. */
    void command(QueryPlan command, PlanWriter plan, Json json) throws Exception;
}
