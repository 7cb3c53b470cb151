package headwater.capture;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.SnapshotDescriptor;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;
import org.apache.spark.sql.delta.commands.CloneDeltaSource;
import org.apache.spark.sql.delta.commands.RestoreTableCommand;
import org.apache.spark.sql.delta.commands.cdc.CDCReader;
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;

/** What is known of Delta's tables, and of what was read and committed of them. */
public final class DeltaExtractor implements FormatExtractor {
    private static final String TABLES = "delta.tables";
    private static final String GENERATED = "delta.generationExpression";
    /** What aligned jobs call their reads of files that some commits added, before the first and the last commit. */
    private static final String ALIGNED = "headwater changes ";

    public String format() { return "delta"; }

    /** A table of Delta's, or what stands for one: the source of a clone, a log. */
    public boolean table(Object table, Json json) throws Exception {
        Object found = table instanceof CloneDeltaSource ? LazyFields.value(table, "sourceTable") : table;
        if (found instanceof DeltaLog) {
            json.key("delta").open().entry("path", ((DeltaLog) found).dataPath().toString()).close();
            return true;
        }
        if (DeltaStreams.describe(found, json)) return true;
        if (!(found instanceof DeltaTableV2)) return false;
        DeltaTableV2 delta = (DeltaTableV2) found;
        Object log = LazyFields.value(delta, "deltaLog");
        Object snapshot = LazyFields.value(delta, "initialSnapshot");
        json.key("delta").open();
        json.entry("path", log == null ? delta.path().toString() : ((DeltaLog) log).dataPath().toString());
        if (snapshot != null) described((Snapshot) snapshot, json);
        if (snapshot != null) generated(((Snapshot) snapshot).metadata().schema(), json);
        if (delta.timeTravelOpt().isDefined()) json.entry("timeTravel", true);
        DeltaActionWriter.table((org.apache.spark.sql.catalyst.catalog.CatalogTable) ScalaOptions.get(delta.catalogTable()), json);
        json.close();
        return true;
    }

    public boolean relation(Object relation, Json json) throws Exception {
        TahoeFileIndex index = index(relation);
        if (index instanceof TahoeLogFileIndex) {
            TahoeLogFileIndex log = (TahoeLogFileIndex) index;
            json.key("delta").open().entry("path", index.deltaLog().dataPath().toString());
            described(log.snapshotAtAnalysis(), json);
            if (log.isTimeTravelQuery()) json.entry("timeTravel", true);
            json.close();
            return true;
        }
        if (alignedChanges(index) != null) {
            json.key("delta").open().entry("path", index.deltaLog().dataPath().toString()).entry("changes", true);
            described(((TahoeBatchFileIndex) index).snapshot(), json);
            json.close();
            return true;
        }
        if (!isChanges(relation)) return false;
        Snapshot snapshot = snapshot((CDCReader.DeltaCDFRelation) relation);
        json.key("delta").open().entry("path", snapshot.deltaLog().dataPath().toString()).entry("changes", true);
        described(snapshot, json);
        json.close();
        return true;
    }

    /** Columns that Delta computes as it writes, with the columns that each is made from: the plan doesn't have them. */
    private static void generated(org.apache.spark.sql.types.StructType schema, Json json) throws Exception {
        Map found = new TreeMap();
        org.apache.spark.sql.types.StructField[] fields = schema.fields();
        for (int i = 0; i < fields.length; i++) {
            if (!fields[i].metadata().contains(GENERATED)) continue;
            List waiting = new java.util.ArrayList();
            waiting.add(org.apache.spark.sql.catalyst.parser.CatalystSqlParser$.MODULE$.parseExpression(fields[i].metadata().getString(GENERATED)));
            Json columns = new Json().openList();
            while (!waiting.isEmpty()) {
                Expression next = (Expression) waiting.remove(waiting.size() - 1);
                waiting.addAll(PlanWriter.list(next.children()));
                if (!(next instanceof UnresolvedAttribute)) continue;
                List parts = PlanWriter.list(((UnresolvedAttribute) next).nameParts());
                columns.openList();
                for (int p = 0; p < parts.size(); p++) columns.value((String) parts.get(p));
                columns.closeList();
            }
            found.put(fields[i].name(), columns.closeList().toString());
        }
        if (found.isEmpty()) return;
        json.key("generated").open();
        for (Iterator each = found.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            json.key((String) entry.getKey()).raw((String) entry.getValue());
        }
        json.close();
    }

    /** The generation; never what the next commit changes. */
    private static void described(SnapshotDescriptor snapshot, Json json) {
        if (snapshot.version() >= 0) json.entry("generation", snapshot.metadata().id());
    }

    public boolean read(Object leaf, Json json) throws Exception {
        Object relation = leaf instanceof LogicalRelation ? ((LogicalRelation) leaf).relation()
            : leaf instanceof FileSourceScanExec ? ((FileSourceScanExec) leaf).relation() : null;
        if (isChanges(relation)) {
            changes((CDCReader.DeltaCDFRelation) relation, json);
            return true;
        }
        TahoeFileIndex index = index(relation);
        if (index == null) return false;
        json.entry("path", index.deltaLog().dataPath().toString());
        String[] aligned = alignedChanges(index);
        if (aligned != null) {
            Long last = Long.valueOf(aligned[1]);
            json.entry("changes", true).entry("from", Long.valueOf(aligned[0])).entry("to", last);
            json.entry("lowest", last).entry("highest", last);
            return true;
        }
        if (index instanceof PreparedDeltaFileIndex) json.entry("version", ((PreparedDeltaFileIndex) index).preparedScan().version());
        else if (index instanceof TahoeLogFileIndex && ((TahoeLogFileIndex) index).isTimeTravelQuery())
            json.entry("asked", ((TahoeLogFileIndex) index).snapshotAtAnalysis().version());
        return true;
    }

    /** Where no end was asked for, it is the latest version when the scan was built: between these two. */
    private static void changes(CDCReader.DeltaCDFRelation relation, Json json) {
        Snapshot snapshot = snapshot(relation);
        json.entry("path", snapshot.deltaLog().dataPath().toString()).entry("changes", true);
        json.entry("from", (Long) ScalaOptions.get(relation.startingVersion())).entry("to", (Long) ScalaOptions.get(relation.endingVersion()));
        json.entry("lowest", snapshot.version()).entry("highest", snapshot.deltaLog().unsafeVolatileSnapshot().version());
    }

    /** The first and the last commit of which an aligned job reads the added files; null for another read. */
    private static String[] alignedChanges(TahoeFileIndex index) {
        if (!(index instanceof TahoeBatchFileIndex)) return null;
        String type = ((TahoeBatchFileIndex) index).actionType();
        return type.startsWith(ALIGNED) ? type.substring(ALIGNED.length()).split(" ") : null;
    }

    private static boolean isChanges(Object relation) { return relation instanceof CDCReader.DeltaCDFRelation; }

    private static Snapshot snapshot(CDCReader.DeltaCDFRelation relation) { return relation.snapshotWithSchemaMode().snapshot(); }

    private static TahoeFileIndex index(Object relation) {
        if (!(relation instanceof HadoopFsRelation)) return null;
        Object location = ((HadoopFsRelation) relation).location();
        return location instanceof TahoeFileIndex ? (TahoeFileIndex) location : null;
    }

    /** Between which versions each table was when the statement was analysed and when it had ended, and commits by id. */
    public void ended(Statement statement, Json json) throws Exception {
        Map tables = new TreeMap();
        collect(statement.plan, tables, new java.util.IdentityHashMap());
        if (statement.plan instanceof SaveIntoDataSourceCommand && !DeltaState.HOOK.covers(statement)) saved((SaveIntoDataSourceCommand) statement.plan, statement, tables);
        if (!tables.isEmpty()) {
            json.key("tables").open();
            for (Iterator i = tables.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                Object[] known = (Object[]) entry.getValue();
                DeltaLog log = (DeltaLog) known[0];
                json.key((String) entry.getKey()).open().entry("lowest", (Long) known[1]);
                json.entry("highest", log.unsafeVolatileSnapshot().version()).close();
            }
            json.close();
        }
        DeltaCommitFiles.found(statement, tables, json);
        DeltaStreams.repeated(statement, json);
        if (statement.plan instanceof RestoreTableCommand) restored(((RestoreTableCommand) statement.plan).sourceTable(), json);
    }

    /** A path that was written; only asked where no hook saw the commit. */
    private static void saved(SaveIntoDataSourceCommand save, Statement statement, Map tables) {
        Object path = ScalaOptions.get(save.options().get("path"));
        if (path == null || !(save.dataSource() instanceof org.apache.spark.sql.delta.sources.DeltaDataSource)) return;
        DeltaLog log = DeltaLog.forTable(statement.query.sparkSession(), path.toString());
        if (log.unsafeVolatileSnapshot().version() >= 0) known(log, -1, tables);
    }

    private static void restored(DeltaTableV2 source, Json json) throws Exception {
        Object snapshot = LazyFields.value(source, "initialSnapshot");
        if (snapshot != null) json.entry("restored", ((Snapshot) snapshot).version());
    }

    private static void collect(QueryPlan plan, Map tables, Map seen) throws Exception {
        if (plan == null || seen.put(plan, plan) != null) return;
        relationOf(plan, tables);
        all(PlanWriter.list(plan.children()), tables, seen);
        all(PlanWriter.list(plan.innerChildren()), tables, seen);
        all(PlanWriter.list(plan.subqueries()), tables, seen);
        for (int i = 0; i < ((scala.Product) plan).productArity(); i++) {
            Object argument = ((scala.Product) plan).productElement(i);
            if (argument instanceof QueryPlan) collect((QueryPlan) argument, tables, seen);
        }
    }

    private static void all(List plans, Map tables, Map seen) throws Exception {
        for (int i = 0; i < plans.size(); i++) if (plans.get(i) instanceof QueryPlan) collect((QueryPlan) plans.get(i), tables, seen);
    }

    private static void relationOf(QueryPlan plan, Map tables) throws Exception {
        if (plan instanceof LogicalRelation) {
            TahoeFileIndex index = index(((LogicalRelation) plan).relation());
            if (index instanceof TahoeLogFileIndex && !((TahoeLogFileIndex) index).isTimeTravelQuery())
                known(index.deltaLog(), ((TahoeLogFileIndex) index).snapshotAtAnalysis().version(), tables);
        } else if (plan instanceof org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation) {
            Object table = ((org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation) plan).table();
            Object snapshot = table instanceof DeltaTableV2 ? LazyFields.value(table, "initialSnapshot") : null;
            if (snapshot != null) known(((Snapshot) snapshot).deltaLog(), ((Snapshot) snapshot).version(), tables);
        }
    }

    private static void known(DeltaLog log, long version, Map tables) {
        String path = log.dataPath().toString();
        Object[] before = (Object[]) tables.get(path);
        if (before == null || ((Long) before[1]).longValue() > version) tables.put(path, new Object[] {log, Long.valueOf(version)});
    }
}
