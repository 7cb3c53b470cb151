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

/**
 * What hooks see in the threads that commit, kept under the execution of that thread until it ends.
 *
 * Some registries know no removal, so hooks live as long as the JVM; they reach the present context through here, and
 * do nothing where there is none. Called on the user's threads: nothing here waits, and nothing is thrown.
 */
public final class Facts {
    private static final int MOST = 20000;
    private static final AtomicReference CURRENT = new AtomicReference();
    private static final AtomicReference TAP = new AtomicReference();
    private static final AtomicInteger HELD = new AtomicInteger();
    private static final ConcurrentHashMap BY_EXECUTION = new ConcurrentHashMap();
    /** Threads that one starts while it is in a call are in it too. */
    private static final InheritableThreadLocal CALL = new InheritableThreadLocal();
    private static final AtomicLong CALLS = new AtomicLong(-1);
    /** Facts that found no room, and hooks that failed. */
    public static final AtomicLong DROPPED = new AtomicLong();
    public static final AtomicLong FAILED = new AtomicLong();

    private Facts() { }

    public static void attach(SparkContext context) { CURRENT.set(context); }

    public static void detach(SparkContext context) {
        if (CURRENT.compareAndSet(context, null)) {
            BY_EXECUTION.clear();
            HELD.set(0);
        }
    }

    public static boolean listening() { return CURRENT.get() != null; }

    static SparkContext listeningTo() { return (SparkContext) CURRENT.get(); }

    /** Whom calls that no execution is around are told to, as long as it is there. */
    static void tell(Tap tap) { TAP.set(tap); }

    static void post(Called called) throws Exception {
        Tap tap = (Tap) TAP.get();
        if (tap != null) tap.post(called);
    }

    /** The innermost execution of this thread, or a call that no execution is around, or null. */
    public static String execution() {
        String execution = property("spark.sql.execution.id");
        Within call = (Within) CALL.get();
        return call != null && call.isOpen && (execution == null || execution.equals(call.around)) ? Long.toString(call.id) : execution;
    }

    /**
     * From now on this thread is in a call that is no execution, as Spark 4 makes those of procedures. Its number is
     * below zero, where no execution's is.
     */
    static Within enter() {
        Within call = new Within(CALLS.decrementAndGet(), property("spark.sql.execution.id"), (Within) CALL.get());
        CALL.set(call);
        return call;
    }

    static void leave(Within call) {
        call.isOpen = false;
        CALL.set(call.before);
    }

    public static String property(String name) {
        SparkContext context = (SparkContext) CURRENT.get();
        return context == null ? null : context.getLocalProperty(name);
    }

    /** An object as JSON, about what this thread just did. */
    public static void note(Json fact) { noteFor(execution(), fact); }

    public static void noteFor(String execution, Json fact) { keep(execution, fact.toString()); }

    /** What was done outside of any execution, and is completed when it is taken. */
    static void noteLoose(Later fact) { keep(null, fact); }

    private static void keep(String execution, Object fact) {
        if (HELD.incrementAndGet() > MOST) forgetOldest();
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
        if (HELD.get() <= MOST) return;
        TreeMap byAge = new TreeMap();
        for (Iterator i = BY_EXECUTION.keySet().iterator(); i.hasNext();) {
            String key = (String) i.next();
            byAge.put(key.isEmpty() ? Long.valueOf(-1) : Long.valueOf(key), key);
        }
        int most = byAge.size() / 10 + 1;
        for (Iterator i = byAge.values().iterator(); i.hasNext() && most > 0; most--) DROPPED.addAndGet(take((String) i.next()).size());
    }

    private static void later(Later fact, List found) {
        String told = fact.tell();
        if (told != null) found.add(told);
        else if (listening()) keep(null, fact);
    }

    /** How many facts are held: none where all executions have ended. */
    public static int held() { return HELD.get(); }

    /** Takes what was noted for an execution; "" stands for what was done outside of any. */
    public static List take(String execution) {
        List found = new ArrayList();
        ConcurrentLinkedQueue queue = (ConcurrentLinkedQueue) BY_EXECUTION.remove(execution);
        if (queue != null) {
            for (Iterator i = queue.iterator(); i.hasNext();) {
                Object fact = i.next();
                HELD.decrementAndGet();
                if (!(fact instanceof Later)) found.add(fact);
                else later((Later) fact, found);
            }
        }
        return found;
    }

    /** A call that a thread is in; threads that outlive it hold no more than this of it. */
    static final class Within {
        final long id;
        /** The execution that the call was made in. */
        final String around;
        private final Within before;
        private volatile boolean isOpen = true;

        private Within(long id, String around, Within before) {
            this.id = id;
            this.around = around;
            this.before = before;
        }
    }
}
