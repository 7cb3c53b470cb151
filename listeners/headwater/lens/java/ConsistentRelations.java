package headwater.lens;

import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SessionState;
import scala.runtime.AbstractFunction1;

/**
 * Spark's rule that looks tables up: where a session reads consistently, it sees a plan whose tables are pinned; where it names
 * snapshots by their branch, one with their numbers.
 */
public final class ConsistentRelations extends org.apache.spark.sql.catalyst.analysis.Analyzer$ResolveRelations$ {
    private final ConsistentSession session;

    public ConsistentRelations(Analyzer analyzer, ConsistentSession session) {
        analyzer.super();
        this.session = session;
    }

    /** Whether the session has the rule now. One that has a lens hasn't, as long as that is open. */
    static boolean install(ConsistentReads reads, SessionState state) throws Exception {
        Analyzer analyzer = state.analyzer();
        synchronized (analyzer) {
            Object rule = analyzer.ResolveRelations();  // made when it is asked for
            if (rule instanceof ConsistentRelations) {
                ((ConsistentRelations) rule).session.reads = reads;
                return true;
            }
            if (rule instanceof LensRelations) return false;
            ConsistentSession session = new ConsistentSession(reads, state);
            LensHooks.find(analyzer, "extendedCheckRules").set(analyzer, LensHooks.with(analyzer.extendedCheckRules(), new Check(analyzer, session)));
            LensHooks.find(analyzer, "ResolveRelations$module").set(analyzer, new ConsistentRelations(analyzer, session));
            return true;
        }
    }

    /** Spark knows its rules by name. */
    public String ruleName() {
        return "org.apache.spark.sql.catalyst.analysis.Analyzer$ResolveRelations";
    }

    public LogicalPlan apply(LogicalPlan asked) {
        LogicalPlan plan = session.reads.isClosed() ? asked : BranchVersions.apply(session.state, asked);
        if (!session.isOn()) return super.apply(plan);
        LogicalPlan explained = ConsistentExplain.of(session, plan);
        if (explained != null) return explained;
        LensSpec pins = session.pinsFor(plan);
        if (pins == null) return super.apply(plan);
        try {
            return super.apply(LensRewrite.apply(pins, session.state, plan));
        } catch (Throwable e) {
            String unreadable = e instanceof LensError ? null : UnreadablePin.find(pins, session.state, plan);
            if (!session.goOnWithoutPins(unreadable == null ? e.getMessage() : unreadable)) {
                org.apache.spark.unsafe.Platform.throwException(unreadable == null ? e : session.unreadableError(unreadable, e));
            }
            return super.apply(plan);
        }
    }

    /** After the analysis, on everything that is analysed in the session. */
    static final class Check extends AbstractFunction1 {
        private final Analyzer analyzer;
        private final ConsistentSession session;

        Check(Analyzer analyzer, ConsistentSession session) {
            this.analyzer = analyzer;
            this.session = session;
        }

        public Object apply(Object plan) {
            if (session.isOn() && analyzer.ResolveRelations() instanceof ConsistentRelations) session.check((LogicalPlan) plan);
            return scala.runtime.BoxedUnit.UNIT;
        }
    }
}
