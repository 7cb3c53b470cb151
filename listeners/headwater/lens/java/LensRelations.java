package headwater.lens;

import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SessionState;

/** Spark's rule that looks tables up, for whatever is analysed in a session: here it sees a plan that the lens went over. */
public final class LensRelations extends org.apache.spark.sql.catalyst.analysis.Analyzer$ResolveRelations$ {
    private final LensState state;
    private final SessionState session;

    public LensRelations(Analyzer analyzer, LensState state, SessionState session) {
        analyzer.super();
        this.state = state;
        this.session = session;
    }

    /** Spark knows its rules by name. */
    public String ruleName() {
        return "org.apache.spark.sql.catalyst.analysis.Analyzer$ResolveRelations";
    }

    public LogicalPlan apply(LogicalPlan plan) {
        LensSpec lens = state.current;
        if (lens == null || Executions.isInternal(state.context)) return super.apply(plan);
        LogicalPlan rewritten = LensRewrite.apply(lens, session, plan);
        try {
            return super.apply(rewritten);
        } catch (Exception e) {
            org.apache.spark.unsafe.Platform.throwException(UnreadablePin.explain(lens, session, plan, e));
            throw e;
        }
    }
}
