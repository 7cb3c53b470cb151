package headwater.capture;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.SQLExecution;

/**
 * What hooks see in the threads that commit, kept under the execution of that thread until it ends.
 *
 * Some registries know no removal, so hooks live as long as the JVM; they reach the present context through here, and
 * do nothing where there is none. Called on the user's threads: nothing here waits, and nothing is thrown.
 */
public final class CommitRecorder {
    private static final int MOST = 20000;
    private static final AtomicReference CURRENT = new AtomicReference();
    private static final AtomicReference LISTENER = new AtomicReference();
    private static final AtomicInteger FACT_COUNT = new AtomicInteger();
    private static final ConcurrentHashMap BY_EXECUTION = new ConcurrentHashMap();
    /** Threads that one starts while it is in a call are in it too. */
    private static final InheritableThreadLocal CALL = new InheritableThreadLocal();
    private static final AtomicLong CALLS = new AtomicLong(-1);
    /** Facts that found no room. */
    public static final AtomicLong DROPPED = new AtomicLong();

    private static volatile boolean isEnding;

    private CommitRecorder() { }

    public static void attach(SparkContext context) {
        isEnding = false;
        CaughtErrors.forgetStatements();
        CURRENT.set(context);
    }

    public static void detach(SparkContext context) {
        if (CURRENT.compareAndSet(context, null)) {
            BY_EXECUTION.clear();
            FACT_COUNT.set(0);
        }
    }

    /** From now on what waits for something is taken as it is. Whether there may be anything. */
    public static boolean end() {
        isEnding = true;
        return BY_EXECUTION.containsKey("");
    }

    public static boolean listening() { return CURRENT.get() != null; }

    static SparkContext listeningTo() { return (SparkContext) CURRENT.get(); }

    /** Who receives calls that no execution is around, as long as it is there. */
    static void setListener(SqlExecutionListener listener) { LISTENER.set(listener); }

    static void post(ProcedureCall called) throws Exception {
        SqlExecutionListener listener = (SqlExecutionListener) LISTENER.get();
        if (listener != null) listener.post(called);
    }

    /** The innermost execution of this thread, or a call that no execution is around, or null. */
    public static String execution() {
        String execution = property("spark.sql.execution.id");
        if (!isRunning(execution)) execution = null;
        CallScope call = (CallScope) CALL.get();
        return call != null && call.isOpen && (execution == null || execution.equals(call.around)) ? Long.toString(call.id) : execution;
    }

    /**
     * From now on this thread is in a call that is no execution, as Spark 4 makes those of procedures. Its number is
     * below zero, where no execution's is.
     */
    static CallScope enter() {
        CallScope call = new CallScope(CALLS.decrementAndGet(), property("spark.sql.execution.id"), (CallScope) CALL.get());
        CALL.set(call);
        return call;
    }

    static void leave(CallScope call) {
        call.isOpen = false;
        CALL.set(call.before);
    }

    /** A thread keeps the number of the execution that it was born in, however long that is over. */
    static boolean isRunning(String execution) {
        return execution != null && SQLExecution.getQueryExecution(Long.parseLong(execution)) != null;
    }

    public static String property(String name) {
        SparkContext context = (SparkContext) CURRENT.get();
        return context == null ? null : context.getLocalProperty(name);
    }

    /** An object as JSON, about what this thread just did. */
    public static void note(Json fact) { noteFor(execution(), fact); }

    public static void noteFor(String execution, Json fact) { keep(execution, fact.toString()); }

    /** What was done outside of any execution, and is completed when it is taken. */
    static void noteOutsideExecution(DeferredFact fact) { keep(null, fact); }

    private static void keep(String execution, Object fact) {
        if (FACT_COUNT.incrementAndGet() > MOST) forgetOldest();
        String key = execution == null ? "" : execution;
        ConcurrentLinkedQueue queue = (ConcurrentLinkedQueue) BY_EXECUTION.get(key);
        if (queue == null) {
            ConcurrentLinkedQueue fresh = new ConcurrentLinkedQueue();
            queue = (ConcurrentLinkedQueue) BY_EXECUTION.putIfAbsent(key, fresh);
            if (queue == null) queue = fresh;
        }
        queue.add(fact);
    }

    /**
     * Facts of executions whose end never came, or came before the fact: a tenth of all executions, those with the
     * smallest ids. What is left unread there must not keep out what is noted now.
     */
    static synchronized void forgetOldest() {
        if (FACT_COUNT.get() <= MOST) return;
        TreeMap byAge = new TreeMap();
        for (Iterator i = BY_EXECUTION.keySet().iterator(); i.hasNext();) {
            String key = (String) i.next();
            byAge.put(key.isEmpty() ? Long.valueOf(-1) : Long.valueOf(key), key);
        }
        int most = byAge.size() / 10 + 1;
        for (Iterator i = byAge.values().iterator(); i.hasNext() && most > 0; most--) DROPPED.addAndGet(take((String) i.next()).size());
    }

    private static void later(DeferredFact fact, List found) {
        String text = fact.resolve(isEnding);
        if (text != null) found.add(text);
        else if (listening()) keep(null, fact);
    }

    /** How many facts are held: none where all executions have ended. */
    public static int held() { return FACT_COUNT.get(); }

    /** Takes what was noted for an execution; "" stands for what was done outside of any. */
    public static List take(String execution) {
        List found = new ArrayList();
        ConcurrentLinkedQueue queue = (ConcurrentLinkedQueue) BY_EXECUTION.remove(execution);
        if (queue != null) {
            for (Iterator i = queue.iterator(); i.hasNext();) {
                Object fact = i.next();
                FACT_COUNT.decrementAndGet();
                if (!(fact instanceof DeferredFact)) found.add(fact);
                else later((DeferredFact) fact, found);
            }
        }
        return found;
    }

    /** A call that a thread is in; threads that outlive it hold no more than this of it. */
    static final class CallScope {
        final long id;
        /** The execution that the call was made in. */
        final String around;
        private final CallScope before;
        private volatile boolean isOpen = true;

        private CallScope(long id, String around, CallScope before) {
            this.id = id;
            this.around = around;
            this.before = before;
        }
    }
}
