package headwater.lens;

import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * What statements that write did with the tables that a lens redirects to: each effect once, in their order. What is
 * only read has no effect on tables.
 */
final class TargetUses {
    private static final String READS = "READS";
    private final Set found = new LinkedHashSet();

    synchronized void note(LensSpec lens, LogicalPlan plan) {
        if (!lens.hasTargets()) return;
        PlanReads of = PlanReads.of(plan);
        Object query = Leaves.call(plan, "query");
        PlanReads before = query instanceof LogicalPlan ? PlanReads.of((LogicalPlan) query) : null;
        for (java.util.Iterator all = of.written.entrySet().iterator(); all.hasNext();) {
            Map.Entry each = (Map.Entry) all.next();
            if (!lens.isTarget((String) each.getKey())) continue;
            if (before != null && before.seen.contains(each.getKey())) found.add(READS + " " + each.getKey());
            found.add(each.getValue() + " " + each.getKey());
        }
        if (of.written.isEmpty()) return;
        for (java.util.Iterator all = of.seen.iterator(); all.hasNext();) {
            Object name = all.next();
            if (lens.isTarget((String) name) && !of.written.containsKey(name)) found.add(READS + " " + name);
        }
    }

    synchronized String text() {
        return String.join("\n", found);
    }
}
