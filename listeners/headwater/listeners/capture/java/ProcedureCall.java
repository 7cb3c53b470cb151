package headwater.capture;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure that was called, and what it answered. Spark 4 calls procedures while it analyses, outside of any
 * execution; a hook that is around one posts this to our own queue, where it stands behind what the thread did before.
 */
public final class ProcedureCall implements SparkListenerEvent {
    private static final String OURS = "spark.headwater.";

    public final Object procedure;
    public final InternalRow input;
    public final Object[] arguments;
    public final List rows = new ArrayList();
    public StructType schema;
    public Throwable failure;
    /** What the hook found out about whom it was called for. */
    public Object target;
    /** Null where an execution is around the call. */
    public Statement statement;
    private CommitRecorder.CallScope within;

    public ProcedureCall(Object procedure, InternalRow input, List rows, StructType schema) {
        this.procedure = procedure;
        this.input = input;
        this.arguments = input instanceof GenericInternalRow ? ((GenericInternalRow) input).values() : new Object[0];
        this.rows.addAll(rows);
        this.schema = schema;
    }

    public boolean logEvent() { return false; }

    /** On the user's thread, right before the procedure runs; null where nobody wants to know. */
    static ProcedureCall begin(Object procedure, InternalRow input) {
        try {
            SparkContext context = CommitRecorder.listeningTo();
            if (context == null || context.getJobTags().contains(SqlExecutionListener.OWN)) return null;
            ProcedureCall called = new ProcedureCall(procedure, input, Collections.emptyList(), null);
            SparkSession session = SparkSession.active();
            Map confs = ValueWriter.javaMap(session.conf().getAll());
            called.within = CommitRecorder.enter();
            called.statement = new Statement(called.within.id);
            called.statement.session = session;
            called.statement.started = System.currentTimeMillis();
            for (Iterator i = confs.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                if (((String) entry.getKey()).startsWith(OURS)) called.statement.confs.put(entry.getKey(), entry.getValue());
            }
            called.statement.tags.addAll(scala.collection.JavaConverters.setAsJavaSet(context.getJobTags()));
            return called;
        } catch (Throwable e) {
            CaughtErrors.report("ProcedureCall.begin", e);
            return null;
        }
    }

    /** On the user's thread, when it has run. */
    void end(Throwable failure) {
        try {
            CommitRecorder.leave(within);
            this.failure = failure;
            statement.ended = System.currentTimeMillis();
            CommitRecorder.post(this);
        } catch (Throwable e) {
            CaughtErrors.report("ProcedureCall.end", e);
        }
    }
}
