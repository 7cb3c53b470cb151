package headwater.capture;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * A write that analysis refused, which Spark tells from version 4 on. Its error has the plan as far as it was resolved:
 * what it would have written and read is recorded where that is resolved, and left out where it isn't.
 */
final class AnalysisFailure {
    private static final List WRITES = Arrays.asList(new Object[] {
        "InsertIntoStatement", "AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic",
        "CreateTableAsSelect", "ReplaceTableAsSelect", "MergeIntoTable", "UpdateTable", "DeleteFromTable"});
    private static final List RELATIONS = Arrays.asList(new Object[] {"LogicalRelation", "DataSourceV2Relation", "HiveTableRelation"});

    private AnalysisFailure() { }

    /** Null where it is none. */
    static LogicalPlan write(SparkListenerSQLExecutionEnd end) throws Exception {
        if (!end.executionFailure().isDefined() || end.qe() == null || LazyFields.value(end.qe(), "analyzed") != null) return null;
        LogicalPlan known = known(end);
        if (known != null && WRITES.contains(name(known))) return known;
        return WRITES.contains(name(end.qe().logical())) ? end.qe().logical() : null;
    }

    /** The plan that the error shows: of a table that is made, no more than the query. */
    private static LogicalPlan known(SparkListenerSQLExecutionEnd end) throws Exception {
        Object failure = end.executionFailure().get();
        Object known = ScalaOptions.get(LazyFields.optional(failure, "plan"));
        return known instanceof LogicalPlan ? (LogicalPlan) known : null;
    }

    /** The plan is a list of relations then: the one that is the `target`, if it is known, and `sources`. */
    static void describe(LogicalPlan write, SparkListenerSQLExecutionEnd end, PlanWriter plan, Json json) throws Exception {
        LogicalPlan target = below((LogicalPlan) ((scala.Product) write).productElement(0));
        if (isKnown(target) || name(target).equals("ResolvedIdentifier")) json.entry("target", plan.node(target));
        json.key("sources").openList();
        LogicalPlan known = known(end);
        if (known != null && known != write) sources(known, plan, json);
        for (int i = 1; i < ((scala.Product) write).productArity(); i++) {
            Object part = ((scala.Product) write).productElement(i);
            if (part instanceof LogicalPlan) sources((LogicalPlan) part, plan, json);
        }
        json.closeList();
    }

    private static void sources(LogicalPlan part, PlanWriter plan, Json json) throws Exception {
        List leaves = PlanWriter.list(part.collectLeaves());
        for (int i = 0; i < leaves.size(); i++)
            if (isKnown((LogicalPlan) leaves.get(i))) json.value(plan.node((LogicalPlan) leaves.get(i)));
    }

    private static LogicalPlan below(LogicalPlan plan) {
        while (plan instanceof SubqueryAlias) plan = (LogicalPlan) plan.children().head();
        return plan;
    }

    private static boolean isKnown(LogicalPlan plan) { return RELATIONS.contains(name(plan)) && plan.resolved(); }

    private static String name(LogicalPlan plan) { return plan.getClass().getSimpleName(); }
}
