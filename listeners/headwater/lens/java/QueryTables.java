package headwater.lens;

import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.internal.SessionState;

/** The names of the tables that a plan reads whose tables aren't looked up yet, also through views. */
final class QueryTables {
    private static final int DEEPEST = 32;

    /** Full names of tables that are read. Those with a version of their own, streams and what is written are no such. */
    final Set tables = new LinkedHashSet();
    /** These, and the names of views on the way. */
    final Set seen = new HashSet();
    private final SessionState session;
    private final boolean throughViews;

    private QueryTables(SessionState session, boolean throughViews) {
        this.session = session;
        this.throughViews = throughViews;
    }

    static QueryTables of(SessionState session, LogicalPlan plan) {
        return found(session, plan, true);
    }

    /** The names that stand in the plan itself: nothing is looked up. */
    static QueryTables named(SessionState session, LogicalPlan plan) {
        return found(session, plan, false);
    }

    private static QueryTables found(SessionState session, LogicalPlan plan, boolean throughViews) {
        QueryTables found = new QueryTables(session, throughViews);
        AnalysisContext context = AnalysisContext.get();
        found.visit(plan, new Scope(context.catalogAndNamespace(), context.referredTempViewNames(), new HashSet(), 0));
        return found;
    }

    private void visit(LogicalPlan plan, Scope scope) {
        if (plan instanceof UnresolvedRelation) {
            relation((UnresolvedRelation) plan, scope);
            return;
        }
        if (plan.getClass().getSimpleName().equals(LensRewrite.HUDI_TRAVEL)) return;
        Scope inside = plan instanceof UnresolvedWith ? withNames(plan, scope) : scope;
        LogicalPlan target = target(plan);
        for (scala.collection.Iterator all = plan.children().iterator(); all.hasNext();) {
            LogicalPlan child = (LogicalPlan) all.next();
            if (child != target) visit(child, inside);
        }
        for (scala.collection.Iterator all = plan.expressions().iterator(); all.hasNext();) visit((Expression) all.next(), inside);
    }

    private void visit(Expression expression, Scope scope) {
        if (expression instanceof PlanExpression) {
            Object plan = ((PlanExpression) expression).plan();
            if (plan instanceof LogicalPlan) visit((LogicalPlan) plan, scope);
        }
        for (scala.collection.Iterator all = expression.children().iterator(); all.hasNext();) visit((Expression) all.next(), scope);
    }

    private static LogicalPlan target(LogicalPlan plan) {
        if (plan instanceof MergeIntoTable) return ((MergeIntoTable) plan).targetTable();
        if (plan instanceof UpdateTable) return ((UpdateTable) plan).table();
        if (plan instanceof DeleteFromTable) return ((DeleteFromTable) plan).table();
        return null;
    }

    /** In a view's text the names of its CTEs still stand for themselves. */
    private Scope withNames(LogicalPlan with, Scope scope) {
        Scope inside = scope;
        for (scala.collection.Iterator all = ((scala.collection.Seq) with.productElement(1)).iterator(); all.hasNext();) {
            scala.Product each = (scala.Product) all.next();
            visit((LogicalPlan) each.productElement(1), inside);
            inside = inside.hiding((String) each.productElement(0));
        }
        return inside;
    }

    private void relation(UnresolvedRelation relation, Scope scope) {
        scala.collection.Seq parts = relation.multipartIdentifier();
        if (relation.isStreaming() || Leaves.hasVersionOption(relation.options()) || scope.hides(parts)) return;
        if (scope.mayBeTemporary(parts)) {
            scala.Option view = session.catalog().getRawLocalOrGlobalTempView((ScalaSeq) parts);
            if (view.isDefined()) {
                TemporaryViewRelation found = (TemporaryViewRelation) view.get();
                if (found.plan().isEmpty()) text(found.tableMeta(), scope);
                return;
            }
        }
        String name = TableNames.qualify(parts, session, scope.view);
        if (!seen.add(name)) return;
        CatalogTable view = throughViews ? view(name) : null;
        if (view == null) tables.add(name);
        else text(view, scope);
    }

    private void text(CatalogTable view, Scope scope) {
        if (!throughViews || view.viewText().isEmpty() || scope.depth >= DEEPEST) return;
        LogicalPlan plan;
        try {
            plan = session.sqlParser().parsePlan((String) view.viewText().get());
        } catch (Throwable e) {
            return;  // Spark will say what is wrong with it
        }
        visit(plan, new Scope(view.viewCatalogAndNamespace(), view.viewReferredTempViewNames(), new HashSet(), scope.depth + 1));
    }

    private CatalogTable view(String name) {
        String[] parts = name.split("\\.");
        if (parts.length != 3 || !parts[0].equals("spark_catalog")) return null;
        try {
            CatalogTable found = session.catalog().getTableMetadata(new org.apache.spark.sql.catalyst.TableIdentifier(parts[2], scala.Option.apply(parts[1])));
            return "VIEW".equals(found.tableType().name()) ? found : null;
        } catch (Throwable notThere) {
            return null;
        }
    }

    /** What names mean where they stand. */
    private static final class Scope {
        final scala.collection.Seq view;
        final scala.collection.Seq temporary;
        final Set hidden;
        final int depth;

        Scope(scala.collection.Seq view, scala.collection.Seq temporary, Set hidden, int depth) {
            this.view = view;
            this.temporary = temporary;
            this.hidden = hidden;
            this.depth = depth;
        }

        Scope hiding(String name) {
            Set more = new HashSet(hidden);
            more.add(name.toLowerCase(Locale.ROOT));
            return new Scope(view, temporary, more, depth);
        }

        boolean hides(scala.collection.Seq parts) {
            return parts.length() == 1 && hidden.contains(((String) parts.apply(0)).toLowerCase(Locale.ROOT));
        }

        /** Within a view only those count that it was made over. */
        boolean mayBeTemporary(scala.collection.Seq parts) {
            if (parts.length() > 2) return false;
            if (view.isEmpty()) return true;
            for (scala.collection.Iterator names = temporary.iterator(); names.hasNext();) if (names.next().equals(parts)) return true;
            return false;
        }
    }
}
