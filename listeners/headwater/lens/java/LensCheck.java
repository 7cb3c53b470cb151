package headwater.lens;

import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Refuses a plan that reads or writes something which the lens doesn't answer for. It trusts nothing that came before. */
public final class LensCheck {
    private static final Set LOCAL = setOf("LocalRelation,OneRowRelation,Range,CommandResult,CTERelationRef,LogicalRDD,EmptyRelation,ExternalRDD,UnresolvedSubqueryColumnAliases,UnionLoopRef,InlineTable,ResolvedInlineTable,CurrentNamespace,MemoryPlan,CompoundBody,"
        + "ClearCacheCommand,ResetCommand,CreateSQLFunctionCommand");
    private static final Set STARTED = setOf("StreamingDataSourceV2Relation,StreamingDataSourceV2ScanRelation,StreamingExecutionRelation");
    /** It calls whatever Java the statement names. */
    private static final String REFLECTION = "CallMethodViaReflection";
    private static final String COMMAND = "command:";

    private static final LensSpec EVERYTHING = new LensSpec("reads", true, true);

    private final LensSpec lens;
    /** Where what is read is noted; null unless it is asked for. */
    private final PlanReads reads;
    private final IdentityHashMap seen = new IdentityHashMap();
    private final Set written = new HashSet();
    /** Tables that a lens has pinned in this plan. */
    private final Set pinned = new HashSet();

    private LensCheck(LensSpec lens, PlanReads reads) {
        this.lens = lens;
        this.reads = reads;
    }

    public static void check(LensSpec lens, LogicalPlan plan) {
        new LensCheck(lens, null).visit(plan);
    }

    /** Note what a plan reads, and refuse nothing. */
    static void collect(LogicalPlan plan, PlanReads reads) {
        new LensCheck(EVERYTHING, reads).visit(plan);
    }

    private void visit(Object element) {
        if (element == null || seen.put(element, Boolean.TRUE) != null) return;
        if (element instanceof scala.Option) {
            if (((scala.Option) element).isDefined()) visit(((scala.Option) element).get());
        } else if (element instanceof scala.collection.Seq) {
            for (scala.collection.Iterator all = ((scala.collection.Seq) element).iterator(); all.hasNext();) visit(all.next());
        } else if (element instanceof Expression) {
            if (PlanNodes.name(element).equals(REFLECTION)) refuseUnlisted(REFLECTION);
            if (element instanceof PlanExpression) visit(((PlanExpression) element).plan());
            visit(((Expression) element).children());
        } else if (element instanceof LogicalPlan) {
            visitPlan((LogicalPlan) element);
        }
    }

    private void visitPlan(LogicalPlan plan) {
        if (plan instanceof InMemoryRelation) {
            visit(Leaves.call(((InMemoryRelation) plan).cacheBuilder(), "logicalPlan"));
            return;
        }
        pin(PlanPin.of(plan));
        refuseUnlisted(lens, plan);
        if (plan instanceof ExplainCommand) {
            refuseUnlistedBelow(lens, ((ExplainCommand) plan).logicalPlan());  // nothing of it is run, but a procedure
            return;
        }
        if (PlanNodes.startsStream(plan)) checkSink(plan);
        if (PlanNodes.isOfSession(plan)) visit(plan.children());
        else if (PlanNodes.isWrite(plan)) visitWrite(plan);
        else if (plan instanceof Command && !PlanNodes.isQuery(plan)) refuseUnlisted(PlanNodes.name(plan));
        else if (plan.children().isEmpty()) visitLeaf(plan);
        visit(plan.children());
        if (plan instanceof V2WriteCommand) return;  // its table is no child, and was looked at
        for (int i = 0; i < plan.productArity(); i++) visit(plan.productElement(i));
    }

    /** What was pinned when a DataFrame or a view was made has to be what is pinned now. */
    private void pin(PlanPin pin) {
        if (pin == null) return;
        pinned.addAll(pin.versions.keySet());
        if (reads != null) reads.pins.add(pin);
        String other = reads == null ? pin.differsFrom(lens) : null;
        if (other != null) throw pinError(lens, other, pin);
    }

    /** Refuse a node that isn't on the list. The analysis of some of them does something already. */
    static void refuseUnlisted(LensSpec lens, LogicalPlan plan) {
        if (!lens.writesElsewhere && !PlanNodes.isListed(plan) && !lens.isAllowed(COMMAND + PlanNodes.name(plan))) throw unknownError(lens, PlanNodes.name(plan));
    }

    private static void refuseUnlistedBelow(LensSpec lens, LogicalPlan plan) {
        refuseUnlisted(lens, plan);
        for (scala.collection.Iterator all = plan.children().iterator(); all.hasNext();) refuseUnlistedBelow(lens, (LogicalPlan) all.next());
    }

    private void refuseUnlisted(String name) {
        if (!lens.writesElsewhere && !lens.isAllowed(COMMAND + name)) throw unknownError(lens, name);
    }

    private void checkSink(LogicalPlan stream) {
        Object sink = Leaves.call(stream, "sink");
        if (lens.writesElsewhere || sink == null || PlanNodes.isHarmlessSink(sink)) return;
        String name = sinkName(stream, sink);
        if (!lens.mayWrite(name)) throw sinkError(lens, name);
    }

    static String sinkName(LogicalPlan stream, Object sink) {
        Object pair = Leaves.call(stream, "catalogAndIdent");
        if (pair instanceof scala.Option && ((scala.Option) pair).isDefined()) {
            scala.Tuple2 both = (scala.Tuple2) ((scala.Option) pair).get();
            return TableNames.of((org.apache.spark.sql.connector.catalog.CatalogPlugin) both._1(), (org.apache.spark.sql.connector.catalog.Identifier) both._2());
        }
        Set names = new HashSet();
        addName(names, Leaves.call(stream, "catalogTable"));
        Object path = Leaves.field(sink, "path");
        if (names.isEmpty() && (path instanceof String || path instanceof org.apache.hadoop.fs.Path)) names.add(TableNames.path(path.toString()));
        Object name = names.isEmpty() ? Leaves.call(sink, "name") : null;
        if (name != null) names.add(name);
        return (String) (names.isEmpty() ? PlanNodes.name(sink) : names.iterator().next());
    }

    private void visitLeaf(LogicalPlan leaf) {
        String type = leaf.getClass().getSimpleName();
        TopicRead topics = TopicRead.of(leaf);
        if (topics != null) {
            topics(topics);
        } else if (leaf instanceof DataSourceV2Relation) {
            DataSourceV2Relation relation = (DataSourceV2Relation) leaf;
            if (isRowLevel(relation)) return;
            if (Leaves.hasFixedVersion(relation)) fixed(relation);
            else read(Leaves.name(relation), true);
        } else if (leaf instanceof LogicalRelation) {
            LogicalRelation relation = (LogicalRelation) leaf;
            if (Leaves.isInternal(relation)) return;
            if (Leaves.hasFixedVersion(relation)) {
                fixed(Leaves.name(relation), ((org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation.relation()).location());
                return;
            }
            String location = Leaves.location(relation);
            read(Leaves.name(relation), location.startsWith("Tahoe") || location.startsWith("Hoodie"));
        } else if (type.equals("HiveTableRelation")) {
            read(TableNames.ofSessionTable(((org.apache.spark.sql.catalyst.catalog.HiveTableRelation) leaf).tableMeta().identifier()), false);
        } else if (STARTED.contains(type)) {
            return;  // the stream was checked when it started
        } else if (type.startsWith("Streaming")) {
            Object table = Leaves.call(leaf, "identifier");
            stream(leaf, table);
        } else if (!LOCAL.contains(type) && !type.startsWith("Resolved") && !type.startsWith("Unresolved")) {
            if (reads == null) read(type + " " + leaf.simpleString(100), false);
        }
    }

    private void topics(TopicRead read) {
        if (reads != null && !read.withoutEnd().isEmpty()) reads.unpinned.add(read.name(lens));
        for (java.util.Iterator all = read.withoutEnd().iterator(); all.hasNext();) {
            String topic = (String) all.next();
            if (!read.mayRead(lens, topic)) throw readError(lens, read.name(lens, topic), true);
        }
    }

    private void topicStream(TopicRead read) {
        if (read.isToPin(lens)) throw streamError(lens, read.name(lens));
        if (lens.mayRead("stream:kafka")) return;
        for (java.util.Iterator all = read.subjects().iterator(); all.hasNext();) {
            String topic = (String) all.next();
            if (!read.mayRead(lens, topic)) throw streamError(lens, read.name(lens, topic));
        }
    }

    private void stream(LogicalPlan leaf, Object identifier) {
        TopicRead topics = TopicRead.ofStream(leaf);
        if (topics != null) {
            topicStream(topics);
            return;
        }
        String name;
        Object catalog = Leaves.call(leaf, "catalog");
        if (identifier instanceof scala.Option && ((scala.Option) identifier).isDefined() && catalog instanceof scala.Option && ((scala.Option) catalog).isDefined()) {
            name = TableNames.of((org.apache.spark.sql.connector.catalog.CatalogPlugin) ((scala.Option) catalog).get(), (org.apache.spark.sql.connector.catalog.Identifier) ((scala.Option) identifier).get());
        } else {
            Object source = Leaves.call(leaf, "sourceName");
            name = "stream:" + (source == null ? leaf.getClass().getSimpleName() : source);
        }
        if (lens.pinOf(name) != null || !lens.mayRead(name)) throw streamError(lens, name);
    }

    private void fixed(DataSourceV2Relation relation) {
        String missing = relation.options().containsKey(LensRewrite.PINNED) ? UnreadablePin.missing(relation) : null;
        if (missing != null && reads == null) throw new LensError(UnreadablePin.message(lens, missing));
        if (missing != null) reads.missing.add(missing);
        fixed(Leaves.name(relation), relation.table());
    }

    private void fixed(String name, Object table) {
        if (reads != null) reads.fixed.put(name, Leaves.generation(table));
        else if (pinned.contains(name) && lens.isOfAnother(name, Leaves.generation(table))) throw generationError(lens, name);
    }

    private void read(String name, boolean hasVersions) {
        if (reads != null) {
            reads.seen.add(name);
            if (!written.contains(name)) reads.unpinned.add(name);
        }
        if (!written.contains(name) && !lens.mayRead(name)) throw readError(lens, name, hasVersions);
    }

    private void visitWrite(LogicalPlan plan) {
        Object target = PlanNodes.target(plan);
        Set names = new HashSet();
        addName(names, target);
        if (names.isEmpty()) addPath(names, target);
        if (names.isEmpty()) {
            refuseUnlisted(PlanNodes.name(plan));
            return;
        }
        String name = (String) names.iterator().next();
        if (!lens.mayWrite(name)) throw writeError(lens, name);
        Places places = Places.of(plan);
        for (java.util.Iterator all = places.all().iterator(); all.hasNext();) {
            String place = TableNames.path((String) all.next());
            if (!lens.mayWrite(place)) throw placeError(lens, name, place);
        }
        String setting = HudiSettings.leadingAway(lens, plan, name, places.options());
        if (setting != null) throw settingError(lens, name, setting);
        if (reads != null || PlanNodes.changesRows(plan)) written.add(name);
        if (reads != null) reads.written.put(name, RowEffects.of(plan));
        else if (target instanceof LogicalPlan) seen.put(target, Boolean.TRUE);  // it isn't read there
    }

    private static void addName(Set names, Object target) {
        Object found = target;
        if (found instanceof scala.Option) found = ((scala.Option) found).isDefined() ? ((scala.Option) found).get() : null;
        if (found != null && found.getClass().getSimpleName().equals("HoodieCatalogTable")) found = Leaves.call(found, "table");
        while (found instanceof LogicalPlan && ((LogicalPlan) found).children().size() == 1) found = ((LogicalPlan) found).children().apply(0);
        if (found instanceof DataSourceV2Relation) names.add(Leaves.name((DataSourceV2Relation) found));
        else if (found instanceof LogicalRelation) names.add(Leaves.name((LogicalRelation) found));
        else if (found instanceof ResolvedIdentifier) names.add(TableNames.of(((ResolvedIdentifier) found).catalog(), ((ResolvedIdentifier) found).identifier()));
        else if (found instanceof ResolvedTable) names.add(TableNames.of(((ResolvedTable) found).catalog(), ((ResolvedTable) found).identifier()));
        else if (found instanceof org.apache.spark.sql.catalyst.catalog.CatalogTable) names.add(TableNames.ofSessionTable(((org.apache.spark.sql.catalyst.catalog.CatalogTable) found).identifier()));
        else if (found instanceof org.apache.spark.sql.catalyst.TableIdentifier) names.add(TableNames.ofSessionTable((org.apache.spark.sql.catalyst.TableIdentifier) found));
        else if (found instanceof org.apache.spark.sql.catalyst.catalog.HiveTableRelation) names.add(TableNames.ofSessionTable(((org.apache.spark.sql.catalyst.catalog.HiveTableRelation) found).tableMeta().identifier()));
    }

    private static void addPath(Set names, Object target) {
        Object path = target;
        if (path instanceof scala.collection.Map) {
            scala.Option found = ((scala.collection.Map) path).get("path");
            path = found.isDefined() ? found.get() : null;
        }
        if (path instanceof String || path instanceof org.apache.hadoop.fs.Path) names.add(TableNames.path(path.toString()));
    }

    private static boolean isRowLevel(DataSourceV2Relation relation) {
        return relation.table().getClass().getSimpleName().equals("RowLevelOperationTable");
    }

    private static Set setOf(String names) {
        return new HashSet(java.util.Arrays.asList(names.split(",")));
    }

    static LensError readError(LensSpec lens, String name, boolean hasVersions) {
        String pin = TopicRead.isTopic(name) ? "pin it to its offsets" : hasVersions ? "pin it to a version, or redirect it" : "it has no versions that could be pinned, so redirect it";
        return new LensError("the lens '" + lens.name + "' says nothing of " + name + ", which would be read as it is now: " + pin + ", or allow it by this name. If it is pinned, the DataFrame, view or cached table was made before the lens: make it anew");
    }

    static LensError pinError(LensSpec lens, String name, PlanPin pin) {
        String now = lens.pinOf(name) == null ? " isn't pinned, so it would be read as it is now" : " is read at " + lens.pinOf(name);
        return new LensError("under the lens '" + lens.name + "' " + name + now + ", and a DataFrame, view or cached table that was made under the lens '" + pin.lens.name + "' has it at " + pin.versions.get(name) + ": make it anew");
    }

    static LensError generationError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' can't pin " + name + ": it is another table than the one whose version was asked for, because that was dropped and made again. Its versions are others: choose among those");
    }

    static LensError writeError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' doesn't redirect " + name + ", which would be written: redirect it, or allow it by this name");
    }

    static LensError placeError(LensSpec lens, Object name, String location) {
        return new LensError("the lens '" + lens.name + "' would have " + name + " put at " + location + ", where the table may be that it stands for: leave the location out, or allow it by this path");
    }

    static LensError settingError(LensSpec lens, Object name, String setting) {
        return new LensError("the lens '" + lens.name + "' would have " + name + " written where the setting or option " + setting + " leads, or made known under that name: leave it out, or allow it by the name " + HudiSettings.ALLOWED + setting);
    }

    static LensError streamError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' can't pin a streaming read of " + name + ", which goes on with what is written later: read it in batch, or don't pin it and allow it by this name");
    }

    static LensError branchStreamError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' leads " + name + " to a branch, and a stream of Iceberg reads main whatever branch is asked for: read it in batch");
    }

    static LensError branchSinkError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' leads " + name + " to a branch, and a stream of Iceberg writes main on this Spark: write in foreachBatch");
    }

    static LensError branchError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' leads " + name + " to a branch, which isn't dropped, or made anew as a table: replace its rows, by INSERT OVERWRITE, insertInto or overwritePartitions");
    }

    static LensError sinkError(LensSpec lens, String name) {
        return new LensError("the lens '" + lens.name + "' doesn't redirect this sink of a stream, and it would write " + name + ": write it by the name of a table that is redirected, or in foreachBatch, or allow it by this name");
    }

    static LensError checkpointError(LensSpec lens, String path) {
        return new LensError("the lens '" + lens.name + "' leads to no other checkpoint from " + path + ", so that a stream would read all once more: let it use the checkpoint that it has in production");
    }

    static LensError unknownError(LensSpec lens, String type) {
        return new LensError("the lens '" + lens.name + "' redirects writes, and isn't known to redirect all that " + type + " does: do it outside of the lens, or allow it by the name " + COMMAND + type);
    }
}
