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
        try {
            state.refuseIfClosed();
            return super.apply(LensRewrite.apply(lens, session, BranchVersions.apply(session, plan)));
        } catch (Exception e) {
            Throwable explained = UnreadablePin.explain(lens, session, plan, e);
            if (explained instanceof LensError) state.note(explained);
            org.apache.spark.unsafe.Platform.throwException(explained);
            throw e;
        }
    }

    /** Whether the session has this lens. A clone has that of the session that it was made of. */
    public boolean isOf(Object other) {
        return state == other;
    }
}
