package headwater.lens;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** What an analysed plan reads: tables whose version a rule of ours has chosen, and those that are read as they are now. */
final class PlanReads {
    /** Tables with a fixed version: by full name the id of the table that was found, empty where its format doesn't say it. */
    final Map fixed = new LinkedHashMap();
    /** Those of them that say that a rule of ours has chosen it. Delta's files don't. */
    final Set pinned = new LinkedHashSet();
    /** Those of them that have no such version, and what they have. */
    final Set missing = new LinkedHashSet();
    final Set unpinned = new LinkedHashSet();
    /** All tables that are read as they are now, also those that the plan writes. */
    final Set seen = new LinkedHashSet();
    /** What happens to the rows of the tables that are written, by full name. */
    final Map written = new LinkedHashMap();

    private PlanReads() { }

    static PlanReads of(LogicalPlan plan) {
        PlanReads found = new PlanReads();
        LensCheck.collect(plan, found);
        return found;
    }
}
