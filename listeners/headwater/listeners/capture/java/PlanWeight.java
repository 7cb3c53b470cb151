package headwater.capture;

import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;

/**
 * About how many bytes of the heap stay in use while a plan that has run waits to be read.
 *
 * Columns and operators are in the analyzed, the optimized and the physical plan. What a join broadcast, and rows that
 * stand in the plan itself, can be far more than the plan.
 */
final class PlanWeight {
    private static final long PLAN = 60000;
    private static final long OPERATOR = 4000;
    private static final long COLUMN = 1200;
    private static final long CELL = 40;
    private static final long CHARACTER = 32;
    private static final int MOST = 10000;

    private PlanWeight() { }

    static long of(QueryExecution query) {
        try {
            Object plan = LazyFields.value(query, "executedPlan");
            return PLAN + parsed(query) + (plan == null ? 0L : of((SparkPlan) plan, new IdentityHashMap()));
        } catch (Throwable e) {
            CaughtErrors.log("PlanWeight.of", e);
            return 20 * PLAN;
        }
    }

    /** What was parsed stays with the statement: a list of values is an expression for each. */
    private static long parsed(QueryExecution query) {
        Object text = ScalaOptions.get(query.logical().origin().sqlText());
        return text == null ? 0L : CHARACTER * ((String) text).length();
    }

    private static long of(SparkPlan plan, Map seen) throws Exception {
        if (seen.size() > MOST || seen.put(plan, plan) != null) return 0;
        int columns = plan.output().size();
        long found = OPERATOR + columns * COLUMN;
        if (plan instanceof LocalTableScanExec) found += CELL * columns * (long) ((LocalTableScanExec) plan).rows().size();
        if (plan instanceof BroadcastExchangeExec) found += broadcast(plan);
        if (plan instanceof AdaptiveSparkPlanExec) found += of(((AdaptiveSparkPlanExec) plan).executedPlan(), seen);
        if (plan instanceof QueryStageExec) found += of(((QueryStageExec) plan).plan(), seen);
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) found += of((SparkPlan) children.get(i), seen);
        return found;
    }

    private static long broadcast(SparkPlan plan) {
        Object size = ScalaOptions.get(plan.metrics().get("dataSize"));
        return size == null ? 0L : ((Number) ((org.apache.spark.util.AccumulatorV2) size).value()).longValue();
    }
}
