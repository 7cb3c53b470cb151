package headwater.lens;

import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/**
 * What a lens has pinned below a node of a plan. DataFrames and views keep their plans and are read under other lenses,
 * so the node says which versions it has; a version that somebody wrote himself has no such tag.
 */
final class PlanPin {
    private static final TreeNodeTag TAG = new TreeNodeTag("headwater.lens.pin");

    /** By the name that the lens pins: a table, or topics of Kafka. */
    final Map versions;
    final LensSpec lens;

    private PlanPin(Map versions, LensSpec lens) {
        this.versions = versions;
        this.lens = lens;
    }

    /** Spark copies tags to what a node is resolved to. */
    static LogicalPlan mark(LogicalPlan node, Map versions, LensSpec lens) {
        node.setTagValue(TAG, new PlanPin(versions, lens));
        return node;
    }

    static LogicalPlan mark(LogicalPlan node, String table, LensSpec lens) {
        return mark(node, Collections.singletonMap(table, lens.pinOf(table)), lens);
    }

    static PlanPin of(LogicalPlan node) {
        scala.Option found = node.getTagValue(TAG);
        return found.isDefined() ? (PlanPin) found.get() : null;
    }

    /** What of it another lens reads at another version, or doesn't pin; null if that has all of it. */
    String differsFrom(LensSpec other) {
        for (Iterator all = versions.keySet().iterator(); all.hasNext();) {
            String table = (String) all.next();
            if (!versions.get(table).equals(other.pinOf(table))) return table;
        }
        return null;
    }
}
