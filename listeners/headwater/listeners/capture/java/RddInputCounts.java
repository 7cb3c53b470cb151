package headwater.capture;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.Dependency;
import org.apache.spark.OneToOneDependency;
import org.apache.spark.Partition;
import org.apache.spark.RangeDependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.CoalescedRDD;
import org.apache.spark.rdd.HadoopPartition;
import org.apache.spark.rdd.HadoopRDD;
import org.apache.spark.rdd.NewHadoopPartition;
import org.apache.spark.rdd.NewHadoopRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.Stage;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * How much a job read of the files that its RDDs were made from, where that is certain: one stage reads them, once and
 * nothing else, and each of its tasks had one attempt.
 *
 * Rows are the records that the stage's tasks counted, where a record is a row: of text, and of a scan of Spark's. Bytes
 * are those of the splits that were read: what tasks count has the ends of splits twice.
 */
final class RddInputCounts {
    private static final int MOST_RDDS = 10000;
    /** By the RDD of files: how often it is read, of which more than once is too often. */
    private final Map times = new IdentityHashMap();
    /** By the stage that reads nothing but one RDD of files: that RDD. */
    private final Map readers = new IdentityHashMap();
    private int seen;

    private RddInputCounts() { }

    /** Of a job's last stage, when the job begins; null where that can't be known. */
    static RddInputCounts of(Stage last) {
        try {
            if (last.rdd().sparkContext().getConf().getBoolean("spark.speculation", false)) return null;
            RddInputCounts counts = new RddInputCounts();
            List stages = new ArrayList();
            stages.add(last);
            for (int i = 0; i < stages.size(); i++) {
                Stage stage = (Stage) stages.get(i);
                counts.walk(stage);
                if (counts.seen > MOST_RDDS) return null;
                List parents = PlanWriter.list(stage.parents());
                for (int p = 0; p < parents.size(); p++) if (!stages.contains(parents.get(p))) stages.add(parents.get(p));
            }
            return counts;
        } catch (Throwable e) {
            CaughtErrors.report("RddInputCounts.of", e);
            return null;
        }
    }

    /** What a stage reads through RDDs that hand each partition on once. */
    private void walk(Stage stage) throws Exception {
        Map known = new IdentityHashMap();
        List waiting = new ArrayList();
        RDD only = null;
        boolean isPlain = true;
        waiting.add(stage.rdd());
        while (!waiting.isEmpty() && seen++ <= MOST_RDDS) {
            RDD next = (RDD) waiting.remove(waiting.size() - 1);
            boolean isAgain = known.put(next, next) != null;
            isPlain &= !isAgain && !isKept(next);
            if (next instanceof HadoopRDD || next instanceof NewHadoopRDD || next instanceof FileScanRDD) {
                Integer before = (Integer) times.get(next);
                times.put(next, Integer.valueOf(before == null ? 1 : before.intValue() + 1));
                isPlain &= only == null;
                only = next;
            } else if (!isAgain) isPlain &= addParents(next, waiting);
        }
        if (isPlain && only != null) readers.put(stage, only);
    }

    /** What is in memory or on disk is counted as read from there. */
    private static boolean isKept(RDD rdd) { return rdd.getStorageLevel().useMemory() || rdd.getStorageLevel().useDisk(); }

    /** Those within the stage; false where a partition may be read more or less often than once. */
    private static boolean addParents(RDD rdd, List waiting) throws Exception {
        Object parents = LazyFields.value(rdd, "dependencies_");
        List all = parents == null ? new ArrayList() : PlanWriter.list(parents);
        boolean isOnce = parents != null;
        for (int i = 0; i < all.size(); i++) {
            Dependency each = (Dependency) all.get(i);
            if (each instanceof ShuffleDependency) continue;
            isOnce &= each instanceof OneToOneDependency || each instanceof RangeDependency || rdd instanceof CoalescedRDD;
            waiting.add(each.rdd());
        }
        return isOnce;
    }

    /** When the job has ended: by the path of an input, its rows, which may be null, and its bytes. */
    Map ended(long started, Set failedStages, RddSources sources) {
        Map found = new HashMap();
        try {
            for (Iterator i = readers.entrySet().iterator(); i.hasNext();) {
                Map.Entry reader = (Map.Entry) i.next();
                Stage stage = (Stage) reader.getKey();
                RDD rdd = (RDD) reader.getValue();
                String path = sources.onlyPathOf(rdd);
                boolean isOnce = ((Integer) times.get(rdd)).intValue() == 1 && !failedStages.contains(Integer.valueOf(stage.id()));
                if (path != null && isOnce && ranWhole(stage, started)) found.put(path, new Long[] {rows(stage, rdd), Long.valueOf(bytes(rdd))});
            }
        } catch (Throwable e) {
            CaughtErrors.report("RddInputCounts.ended", e);
            found.clear();
        }
        return found;
    }

    /** Whether it ran in this job, all of it at one attempt: one whose result is still there from another job is skipped. */
    private static boolean ranWhole(Stage stage, long started) throws Exception {
        StageInfo info = stage.latestInfo();
        Object begun = ScalaOptions.get(info.submissionTime());
        Object partitions = LazyFields.value(stage.rdd(), "partitions_");
        return info.attemptNumber() == 0 && info.taskMetrics() != null && begun != null && ((Number) begun).longValue() >= started
            && info.completionTime().isDefined() && info.failureReason().isEmpty()
            && partitions != null && info.numTasks() == ((Partition[]) partitions).length;
    }

    private static Long rows(Stage stage, RDD rdd) throws Exception {
        if (rdd instanceof FileScanRDD) return Long.valueOf(stage.latestInfo().taskMetrics().inputMetrics().recordsRead());
        Object format = rdd instanceof HadoopRDD ? LazyFields.value(rdd, "inputFormatClass")
            : LazyFields.value(rdd, "org$apache$spark$rdd$NewHadoopRDD$$inputFormatClass");
        boolean isText = format == org.apache.hadoop.mapred.TextInputFormat.class
            || format == org.apache.hadoop.mapreduce.lib.input.TextInputFormat.class;
        return isText ? Long.valueOf(stage.latestInfo().taskMetrics().inputMetrics().recordsRead()) : null;
    }

    private static long bytes(RDD rdd) throws Exception {
        long sum = 0;
        if (rdd instanceof FileScanRDD) {
            List files = RddSources.inputPartitions(rdd);
            for (int i = 0; i < files.size(); i++) sum += bytes(((FilePartition) files.get(i)).files());
            return sum;
        }
        Partition[] partitions = (Partition[]) LazyFields.value(rdd, "partitions_");
        for (int i = 0; i < partitions.length; i++)
            sum += partitions[i] instanceof HadoopPartition ? ((org.apache.hadoop.mapred.InputSplit) ((HadoopPartition) partitions[i]).inputSplit().value()).getLength()
                : ((org.apache.hadoop.mapreduce.InputSplit) ((NewHadoopPartition) partitions[i]).serializableHadoopSplit().value()).getLength();
        return sum;
    }

    private static long bytes(PartitionedFile[] files) {
        long sum = 0;
        for (int i = 0; i < files.length; i++) sum += files[i].length();
        return sum;
    }
}
