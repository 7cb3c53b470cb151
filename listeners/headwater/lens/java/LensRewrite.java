package headwater.lens;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Puts what a lens says in the place of names, before Spark looks tables up. */
public final class LensRewrite extends scala.runtime.AbstractPartialFunction {
    /** On what is written, and so isn't pinned. */
    private static final TreeNodeTag TARGET = new TreeNodeTag("headwater.lens.target");
    /** On names that the lens has replaced, which aren't looked at again. */
    private static final TreeNodeTag REPLACED = new TreeNodeTag("headwater.lens.replaced");
    /** The time travel of somebody's own in Hudi, whose table is a child and is left alone. */
    static final String HUDI_TRAVEL = "TimeTravelRelation";
    /** In the options of a pinned relation: data that was cached of another version must not be taken for it. */
    static final String PINNED = "headwater-lens-version";
    /** What the statement writes that this thread analyses, with the cache of its analysis, which tells it from others. */
    private static final ThreadLocal WRITTEN = new ThreadLocal();

    private final LensSpec lens;
    private final SessionState session;

    private LensRewrite(LensSpec lens, SessionState session) {
        this.lens = lens;
        this.session = session;
    }

    public static LogicalPlan apply(LensSpec lens, SessionState session, LogicalPlan plan) {
        LensRewrite rewrite = new LensRewrite(lens, session);
        // What a reader looked up by itself is the root of a plan of its own.
        LogicalPlan first = plan;
        if (plan instanceof DataSourceV2Relation) first = rewrite.readerRelation((DataSourceV2Relation) plan);
        if (plan instanceof LogicalRelation) first = rewrite.readerFiles((LogicalRelation) plan);
        return first.resolveOperatorsDown(rewrite);
    }

    public boolean isDefinedAt(Object node) {
        return true;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
        LensCheck.refuseUnlisted(lens, (LogicalPlan) node);  // Spark 4 runs a procedure while it analyses its statement
        if (node instanceof UnresolvedRelation) return relation((UnresolvedRelation) node);
        if (node instanceof LogicalRelation || node instanceof DataSourceV2Relation) return topics((LogicalPlan) node);
        if (node instanceof MergeIntoTable) markTarget(((MergeIntoTable) node).targetTable());
        if (node instanceof UpdateTable) markTarget(((UpdateTable) node).table());
        if (node instanceof DeleteFromTable) markTarget(((DeleteFromTable) node).table());
        if (node instanceof InsertIntoStatement) return insert((InsertIntoStatement) node);
        if (node instanceof V2WriteCommand) return write((V2WriteCommand) node);
        if (node.getClass().getSimpleName().equals(HUDI_TRAVEL)) ((LogicalPlan) ((LogicalPlan) node).children().apply(0)).setTagValue(REPLACED, Boolean.TRUE);
        if (node instanceof WriteToStreamStatement) return stream((WriteToStreamStatement) node);
        if (leadsToBranch((LogicalPlan) node)) return onBranch((LogicalPlan) node);
        if (node instanceof UnresolvedIdentifier) return identifier((UnresolvedIdentifier) node);
        if (node instanceof ResolvedIdentifier) return resolvedIdentifier((ResolvedIdentifier) node);
        if (node instanceof UnresolvedTable) return named((LogicalPlan) node, ((UnresolvedTable) node).multipartIdentifier());
        if (node instanceof UnresolvedTableOrView) return named((LogicalPlan) node, ((UnresolvedTableOrView) node).multipartIdentifier());
        return overTopics((LogicalPlan) node);
    }

    private LogicalPlan stream(WriteToStreamStatement stream) {
        LogicalPlan led = StreamSinks.of(lens, session, stream);
        return OwnCheckpoints.of(lens, session, (WriteToStreamStatement) led, led != stream);
    }

    private LogicalPlan relation(UnresolvedRelation relation) {
        if (has(relation, REPLACED)) return relation;
        if (has(relation, TARGET)) return target(relation);
        if (isTemporaryView(session, relation.multipartIdentifier())) return relation;
        String name = TableNames.qualify(relation.multipartIdentifier(), session);
        String version = lens.pinOf(name);
        if (version != null && !hasOwnVersion(relation.options())) {
            if (isOf("kafka", name)) return relation;  // pinned when its options are known
            if (relation.isStreaming()) throw LensCheck.streamError(lens, name);
            return pinned(relation.multipartIdentifier(), relation.options(), version, name);
        }
        String other = version == null ? lens.redirectOf(name) : null;
        if (other != null && relation.isStreaming() && other.startsWith(name + ".")) throw LensCheck.branchStreamError(lens, name);
        if (other != null) return replaced(other, relation.options(), relation.isStreaming());
        if (written().contains(name) && !lens.mayRead(name) && !hasOwnVersion(relation.options())) {
            throw LensCheck.readError(lens, name, true);
        }
        return relation;
    }

    /** A reader looked the table up by itself, so it is named anew, with the reader's options. */
    private LogicalPlan readerRelation(DataSourceV2Relation relation) {
        String name = Leaves.name(relation);
        String version = name == null || Leaves.hasFixedVersion(relation) ? null : lens.pinOf(name);
        String other = name == null || version != null ? null : lens.redirectOf(name);
        if (other != null) return replaced(other, relation.options(), false);
        if (version == null) return relation;
        if (!TableNames.isPath(name)) return pinned(parse(quote(name)), relation.options(), version, name);
        return relation.catalog().isDefined() ? loaded(relation, version) : relation;
    }

    /** A table that only its catalog can find, by its path. */
    private LogicalPlan loaded(DataSourceV2Relation relation, String version) {
        TableCatalog catalog = (TableCatalog) relation.catalog().get();
        try {
            Object table = catalog.loadTable((Identifier) relation.identifier().get(), version);
            CaseInsensitiveStringMap options = marked(relation.options(), version);
            Object[] four = {table, relation.catalog(), relation.identifier(), options};
            // Without it Spark 4.1 loads the newest version when the plan is run.
            Object travel = scala.Option.apply(new org.apache.spark.sql.catalyst.analysis.AsOfVersion(version));
            Object[] five = {table, relation.catalog(), relation.identifier(), options, travel};
            java.lang.reflect.Method[] all = DataSourceV2Relation.class.getMethods();
            for (int i = 0; i < all.length; i++) {
                int count = all[i].getName().equals("create") ? all[i].getParameterTypes().length : 0;
                if (count == 4 || count == 5) return PlanPin.mark((LogicalPlan) all[i].invoke(null, count == 4 ? four : five), Leaves.name(relation), lens);
            }
        } catch (Exception e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new LensError(UnreadablePin.message(lens, Leaves.name(relation) + " at " + version + " (" + cause + ")"), cause);
        }
        return relation;
    }

    /** Delta's tables come from a reader as files, and SQL finds them by their path. */
    private LogicalPlan readerFiles(LogicalRelation relation) {
        if (!Leaves.isDelta(relation) || Leaves.hasFixedVersion(relation)) return relation;
        String name = Leaves.name(relation);
        String version = lens.pinOf(name);
        String other = version == null ? lens.redirectOf(name) : null;
        if (other != null) return replaced(other, CaseInsensitiveStringMap.empty(), false);
        return version == null ? relation : pinned(parse("delta.`" + name + "`"), CaseInsensitiveStringMap.empty(), version, name);
    }

    /** Topics have no versions that Spark knows: they are read again up to the offsets of theirs. */
    private LogicalPlan topics(LogicalPlan leaf) {
        TopicRead read = TopicRead.of(leaf);
        return read == null || !read.isToPin(lens) ? leaf : read.pinned(lens);
    }

    /** Spark keeps the relation of a table in its own catalog, and of a view: it isn't analysed again, and so isn't come by. */
    private LogicalPlan overTopics(LogicalPlan node) {
        if (node.children().length() != 1) return node;
        LogicalPlan child = (LogicalPlan) node.children().apply(0);
        LogicalPlan pinned = topics(child);
        return pinned == child ? node : with(node, child, pinned);
    }

    private LogicalPlan pinned(scala.collection.Seq parts, CaseInsensitiveStringMap options, String version, String name) {
        UnresolvedRelation relation = new UnresolvedRelation(parse(quoted(withoutBranch(parts, name))), marked(options, version), false);
        relation.setTagValue(REPLACED, Boolean.TRUE);
        LogicalPlan travel = isOf("hudi", name) ? pinnedInHudi(relation, options, version) : new RelationTimeTravel(relation, scala.Option.empty(), scala.Option.apply(version));
        return PlanPin.mark(travel, name, lens);
    }

    /** Iceberg takes no version behind the name of a branch, and numbers are the table's: `t.branch_fix` is read as `t`. */
    private scala.collection.Seq withoutBranch(scala.collection.Seq parts, String name) {
        String last = (String) parts.apply(parts.length() - 1);
        String[] full = last.startsWith("branch_") ? TableNames.full(parts, session, AnalysisContext.get().catalogAndNamespace()) : null;
        if (full == null || parts.length() < 2) return parts;
        Table table;
        try {
            TableCatalog catalog = (TableCatalog) session.catalogManager().catalog(full[0]);
            table = catalog.loadTable(UnreadablePin.identifier((String[]) java.util.Arrays.copyOfRange(full, 1, full.length - 1), last));
        } catch (Exception e) {
            return parts;  // Spark will say what is wrong
        }
        if (!IcebergTableBranches.isBranch(table, last)) return parts;
        if (lens.isOfAnother(name, Leaves.generation(table))) throw LensCheck.generationError(lens, name);
        return (scala.collection.Seq) parts.dropRight(1);
    }

    /** An instant is no timestamp of Spark's. Hudi's own node takes it, which its parser makes for `TIMESTAMP AS OF`. */
    private LogicalPlan pinnedInHudi(UnresolvedRelation relation, CaseInsensitiveStringMap options, String version) {
        Literal instant = Literal.create(org.apache.spark.unsafe.types.UTF8String.fromString(version), org.apache.spark.sql.types.StringType$.MODULE$);
        UnresolvedRelation plain = new UnresolvedRelation(relation.multipartIdentifier(), options, false);
        plain.setTagValue(REPLACED, Boolean.TRUE);
        try {
            Class type = Class.forName("org.apache.spark.sql.catalyst.plans.logical." + HUDI_TRAVEL, true, Thread.currentThread().getContextClassLoader());
            return (LogicalPlan) type.getConstructors()[0].newInstance(new Object[] {plain, scala.Option.apply(instant), scala.Option.empty()});
        } catch (Exception e) {
            throw new LensError("the lens '" + lens.name + "' can't pin a table of Hudi: this release has no time travel that it knows (" + e + ")");
        }
    }

    private static CaseInsensitiveStringMap marked(CaseInsensitiveStringMap options, String version) {
        java.util.HashMap more = new java.util.HashMap(options.asCaseSensitiveMap());
        more.remove("path");
        more.remove("paths");
        more.put(PINNED, version);
        return new CaseInsensitiveStringMap(more);
    }

    private UnresolvedRelation replaced(String name, CaseInsensitiveStringMap options, boolean isStreaming) {
        java.util.HashMap kept = new java.util.HashMap(options.asCaseSensitiveMap());
        kept.remove("path");
        UnresolvedRelation other = new UnresolvedRelation(parse(quote(name)), new CaseInsensitiveStringMap(kept), isStreaming);
        other.setTagValue(REPLACED, Boolean.TRUE);
        return other;
    }

    /** The table that is written: redirected, or written as it is now if the lens lets it be. */
    private LogicalPlan target(UnresolvedRelation relation) {
        if (has(relation, REPLACED) || isTemporaryView(session, relation.multipartIdentifier())) return relation;
        String name = TableNames.qualify(relation.multipartIdentifier(), session);
        String other = lens.redirectOf(name);
        if (other != null) return replaced(other, relation.options(), relation.isStreaming());
        if (!lens.mayWrite(name)) throw LensCheck.writeError(lens, name);
        return relation;
    }

    private void markTarget(LogicalPlan target) {
        LogicalPlan found = target;
        while (found instanceof SubqueryAlias) found = (LogicalPlan) ((SubqueryAlias) found).child();
        if (!(found instanceof UnresolvedRelation) || has(found, REPLACED)) return;
        found.setTagValue(TARGET, Boolean.TRUE);
        written().add(TableNames.qualify(((UnresolvedRelation) found).multipartIdentifier(), session));
    }

    private LogicalPlan insert(InsertIntoStatement insert) {
        if (!(insert.table() instanceof UnresolvedRelation)) return insert;
        LogicalPlan target = target((UnresolvedRelation) insert.table());
        return target == insert.table() ? insert : with(insert, insert.table(), target);
    }

    private LogicalPlan write(V2WriteCommand write) {
        NamedRelation table = write.table();
        if (table instanceof UnresolvedRelation) {
            LogicalPlan target = target((UnresolvedRelation) table);
            if (target == table) return (LogicalPlan) write;
            return (LogicalPlan) write.withNewTable((NamedRelation) target);
        }
        String name = table instanceof DataSourceV2Relation ? Leaves.name((DataSourceV2Relation) table) : null;
        String other = name == null ? null : lens.redirectOf(name);
        if (other == null) return (LogicalPlan) write;
        return (LogicalPlan) write.withNewTable(replaced(other, CaseInsensitiveStringMap.empty(), false));
    }

    /** Whether a command makes, replaces or drops a table whose name leads to a branch. */
    private boolean leadsToBranch(LogicalPlan command) {
        String type = command.getClass().getSimpleName();
        return (type.startsWith("CreateTable") || type.startsWith("ReplaceTable") || type.equals("DropTable")) && branched(command) != null;
    }

    /** A branch is there only as long as its table, so what makes that if it isn't there does nothing. Anything else would be done to another table, of the branch's name. */
    private LogicalPlan onBranch(LogicalPlan command) {
        try {
            if (command.getClass().getSimpleName().startsWith("CreateTable") && Boolean.TRUE.equals(command.getClass().getMethod("ignoreIfExists").invoke(command))) {
                return org.apache.spark.sql.catalyst.plans.logical.LocalRelation$.MODULE$.apply(new org.apache.spark.sql.types.StructType());
            }
        } catch (ReflectiveOperationException e) {
            throw LensCheck.branchError(lens, branched(command));
        }
        throw LensCheck.branchError(lens, branched(command));
    }

    private String branched(LogicalPlan command) {
        for (scala.collection.Iterator all = command.children().iterator(); all.hasNext();) {
            Object child = all.next();
            String name = null;
            if (child instanceof UnresolvedIdentifier) name = TableNames.qualify(((UnresolvedIdentifier) child).nameParts(), session);
            if (child instanceof ResolvedIdentifier) name = TableNames.of(((ResolvedIdentifier) child).catalog(), ((ResolvedIdentifier) child).identifier());
            if (name != null && lens.leadsToBranch(name)) return name;
        }
        return null;
    }

    private LogicalPlan identifier(UnresolvedIdentifier identifier) {
        if (has(identifier, REPLACED)) return identifier;
        String other = lens.redirectOf(TableNames.qualify(identifier.nameParts(), session));
        return other == null ? identifier : replacedIdentifier(other);
    }

    private LogicalPlan resolvedIdentifier(ResolvedIdentifier identifier) {
        String other = lens.redirectOf(TableNames.of(identifier.catalog(), identifier.identifier()));
        return other == null ? identifier : replacedIdentifier(other);
    }

    private LogicalPlan replacedIdentifier(String name) {
        UnresolvedIdentifier other = new UnresolvedIdentifier(parse(quote(name)), false);
        other.setTagValue(REPLACED, Boolean.TRUE);
        return other;
    }

    private LogicalPlan named(LogicalPlan node, scala.collection.Seq parts) {
        if (has(node, REPLACED) || isTemporaryView(session, parts)) return node;
        String other = lens.redirectOf(TableNames.qualify(parts, session));
        if (other == null) return node;
        LogicalPlan replaced = with(node, parts, parse(quote(other)));
        replaced.setTagValue(REPLACED, Boolean.TRUE);
        return replaced;
    }

    /** The same node with one of its arguments replaced. */
    static LogicalPlan with(LogicalPlan node, Object old, Object other) {
        Object[] arguments = new Object[node.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            Object argument = node.productElement(i);
            arguments[i] = argument == old ? other : argument;
        }
        return (LogicalPlan) node.makeCopy(arguments);
    }

    private static boolean has(LogicalPlan node, TreeNodeTag tag) {
        return node.getTagValue(tag).isDefined();
    }

    static boolean isTemporaryView(SessionState session, scala.collection.Seq parts) {
        if (parts.length() > 2) return false;
        if (!AnalysisContext.get().catalogAndNamespace().isEmpty() && !isReferredTo(parts)) return false;
        String database = parts.length() == 2 ? (String) parts.apply(0) : null;
        return session.catalog().isTempView(new org.apache.spark.sql.catalyst.TableIdentifier((String) parts.apply(parts.length() - 1), scala.Option.apply(database)));
    }

    /** Whether the view that is being resolved was made over this temporary view. */
    private static boolean isReferredTo(scala.collection.Seq parts) {
        for (scala.collection.Iterator names = AnalysisContext.get().referredTempViewNames().iterator(); names.hasNext();) {
            if (names.next().equals(parts)) return true;
        }
        return false;
    }

    private boolean hasOwnVersion(CaseInsensitiveStringMap options) {
        return Leaves.hasVersionOption(options);
    }

    /** Whether a table of Spark's own catalog is of this format. */
    private boolean isOf(String format, String name) {
        if (!name.startsWith("spark_catalog.")) return false;
        String[] parts = name.split("\\.");
        if (parts.length != 3) return false;
        try {
            scala.Option provider = session.catalog().getTableMetadata(new org.apache.spark.sql.catalyst.TableIdentifier(parts[2], scala.Option.apply(parts[1]))).provider();
            return provider.isDefined() && format.equalsIgnoreCase((String) provider.get());
        } catch (Throwable notThere) {
            return false;
        }
    }

    private scala.collection.Seq parseAny(String text) {
        try {
            return session.sqlParser().parseMultipartIdentifier(text);
        } catch (Throwable e) {
            throw new LensError("the lens '" + lens.name + "' leads to a name that can't be parsed: " + text);
        }
    }

    private ScalaSeq parse(String text) {
        return (ScalaSeq) parseAny(text);
    }

    /** The parts of a full name that the lens leads to. */
    static scala.collection.Seq parts(SessionState session, String name) {
        try {
            return session.sqlParser().parseMultipartIdentifier(quote(name));
        } catch (Exception e) {
            throw new LensError("the lens leads to a name that can't be parsed: " + name);
        }
    }

    static String quoted(scala.collection.Seq parts) {
        StringBuilder text = new StringBuilder();
        for (scala.collection.Iterator all = parts.iterator(); all.hasNext();) {
            text.append(text.length() == 0 ? "`" : ".`").append(((String) all.next()).replace("`", "``")).append('`');
        }
        return text.toString();
    }

    /** A full name as SQL has it. Names with a dot in them aren't told from others. */
    private static String quote(String name) {
        return "`" + name.replace("`", "``").replace(".", "`.`") + "`";
    }

    private static Set written() {
        Object cache = AnalysisContext.get().relationCache();
        Object[] known = (Object[]) WRITTEN.get();
        if (known == null || known[0] != cache) {
            known = new Object[] {cache, new HashSet()};
            WRITTEN.set(known);
        }
        return (Set) known[1];
    }
}
