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
    /** What a rule of ours has chosen. */
    final Set pins = new LinkedHashSet();
    /** Those of them that have no such version, and what they have. */
    final Set missing = new LinkedHashSet();
    final Set unpinned = new LinkedHashSet();
    /** All tables that are read as they are now, also those that the plan writes. */
    final Set seen = new LinkedHashSet();
    /** What happens to the rows of the tables that are written, by full name. */
    final Map written = new LinkedHashMap();

    private PlanReads() { }

    /** The tables whose version a rule of ours has chosen. */
    Set pinned() {
        Set names = new LinkedHashSet();
        for (java.util.Iterator all = pins.iterator(); all.hasNext();) names.addAll(((PlanPin) all.next()).versions.keySet());
        return names;
    }

    /** Whether what was chosen was chosen together, or might have been: one choice has all of it. */
    boolean areOfOneCut() {
        if (pins.isEmpty()) return true;
        for (java.util.Iterator all = pins.iterator(); all.hasNext();) if (hasAll(((PlanPin) all.next()).lens)) return true;
        return false;
    }

    private boolean hasAll(LensSpec lens) {
        for (java.util.Iterator all = pins.iterator(); all.hasNext();) if (((PlanPin) all.next()).differsFrom(lens) != null) return false;
        return true;
    }

    static PlanReads of(LogicalPlan plan) {
        PlanReads found = new PlanReads();
        LensCheck.collect(plan, found);
        return found;
    }
}
