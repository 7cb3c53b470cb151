package headwater.capture;

import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.streaming.IncrementalExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Which statement an execution is, or is part of, from its start to its end.
 *
 * Spark tells of an execution only which one is the root. Within a root that is a micro-batch of foreachBatch, whatever a
 * user's function writes is a statement of its own, told with the batch; what such a statement runs in turn to do its work
 * isn't.
 */
final class Running {
    private static final int MOST_STATEMENTS = 10000;
    private static final int LONGEST_DESCRIPTION = 1000;

    private final Streams streams;
    /** By execution: the statement it is, or is part of. */
    private final Map open = new LinkedHashMap();

    Running(Streams streams) { this.streams = streams; }

    /** Of a start only this is kept: its plan's description may be long. */
    synchronized Open started(SparkListenerSQLExecutionStart start) {
        Long id = Long.valueOf(start.executionId());
        Number told = (Number) Options.get(start.rootExecutionId());
        Long root = told == null ? id : Long.valueOf(told.longValue());
        Open whole = opened(root, start.jobTags().contains(Tap.OWN));
        if (root.longValue() == start.executionId()) begin(whole, start);
        else if (whole.isOfUsersFunction()) within(whole, id, start);
        else part(whole, id);
        if (open.size() > MOST_STATEMENTS) forgetEldest();
        return whole;
    }

    /** A part may be seen first: what a builder of Delta's does ends before the whole is told to have started. */
    private Open opened(Long root, boolean isOwn) {
        Open known = (Open) open.get(root);
        if (known != null) return known;
        Open made = new Open(new Statement(root.longValue()), isOwn);
        open.put(root, made);
        return made;
    }

    private void part(Open whole, Long id) {
        whole.statement.executions.add(id);
        open.put(id, whole);
    }

    private void within(Open batch, Long id, SparkListenerSQLExecutionStart start) {
        Open made = new Open(new Statement(start.executionId()), batch.isOwn);
        made.batch = batch;
        made.statement.isPart = true;
        made.outer = innermost(batch);
        made.isComposite = isComposite(start.sparkPlanInfo().nodeName());
        begin(made, start);
        batch.members.add(id);
        open.put(id, made);
    }

    /** The statement of this batch that began last and still runs. */
    private Open innermost(Open batch) {
        for (int i = batch.members.size() - 1; i >= 0; i--) {
            Open known = (Open) open.get(batch.members.get(i));
            if (known != null && !known.isOver) return known;
        }
        return null;
    }

    /** Whether what this operator does is done by commands that it runs: a CTAS inserts. */
    private static boolean isComposite(String operator) {
        if (operator.startsWith("Execute ")) return !operator.startsWith("Execute InsertInto");
        return operator.contains("AsSelect") || operator.contains("Call");
    }

    private void begin(Open begun, SparkListenerSQLExecutionStart start) {
        Statement statement = begun.statement;
        String description = start.description();
        statement.started = start.time();
        statement.description = description.length() > LONGEST_DESCRIPTION ? description.substring(0, LONGEST_DESCRIPTION) : description;
        statement.confs = Values.javaMap(start.modifiedConfigs());
        scala.collection.Iterator tags = start.jobTags().iterator();
        while (tags.hasNext()) statement.tags.add(tags.next());
        if (begun.batch == null) adopt(statement, SQLExecution.getQueryExecution(start.executionId()));
        begun.isBegun = true;
    }

    /** What a micro-batch is of: its plan knows, whatever a source or sink calls what it does. */
    void adopt(Statement statement, QueryExecution query) {
        if (!(query instanceof IncrementalExecution) || statement.stream != null) return;
        IncrementalExecution batch = (IncrementalExecution) query;
        statement.stream = streams.at(batch.queryId(), batch.runId());
        statement.batch = batch.currentBatchId();
    }

    /** Its end was lost, or takes longer than so many others. */
    private void forgetEldest() {
        Long eldest = (Long) open.keySet().iterator().next();
        open.remove(eldest);
        Facts.take(eldest.toString());
    }

    synchronized Open ended(long execution) {
        Open known = (Open) open.remove(Long.valueOf(execution));
        if (known != null && known.statement.id == execution) known.isOver = true;
        return known;
    }

    /** What was found to be a part of a statement in a micro-batch: its executions are that statement's. */
    synchronized void merge(Open part, Open whole) {
        whole.statement.executions.addAll(part.statement.executions);
    }

    void close(Open known) {
        synchronized (this) {
            for (int i = 0; i < known.members.size(); i++) {
                Open left = (Open) open.remove(known.members.get(i));
                if (left != null) forget(left.statement);
            }
        }
        forget(known.statement);
    }

    synchronized void forget(Statement statement) {
        for (int i = 0; i < statement.executions.size(); i++) {
            open.remove(statement.executions.get(i));
            Facts.take(statement.executions.get(i).toString());
        }
    }

    synchronized Set statements() {
        Set found = new HashSet();
        Iterator each = open.values().iterator();
        while (each.hasNext()) found.add(((Open) each.next()).statement);
        return found;
    }

    synchronized void clear() { open.clear(); }
}
