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
    private static final AtomicInteger HELD = new AtomicInteger();
    private static final ConcurrentHashMap BY_EXECUTION = new ConcurrentHashMap();
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

    /** The innermost execution of this thread, or null. */
    public static String execution() { return property("spark.sql.execution.id"); }

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
}
