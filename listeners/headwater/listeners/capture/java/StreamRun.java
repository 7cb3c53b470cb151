package headwater.capture;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.streaming.OffsetSeq;
import org.apache.spark.sql.execution.streaming.StreamExecution;

/**
 * One run of a streaming query.
 *
 * Each micro-batch has a plan of its own, in which the streams are replaced by what is new in them, and absent where
 * nothing is. So the shape is read once from the query's own plan; of a batch only what each stream gave is reported, as the
 * checkpoint has it: it is the same whoever looks, and however late.
 */
final class StreamRun extends StreamQuery {
    final StreamExecution execution;
    /** Columns that the query gives, by Spark's own ids. */
    List output;
    private Long began;
    private long lastBatch = -1;
    private OffsetSeq lastOffsets;

    StreamRun(StreamExecution execution) {
        super(execution.id().toString(), execution.runId().toString(), execution.name());
        this.execution = execution;
    }

    Object sink() { return execution.sink(); }

    /** The query as it was analysed: the streams that it reads are leaves of it. */
    LogicalPlan plan() throws Exception { return (LogicalPlan) LazyFields.value(execution, "analyzedPlan"); }

    String checkpoint() throws Exception { return (String) LazyFields.value(execution, "resolvedCheckpointRoot"); }

    /** When the incarnation began: every restart finds the same. Null where it can't be known any more. */
    Long began() throws Exception {
        if (began == null) {
            Path metadata = new Path(checkpoint(), "metadata");
            org.apache.hadoop.conf.Configuration conf = execution.sparkSession().sessionState().newHadoopConf();
            began = Long.valueOf(metadata.getFileSystem(conf).getFileStatus(metadata).getModificationTime());
        }
        return began;
    }

    /** `[{"node":…,"start":…,"end":…}]`: what each stream gave, by its node in the shape. Null where that can't be known. */
    String offsets(PlanWriter known, long batch, LogicalPlan ofBatch) throws Exception {
        List leaves = streams(plan());
        Map asked = asked(ofBatch);
        List running = running();
        OffsetSeq ends = at(batch);
        OffsetSeq starts = batch == 0 ? null : at(batch - 1);
        lastBatch = batch;
        lastOffsets = ends;
        took.clear();
        if (ends != null && ends.offsets().size() != leaves.size()) return null;
        Json json = new Json().openList();
        for (int i = 0; i < leaves.size(); i++) {
            Object[] range = i < running.size() ? (Object[]) asked.get(running.get(i)) : null;
            if (range == null && (ends == null || batch > 0 && starts == null)) return null;  // not: it gave nothing, or all
            String end = ends == null ? json(range == null ? null : range[1]) : json(ends.offsets().apply(i));
            String start = starts == null ? json(range == null ? null : range[0]) : json(starts.offsets().apply(i));
            took.add(new Object[] {leaves.get(i), start, end, i < running.size() ? running.get(i) : null});
            json.open().entry("node", (Number) known.numberOf((LogicalPlan) leaves.get(i))).entry("start", start).entry("end", end);
            FilePaths.writeOfBatch((LogicalPlan) leaves.get(i), i < running.size() ? running.get(i) : null, ofBatch, json);
            json.close();
        }
        return json.closeList().toString();
    }

    /** Of the batch before, what was read for it holds. */
    private OffsetSeq at(long batch) throws Exception {
        return batch == lastBatch && lastOffsets != null ? lastOffsets : (OffsetSeq) ScalaOptions.get(execution.offsetLog().get(batch));
    }

    private static String json(Object offset) {
        Object found = ScalaOptions.get(offset);
        return found == null ? null : ((Offset) found).json();
    }

    /** Leaves that are streams, in the order in which the checkpoint counts them. */
    static List streams(LogicalPlan plan) {
        List found = new ArrayList();
        List leaves = PlanWriter.list(plan.collectLeaves());
        for (int i = 0; i < leaves.size(); i++)
            if (leaves.get(i).getClass().getSimpleName().startsWith("Streaming")) found.add(leaves.get(i));
        return found;
    }

    /** The objects that read the streams, of v1 of sources and of the second, in that order too. */
    private List running() throws Exception {
        List found = new ArrayList();
        Object plan = LazyFields.value(execution, "logicalPlan");
        List leaves = plan == null ? found : streams((LogicalPlan) plan);
        List readers = new ArrayList();
        for (int i = 0; i < leaves.size(); i++) readers.add(reader(leaves.get(i)));
        return readers;
    }

    private static Object reader(Object leaf) throws Exception {
        Object stream = LazyFields.optional(leaf, "stream");
        return stream == null ? LazyFields.optional(leaf, "source") : stream;
    }

    /** By reader: from where to where the batch's own plan asks it to read. */
    private static Map asked(LogicalPlan batch) throws Exception {
        Map found = new IdentityHashMap();
        List leaves = batch == null ? new ArrayList() : streams(batch);
        for (int i = 0; i < leaves.size(); i++) {
            Object leaf = leaves.get(i);
            if (LazyFields.has(leaf.getClass(), "startOffset"))
                found.put(reader(leaf), new Object[] {LazyFields.value(leaf, "startOffset"), LazyFields.value(leaf, "endOffset")});
        }
        return found;
    }
}
