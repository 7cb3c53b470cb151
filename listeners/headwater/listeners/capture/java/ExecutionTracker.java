package headwater.capture;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Which statement an execution is, or is part of, from its start to its end.
 *
 * Spark tells of an execution only which one is the root. Within a root that is a micro-batch of foreachBatch, whatever a
 * user's function writes is a statement of its own, reported with the batch; what such a statement runs in turn to do its work
 * isn't. The same holds within a root that has ended: a thread that was born in it gives that number for as long as it lives.
 */
final class ExecutionTracker {
    private static final int MOST_STATEMENTS = 10000;
    private static final int LONGEST_DESCRIPTION = 1000;

    private final StreamCapture streams;
    /** By execution: the statement it is, or is part of. */
    private final Map open = new LinkedHashMap();
    /** Micro-batches that a user's function has at this moment. */
    private final List batches = new ArrayList();
    /** Executions that ended last, and up to which number those are forgotten that ended before. */
    private final Map ended = new LinkedHashMap();
    /** At first the last one of all: what has no larger number, and isn't running, began before we listened. */
    private long endedUpTo;
    /** By the number of a root that has ended: what runs in threads that were born in it. */
    private final Map late = new HashMap();

    ExecutionTracker(StreamCapture streams) {
        this.streams = streams;
        this.endedUpTo = lastExecution();
    }

    /** What began behind this execution was kept until we listened. */
    synchronized void listenedSince(long execution) { endedUpTo = execution; }

    /** The number that Spark gave last. */
    static long lastExecution() {
        try {
            Object next = LazyFields.value(SQLExecution$.MODULE$, "_nextExecutionId");
            return ((java.util.concurrent.atomic.AtomicLong) next).get() - 1;
        } catch (Throwable e) {
            CaughtErrors.log("ExecutionTracker.lastExecution", e);
            return -1;
        }
    }

    /**
     * Of a start only this is kept: its plan's description may be long. `query` is null where it has ended meanwhile. Returns
     * the statement that it is, or is part of.
     */
    synchronized TrackedExecution started(SparkListenerSQLExecutionStart start, QueryExecution query) {
        Long id = Long.valueOf(start.executionId());
        Number rootId = (Number) ScalaOptions.get(start.rootExecutionId());
        Long root = rootId == null ? id : Long.valueOf(rootId.longValue());
        if (!root.equals(id) && hasEnded(root.longValue())) return afterEnd(root, id, start, query);
        TrackedExecution whole = opened(root, start.jobTags().contains(SqlExecutionListener.OWN));
        if (root.equals(id)) begin(whole, start, query);
        else if (whole.isOfUsersFunction()) within(whole, id, start, query);
        else part(whole, id);
        if (open.size() > MOST_STATEMENTS) forgetEldest();
        return whole;
    }

    /** Spark began a job of this execution. */
    synchronized void ranJob(long execution) {
        TrackedExecution known = (TrackedExecution) open.get(Long.valueOf(execution));
        if (known != null) known.statement.ranJob = true;
    }

    /** Whether this execution is over, as the numbers of its threads say that outlived it. */
    synchronized boolean hasEnded(long execution) {
        Long id = Long.valueOf(execution);
        if (open.containsKey(id)) return false;
        if (ended.containsKey(id)) return true;
        return execution <= endedUpTo && SQLExecution.getQueryExecution(execution) == null;
    }

    /** Spark calls the root of a thread's executions what it was born in, also when that is over: it is no part of it. */
    private TrackedExecution afterEnd(Long root, Long id, SparkListenerSQLExecutionStart start, QueryExecution query) {
        List beside = (List) late.get(root);
        if (beside == null) late.put(root, beside = new ArrayList());
        TrackedExecution outer = innermost(beside);
        if (outer != null && outer.isOfUsersFunction()) {
            within(outer, id, start, query);
            return outer;
        }
        TrackedExecution made = new TrackedExecution(new Statement(start.executionId()), start.jobTags().contains(SqlExecutionListener.OWN));
        beside(made, beside, outer, start);
        begin(made, start, query);
        open.put(id, made);
        return made;
    }

    /** A part may be seen first: what a builder of a format's does ends before the whole is reported as started. */
    private TrackedExecution opened(Long root, boolean isOwn) {
        TrackedExecution known = (TrackedExecution) open.get(root);
        if (known != null) return known;
        TrackedExecution made = new TrackedExecution(new Statement(root.longValue()), isOwn);
        open.put(root, made);
        return made;
    }

    private void part(TrackedExecution whole, Long id) {
        whole.statement.executions.add(id);
        open.put(id, whole);
    }

    private void within(TrackedExecution batch, Long id, SparkListenerSQLExecutionStart start, QueryExecution query) {
        TrackedExecution made = new TrackedExecution(new Statement(start.executionId()), batch.isOwn);
        made.batch = batch;
        made.statement.isPart = true;
        beside(made, batch.members, innermost(batch.members), start);
        begin(made, start, query);
        open.put(id, made);
    }

    private static void beside(TrackedExecution made, List beside, TrackedExecution outer, SparkListenerSQLExecutionStart start) {
        made.outer = outer;
        made.isComposite = isComposite(start.sparkPlanInfo().nodeName());
        made.beside = beside;
        beside.add(Long.valueOf(made.statement.id));
    }

    /** The statement among these that began last and still runs. */
    private TrackedExecution innermost(List beside) {
        for (int i = beside.size() - 1; i >= 0; i--) {
            TrackedExecution known = (TrackedExecution) open.get(beside.get(i));
            if (known != null && !known.isOver) return known;
        }
        return null;
    }

    /** Whether what this operator does is done by commands that it runs: a CTAS inserts. */
    private static boolean isComposite(String operator) {
        if (operator.startsWith("Execute ")) return !operator.startsWith("Execute InsertInto");
        return operator.contains("AsSelect") || operator.contains("Call");
    }

    private void begin(TrackedExecution begun, SparkListenerSQLExecutionStart start, QueryExecution query) {
        Statement statement = begun.statement;
        String description = start.description();
        statement.started = start.time();
        statement.description = description.length() > LONGEST_DESCRIPTION ? description.substring(0, LONGEST_DESCRIPTION) : description;
        statement.confs = ValueWriter.javaMap(start.modifiedConfigs());
        scala.collection.Iterator tags = start.jobTags().iterator();
        while (tags.hasNext()) statement.tags.add(tags.next());
        begun.isBegun = true;
        if (begun.batch != null) return;
        adopt(statement, query);
        if (!begun.isOfUsersFunction()) return;
        begun.query = query;
        batches.add(begun);
    }

    /**
     * The micro-batch whose rows this command reads: a function's own threads, which Spark doesn't know to be within it,
     * write them by statements of their own.
     */
    synchronized TrackedExecution batchReadBy(QueryExecution command) {
        for (int i = 0; command != null && i < batches.size(); i++)
            if (((TrackedExecution) batches.get(i)).isReadBy(command)) return (TrackedExecution) batches.get(i);
        return null;
    }

    /** What a micro-batch is of: its plan knows, whatever a source or sink calls what it does. */
    void adopt(Statement statement, QueryExecution query) {
        if (StreamQuery.isExecution(query) && statement.stream == null) streams.adopt(statement, query);
    }

    /** Its end was lost, or takes longer than so many others. */
    private void forgetEldest() {
        Long eldest = (Long) open.keySet().iterator().next();
        open.remove(eldest);
        CommitRecorder.take(eldest.toString());
    }

    synchronized TrackedExecution ended(long execution) {
        Long id = Long.valueOf(execution);
        TrackedExecution known = (TrackedExecution) open.remove(id);
        remember(id);
        if (known == null || known.statement.id != execution) return known;
        known.isOver = true;
        batches.remove((Object) known);
        if (known.beside == null) return known;
        known.beside.remove((Object) id);
        if (known.beside.isEmpty() && known.batch == null) late.values().remove((Object) known.beside);
        return known;
    }

    private void remember(Long id) {
        ended.put(id, Boolean.TRUE);
        if (ended.size() <= MOST_STATEMENTS) return;
        Long eldest = (Long) ended.keySet().iterator().next();
        ended.remove(eldest);
        endedUpTo = Math.max(endedUpTo, eldest.longValue());
    }

    /** What was found to be a part of a statement in a micro-batch: its executions are that statement's. */
    synchronized void merge(TrackedExecution part, TrackedExecution whole) {
        whole.statement.executions.addAll(part.statement.executions);
    }

    void close(TrackedExecution known) {
        synchronized (this) {
            for (int i = 0; i < known.members.size(); i++) {
                TrackedExecution left = (TrackedExecution) open.remove(known.members.get(i));
                if (left != null) forget(left.statement);
            }
        }
        forget(known.statement);
    }

    synchronized void forget(Statement statement) {
        for (int i = 0; i < statement.executions.size(); i++) {
            open.remove(statement.executions.get(i));
            CommitRecorder.take(statement.executions.get(i).toString());
        }
    }

    synchronized Set statements() {
        Set found = new HashSet();
        Iterator each = open.values().iterator();
        while (each.hasNext()) found.add(((TrackedExecution) each.next()).statement);
        return found;
    }

    synchronized void clear() {
        open.clear();
        batches.clear();
        late.clear();
    }
}
