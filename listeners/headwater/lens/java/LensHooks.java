package headwater.lens;

import java.lang.reflect.Field;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.internal.SessionState;
import scala.collection.immutable.List;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/** Puts a lens into a session, and takes it out: five fields of Spark's own objects, and a listener of its catalog. */
public final class LensHooks {
    private static final String BUILDER = "externalCatalogBuilder";
    private final SessionState session;
    private final LensState state;
    private final Object[] replaced = new Object[24];
    private int count;
    private LensDrops drops;

    private LensHooks(SessionState session, LensState state) {
        this.session = session;
        this.state = state;
    }

    public static LensHooks install(Object session, LensState state) throws Exception {
        LensHooks hooks = new LensHooks((SessionState) session, state);
        hooks.install();
        return hooks;
    }

    private void install() throws Exception {
        try {
            replaceInAnalyzer(session.analyzer());
            replaceInSession();
        } catch (Exception e) {
            uninstall();
            throw e;
        }
    }

    /** A session that is being cloned has no analyzer yet, and none can be made for it. */
    private void installInClone() throws Exception {
        replaceInSession();
        Field builder = find(session, "analyzerBuilder");
        replace(session, "analyzerBuilder", new AnalyzerBuilder((scala.Function0) builder.get(session), this));
    }

    private void replaceInAnalyzer(Analyzer analyzer) throws Exception {
        analyzer.ResolveRelations();  // made when it is asked for
        replace(analyzer, "ResolveRelations$module", new LensRelations(analyzer, state, session));
        replace(analyzer, "extendedCheckRules", with(analyzer.extendedCheckRules(), new Check(state)));
    }

    private void replaceInSession() throws Exception {
        guardDrops(session.catalog());
        replace(session, "planNormalizationRules", with(session.planNormalizationRules(), new RunCheck(state)));
        replace(session, "createClone", new Clone((scala.Function2) find(session, "createClone").get(session), state));
    }

    private void guardDrops(SessionCatalog catalog) throws Exception {
        Object made = find(catalog, "externalCatalog").get(catalog);
        drops = new LensDrops((scala.Function0) find(catalog, BUILDER).get(catalog), session, state);
        if (made == null) replace(catalog, BUILDER, drops);
        else drops.attach(made);
    }

    /** Everything is as it was. */
    public void uninstall() throws Exception {
        if (drops != null) drops.detach();
        while (count > 0) {
            count -= 3;
            ((Field) replaced[count]).set(replaced[count + 1], replaced[count + 2]);
        }
    }

    private void replace(Object of, String name, Object other) throws Exception {
        Field field = find(of, name);
        replaced[count] = field;
        replaced[count + 1] = of;
        replaced[count + 2] = field.get(of);
        field.set(of, other);
        count += 3;
    }

    static Field find(Object of, String name) throws Exception {
        for (Class type = of.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Field field = type.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException above) {
                continue;
            }
        }
        throw new NoSuchFieldException(of.getClass().getName() + "." + name);
    }

    static List with(scala.collection.Seq others, Object ours) {
        List all = scala.collection.immutable.Nil$.MODULE$;
        all = all.$colon$colon(ours);
        for (scala.collection.Iterator each = ((scala.collection.Seq) others.reverse()).iterator(); each.hasNext();) all = all.$colon$colon(each.next());
        return all;
    }

    /** After the analysis, on everything that is analysed in the session. */
    static final class Check extends AbstractFunction1 {
        private final LensState state;

        Check(LensState state) {
            this.state = state;
        }

        public Object apply(Object plan) {
            LensSpec lens = state.current;
            if (lens == null || Executions.isInternal(state.context)) return scala.runtime.BoxedUnit.UNIT;
            try {
                state.refuseIfClosed();
                LensCheck.check(lens, (LogicalPlan) plan);
            } catch (LensError e) {
                state.note(e);
                throw e;
            }
            return scala.runtime.BoxedUnit.UNIT;
        }
    }

    /** Before the optimizer, on everything that is run: also what was analysed before there was a lens. */
    static final class RunCheck extends Rule {
        private final LensState state;

        RunCheck(LensState state) {
            this.state = state;
        }

        public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
            LensSpec lens = state.current;
            org.apache.spark.sql.execution.QueryExecution running = lens == null ? null : Executions.root(state.context);
            if (running == null) return plan;
            try {
                state.refuseIfClosed();
                LensCheck.check(lens, running.analyzed());
            } catch (LensError e) {
                state.note(e);
                throw e;
            }
            state.uses.note(lens, running.analyzed());
            return plan;
        }
    }

    /** A stream runs in a clone of the session that started it, and data is cached in one. */
    static final class Clone extends AbstractFunction2 {
        private final scala.Function2 original;
        private final LensState state;

        Clone(scala.Function2 original, LensState state) {
            this.original = original;
            this.state = state;
        }

        public Object apply(Object session, Object old) {
            Object made = original.apply(session, old);
            if (state.current != null) {
                try {
                    new LensHooks((SessionState) made, state).installInClone();
                } catch (Exception e) {
                    throw new LensError("the lens can't be put into a session that is cloned for a stream or a cache: " + e);
                }
            }
            return made;
        }
    }

    /** The clone's analyzer, when it is made. */
    static final class AnalyzerBuilder extends scala.runtime.AbstractFunction0 {
        private final scala.Function0 original;
        private final LensHooks hooks;

        AnalyzerBuilder(scala.Function0 original, LensHooks hooks) {
            this.original = original;
            this.hooks = hooks;
        }

        public Object apply() {
            Object made = original.apply();
            try {
                hooks.replaceInAnalyzer((Analyzer) made);
            } catch (Exception e) {
                throw new LensError("the lens can't be put into a session that is cloned for a stream or a cache: " + e);
            }
            return made;
        }
    }
}
