package headwater.lens;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What an analysed plan reads: tables whose version a rule of ours has chosen, and those that are read as they are now. */
final class PlanReads {
    /** By full name, the id of the table that was found, which is empty where its format doesn't say it. */
    final Map pinned = new LinkedHashMap();
    final Set unpinned = new LinkedHashSet();

    private PlanReads() { }

    static PlanReads of(LogicalPlan plan) {
        PlanReads found = new PlanReads();
        LensCheck.collect(plan, found);
        return found;
    }
}
