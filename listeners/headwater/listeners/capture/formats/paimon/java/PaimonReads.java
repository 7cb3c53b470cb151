package headwater.capture;

import java.util.ArrayDeque;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.paimon.spark.PaimonBaseScan;
import org.apache.paimon.spark.PaimonInputPartition;
import org.apache.paimon.spark.PaimonPartitionReaderFactory;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.DataSplit;
import org.apache.spark.Dependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;

/** Which snapshots scans were of: each file that a task reads says it. */
public final class PaimonReads {
    private static final String FALLBACK = "scan.fallback-branch";
    private static final int MOST_RDDS = 2000;
    private static final String FACTORY = "org$apache$spark$sql$execution$datasources$v2$DataSourceRDD$$partitionReaderFactory";

    private PaimonReads() { }

    /**
     * Only of what was executed: a scan that was only planned, or planned again, read nothing. A command's own scans of
     * files that it chose before have no snapshot; the scan by which it chose them has.
     */
    public static boolean read(Object leaf, Json json) throws Exception {
        if (!(leaf instanceof BatchScanExec)) return false;
        BatchScanExec exec = (BatchScanExec) leaf;
        Object table = exec.scan() == null ? null : LazyFields.optional(exec.scan(), "table");
        FileStoreTable data = table instanceof Table ? PaimonTables.data(table) : null;
        Object partitions = partitions(exec);
        if (data == null || partitions == null) return false;
        TreeSet snapshots = new TreeSet();
        collect(PlanWriter.list(partitions), snapshots);
        if (snapshots.isEmpty() && !(exec.scan() instanceof PaimonBaseScan)) return false;
        write(data, snapshots, json);
        return true;
    }

    /** With a branch to fall back on, files of two branches are read, and none says of which it is. */
    private static void write(FileStoreTable data, TreeSet snapshots, Json json) {
        PaimonTables.place(data, json);
        PaimonTables.asked(data, json);
        if (data.options().containsKey(FALLBACK)) {
            json.entry("fallback", (String) data.options().get(FALLBACK)).key("snapshots").openList().closeList();
            return;
        }
        json.key("snapshots").openList();
        Iterator each = snapshots.iterator();
        while (each.hasNext()) json.value(((Long) each.next()).longValue());
        json.closeList();
        if (snapshots.isEmpty()) PaimonSnapshots.newest(data, json);
    }

    /** What was run: where runtime filters made a scan plan once more, that is in the filtered ones. */
    private static Object partitions(BatchScanExec exec) throws Exception {
        boolean isFiltered = LazyFields.has(exec.getClass(), "filteredPartitions");
        return isFiltered ? LazyFields.value(exec, "filteredPartitions") : LazyFields.value(exec, "inputPartitions");
    }

    private static void collect(List partitions, TreeSet snapshots) {
        for (int i = 0; i < partitions.size(); i++) {
            Object each = partitions.get(i);
            if (each instanceof scala.collection.Iterable) collect(PlanWriter.list(each), snapshots);
            if (!(each instanceof PaimonInputPartition)) continue;
            List splits = PlanWriter.list(((PaimonInputPartition) each).splits());
            for (int s = 0; s < splits.size(); s++) {
                long id = splits.get(s) instanceof DataSplit ? ((DataSplit) splits.get(s)).snapshotId() : 0;
                if (id > 0) snapshots.add(Long.valueOf(id));
            }
        }
    }

    /** Scans that ran and are gone from the final plan, because they gave no rows: as elements of a list. */
    public static void replaced(QueryExecution query, StringBuilder found) throws Exception {
        Object physical = LazyFields.value(query, "executedPlan");
        if (physical == null) return;
        Map known = new IdentityHashMap();
        walk((QueryPlan) physical, known, null);
        initial((QueryPlan) physical, known, found, new IdentityHashMap());
    }

    private static void initial(QueryPlan plan, Map known, StringBuilder found, Map seen) throws Exception {
        if (seen.put(plan, plan) != null) return;
        if (plan instanceof AdaptiveSparkPlanExec) walk(((AdaptiveSparkPlanExec) plan).initialPlan(), known, found);
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) initial((QueryPlan) children.get(i), known, found, seen);
    }

    /** Leaves that aren't known yet; filled where `found` is given. */
    private static void walk(QueryPlan plan, Map known, StringBuilder found) throws Exception {
        if (known.put(plan, plan) != null) return;
        if (plan instanceof AdaptiveSparkPlanExec) walk(((AdaptiveSparkPlanExec) plan).executedPlan(), known, found);
        else if (plan instanceof QueryStageExec) walk(((QueryStageExec) plan).plan(), known, found);
        else if (found != null && plan instanceof BatchScanExec) writeScan(plan, found);
        each(PlanWriter.list(plan.children()), known, found);
        each(PlanWriter.list(plan.subqueries()), known, found);
    }

    private static void each(List plans, Map known, StringBuilder found) throws Exception {
        for (int i = 0; i < plans.size(); i++) walk((QueryPlan) plans.get(i), known, found);
    }

    private static void writeScan(QueryPlan leaf, StringBuilder found) throws Exception {
        Json json = new Json().open();
        if (!read(leaf, json)) return;
        found.append(found.length() == 0 ? "" : ",").append(json.close().toString());
    }

    /**
     * Where a write gives its rows to buckets as they come, its query is no part of the plan: only its RDDs are there.
     * True if there are such.
     */
    public static boolean behind(QueryPlan plan, StringBuilder found) throws Exception {
        boolean any = plan instanceof RDDScanExec;
        if (any) rdds(((RDDScanExec) plan).rdd(), found);
        if (plan instanceof AdaptiveSparkPlanExec) any |= behind(((AdaptiveSparkPlanExec) plan).executedPlan(), found);
        else if (plan instanceof QueryStageExec) any |= behind(((QueryStageExec) plan).plan(), found);
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) any |= behind((QueryPlan) children.get(i), found);
        return any;
    }

    private static void rdds(RDD start, StringBuilder found) throws Exception {
        Map seen = new IdentityHashMap();
        ArrayDeque left = new ArrayDeque();
        left.add(start);
        while (!left.isEmpty() && seen.size() < MOST_RDDS) {
            RDD each = (RDD) left.poll();
            if (seen.put(each, each) != null) continue;
            if (each instanceof DataSourceRDD) onScan((DataSourceRDD) each, found);
            List parents = PlanWriter.list(each.dependencies());
            for (int i = 0; i < parents.size(); i++) left.add(((Dependency) parents.get(i)).rdd());
        }
    }

    private static void onScan(DataSourceRDD rdd, StringBuilder found) throws Exception {
        Object factory = LazyFields.value(rdd, FACTORY);
        if (!(factory instanceof PaimonPartitionReaderFactory)) return;
        Object table = LazyFields.optional(((PaimonPartitionReaderFactory) factory).readBuilder(), "table");
        FileStoreTable data = table instanceof Table ? PaimonTables.data(table) : null;
        TreeSet snapshots = new TreeSet();
        collect(PlanWriter.list(LazyFields.value(rdd, "inputPartitions")), snapshots);
        if (data == null || snapshots.isEmpty()) return;
        Json json = new Json().open();
        write(data, snapshots, json);
        found.append(found.length() == 0 ? "" : ",").append(json.close().toString());
    }
}
