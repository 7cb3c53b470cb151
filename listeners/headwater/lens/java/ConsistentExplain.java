package headwater.lens;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.ExplainCommand;
import scala.runtime.AbstractFunction0;

/** EXPLAIN in a session that reads consistently: Spark's own words, and below them the versions that would be read. */
final class ConsistentExplain extends AbstractFunction0 {
    private final ConsistentSession session;
    private final ExplainCommand command;

    private ConsistentExplain(ConsistentSession session, ExplainCommand command) {
        this.session = session;
        this.command = command;
    }

    /** What stands in the place of EXPLAIN; null if this isn't one, or none with versions to show. */
    static LogicalPlan of(ConsistentSession session, LogicalPlan plan) {
        if (!(plan instanceof ExplainCommand)) return null;
        return (LogicalPlan) org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(
            new ConsistentExplain(session, (ExplainCommand) plan));
    }

    public Object apply() {
        session.beginExplaining();
        String plan;
        String pins;
        try {
            QueryExecution inner = session.state.executePlan(command.logicalPlan(), CommandExecutionMode$.MODULE$.SKIP());
            plan = inner.explainString(command.mode());
        } finally {
            pins = session.endExplaining();
        }
        if (pins.isEmpty()) return null;
        Row row = RowFactory.create(new Object[] {plan + "\n== Consistent Reads ==\n" + pins});
        return LocalRelation$.MODULE$.fromExternalRows((ScalaSeq) command.output(), (ScalaSeq) scala.collection.immutable.Nil$.MODULE$.$colon$colon(row));
    }
}
