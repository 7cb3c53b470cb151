package headwater.capture;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.FileStreamSink;
import org.apache.spark.sql.execution.streaming.FileStreamSinkLog;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** Writes what is recorded of streaming queries: that one starts and ends, and what is a micro-batch's own. */
final class StreamWriter {
    private static final int LONGEST = 20000;
    private final CatalogWriter catalogs;
    private final ValueWriter values;
    private final boolean sql;

    StreamWriter(CatalogWriter catalogs, ValueWriter values, boolean sql) {
        this.catalogs = catalogs;
        this.values = values;
        this.sql = sql;
    }

    /** The write of a batch, over the query as it was analysed. */
    LogicalPlan whole(StreamRun stream, LogicalPlan batch) throws Exception {
        List children = new ArrayList();
        children.add(stream.plan());
        return (LogicalPlan) batch.withNewChildren(scala.collection.JavaConverters.asScalaBuffer(children).toSeq());
    }

    PlanWriter shape(StreamRun stream, LogicalPlan whole) throws Exception {
        if (stream.shape != null) return stream.shape;
        PlanWriter shape = PlanWriter.of(whole, values, sql);
        stream.text = shape.finish(shape.node(whole));
        stream.output = PlanWriter.list(stream.plan().output());
        stream.shape = shape;
        return shape;
    }

    /** What is this batch's own, into the open object of its statement. */
    void batch(Statement statement, LogicalPlan plan, Json json) throws Exception {
        StreamRun stream = (StreamRun) statement.stream;
        long batch = statement.batch;
        json.key("stream").open();
        about(stream, json);
        json.entry("batch", batch);
        String offsets = offsets(stream, stream.shape, batch, plan, json);
        if (offsets != null) json.key("offsets").raw(offsets);
        if (stream.execution.sink() instanceof FileStreamSink) json.entry("files", files((FileStreamSink) stream.execution.sink(), batch));
        json.close();
        if (!stream.isOfUsersFunction()) return;
        json.key("functionColumns").openList();
        for (int i = 0; i < stream.output.size(); i++) json.value(((Attribute) stream.output.get(i)).exprId().id());
        json.closeList();
        Object rows = LazyFields.value(statement.query, "toRdd");
        if (rows instanceof RDD) json.entry("functionRdd", ((RDD) rows).id());
    }

    /** How many files the sink's own log has of this batch; null where it can't be read. */
    private static Number files(FileStreamSink sink, long batch) {
        try {
            Object found = ScalaOptions.get(((FileStreamSinkLog) LazyFields.value(sink, "fileLog")).get(batch));
            return Integer.valueOf(found == null ? 0 : java.lang.reflect.Array.getLength(found));
        } catch (Throwable e) {
            CaughtErrors.reportUnforeseen("StreamWriter.files", e);
            return null;
        }
    }

    private static void about(StreamRun stream, Json json) {
        json.entry("query", stream.id).entry("run", stream.run);
        try {
            json.entry("began", stream.began());
        } catch (Throwable e) {
            json.entry("lost", CaughtErrors.text("StreamWriter.about", e));
        }
    }

    private static String offsets(StreamRun stream, PlanWriter shape, long batch, LogicalPlan plan, Json json) {
        try {
            String found = stream.offsets(shape, batch, plan);
            if (found == null) json.entry("unknown", "the checkpoint doesn't have its offsets any more");
            return found;
        } catch (Throwable e) {
            json.entry("unknown", CaughtErrors.text("StreamWriter.offsets", e));
            return null;
        }
    }

    /** That a query runs: `first` is its first batch, where it has one. */
    String started(StreamRun stream, Statement first, QueryExecution query) {
        Json json = new Json().open().entry("kind", "query").entry("event", "started");
        try {
            about(stream, json);
            json.entry("name", stream.name).entry("checkpoint", stream.checkpoint()).entry("trigger", String.valueOf(stream.execution.trigger()));
            json.entry("continuous", stream.execution.getClass().getSimpleName().startsWith("Continuous"));
            if (first != null) begins(stream, first, query == null ? null : StatementWriter.planOf(query), json);
        } catch (Throwable e) {
            json.entry("unreadable", CaughtErrors.text("StreamWriter.started", e));
        }
        return json.close().toString();
    }

    private void begins(StreamRun stream, Statement first, LogicalPlan plan, Json json) throws Exception {
        long batch = first.batch;
        catalogs.session(stream.execution.sparkSession());
        PlanWriter shape = new PlanWriter(values, sql);
        String text = shape.finish(shape.node(stream.plan()));
        String offsets = offsets(stream, shape, batch, plan, json);
        StatementWriter.context(first, json);
        json.entry("batch", batch).key("plan").raw(text);
        if (offsets != null) json.key("offsets").raw(offsets);
        String newCatalogs = catalogs.takeNew();
        if (newCatalogs.length() > 0) json.key("catalogs").raw("[" + newCatalogs + "]");
    }

    String ended(StreamingQueryListener.QueryTerminatedEvent end) {
        Json json = new Json().open().entry("kind", "query").entry("event", "ended");
        json.entry("run", end.runId().toString());
        String error = (String) ScalaOptions.get(end.exception());
        if (error != null) json.entry("error", error.length() > LONGEST ? error.substring(0, LONGEST) : error);
        json.entry("condition", (String) ScalaOptions.get(end.errorClassOnException()));
        return json.close().toString();
    }
}
