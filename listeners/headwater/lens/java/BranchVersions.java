package headwater.lens;

import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SessionState;

/**
 * `VERSION AS OF 'branch.tag'` and `'branch.snapshot'`, which no format reads: what stands there becomes the snapshot's number before
 * tables are looked up. Nothing else of a statement is looked at, and a version that the table's format knows itself stays.
 */
final class BranchVersions extends scala.runtime.AbstractPartialFunction {
    static final String KEY = "spark.headwater.read.branch.versions";
    static final String MAIN = "main";

    private final SessionState session;

    private BranchVersions(SessionState session) {
        this.session = session;
    }

    /** The plan with snapshots in the place of such versions, where the session wants that. */
    static LogicalPlan apply(SessionState session, LogicalPlan plan) {
        String asked = session.conf().getConfString(KEY, null);
        if (asked == null || !ConsistentSettings.isWanted(asked)) return plan;
        return plan.resolveOperatorsDown(new BranchVersions(session));
    }

    public boolean isDefinedAt(Object node) {
        return node instanceof RelationTimeTravel;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        if (!(node instanceof RelationTimeTravel)) return otherwise.apply(node);
        RelationTimeTravel travel = (RelationTimeTravel) node;
        if (travel.version().isEmpty() || !(travel.relation() instanceof UnresolvedRelation)) return travel;
        String version = (String) travel.version().get();
        int dot = version.indexOf('.');
        if (dot < 1 || dot == version.length() - 1) return travel;
        return ofBranch(travel, version.substring(0, dot), version.substring(dot + 1));
    }

    private LogicalPlan ofBranch(RelationTimeTravel travel, String branch, String part) {
        UnresolvedRelation relation = (UnresolvedRelation) travel.relation();
        scala.collection.Seq parts = relation.multipartIdentifier();
        TableBranches branches = branches(parts);
        if (branches == null || branches.hasVersion(branch + "." + part)) return travel;
        refuseUnclear();
        BranchVersion found = branches.find(branch, part);
        UnresolvedRelation named = relation;
        if (!found.suffix.isEmpty()) named = new UnresolvedRelation(withSuffix(parts, found.suffix), relation.options(), false);
        return new RelationTimeTravel(named, scala.Option.empty(), scala.Option.apply(found.version));
    }

    /** A word that is neither true nor false is refused where it matters: the SET that mends it has to pass. */
    private void refuseUnclear() {
        String asked = session.conf().getConfString(KEY, "");
        if (!ConsistentSettings.isTrue(asked)) throw new LensError(KEY + " = " + asked + " is neither true nor false");
    }

    /** The branches of the table that a name means; null if there is none of a format that has branches. Spark says what is wrong. */
    private TableBranches branches(scala.collection.Seq parts) {
        if (LensRewrite.isTemporaryView(session, parts)) return null;
        String[] full = TableNames.full(parts, session, AnalysisContext.get().catalogAndNamespace());
        if (full == null) return null;
        try {
            CatalogPlugin catalog = session.catalogManager().catalog(full[0]);
            if (!(catalog instanceof TableCatalog)) return null;
            Identifier identifier = UnreadablePin.identifier((String[]) java.util.Arrays.copyOfRange(full, 1, full.length - 1), full[full.length - 1]);
            Table table = ((TableCatalog) catalog).loadTable(identifier);
            return TableBranches.of((TableCatalog) catalog, identifier, table, String.join(".", full));
        } catch (Exception notThere) {
            return null;
        }
    }

    private ScalaSeq withSuffix(scala.collection.Seq parts, String suffix) {
        try {
            String name = LensRewrite.quoted(parts);
            return (ScalaSeq) session.sqlParser().parseMultipartIdentifier(name.substring(0, name.length() - 1) + suffix.replace("`", "``") + "`");
        } catch (Exception e) {
            throw new LensError("the branch's name can't be parsed: " + e.getMessage(), e);
        }
    }
}
