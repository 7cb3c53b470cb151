package headwater.capture;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What our sources caught and didn't throw on. A place is the method that catches, by a name that no other has.
 *
 * The first of each class at a place is kept with its frames until Python takes it for its log; later ones don't walk the
 * stack. Python logs, and not Spark's logger, because a message may quote data: that is taken out there. Called on any
 * thread, Spark's among them: nothing here waits, nothing is thrown, and all that is kept is bounded.
 */
public final class CaughtErrors {
    private static final int MOST_FIRSTS = 200;
    /** Between two records; of those beyond only the number is reported. */
    private static final int MOST_REPORTED = 20;
    private static final int MOST_FRAMES = 12;
    /** More than redaction keeps: half a password doesn't look like one. */
    private static final int MOST_CHARACTERS = 5000;
    private static final String OURS = "headwater.";
    private static final AtomicLong COUNT = new AtomicLong();
    /** By place and class, what the first one said, and the line of ours where it arose. */
    private static final ConcurrentHashMap FIRSTS = new ConcurrentHashMap();
    private static final ConcurrentLinkedQueue UNLOGGED = new ConcurrentLinkedQueue();
    private static final ConcurrentLinkedQueue UNREPORTED = new ConcurrentLinkedQueue();
    private static final AtomicInteger UNREPORTED_COUNT = new AtomicInteger();
    /** The number of the statement that a thread of ours reads. */
    private static final ThreadLocal READ = new ThreadLocal();

    private CaughtErrors() { }

    /** For what is missing now and isn't reported by anything else: a Gap names the statement and what was caught. */
    public static void report(String place, Throwable caught) {
        COUNT.incrementAndGet();
        try {
            if (UNREPORTED_COUNT.get() >= MOST_REPORTED) return;
            Json json = new Json().open().entry("why", described(place, caught));
            Long statement = statement();
            if (statement != null && statement.longValue() >= 0) json.entry("statement", statement);
            UNREPORTED_COUNT.incrementAndGet();
            UNREPORTED.add(json.close().toString());
        } catch (Throwable again) {
            // it is counted; on a stack or in a heap that is full there is no more to be had
        }
    }

    /** For a text that says that something is missing: where it arose, its class, and what it says. */
    public static String text(String place, Throwable caught) {
        try {
            return described(place, caught);
        } catch (Throwable again) {
            return place;  // as above
        }
    }

    /** For what takes nothing from what is reported, as there is another way. */
    public static void log(String place, Throwable caught) {
        try {
            if (!FIRSTS.containsKey(key(place, origin(caught)))) described(place, caught);
        } catch (Throwable again) {
            // as above
        }
    }

    /** Where failing may be an answer, such as that a table is gone: only what can't be one is reported. */
    public static void reportUnforeseen(String place, Throwable caught) { if (isUnforeseen(caught)) report(place, caught); }

    public static void logUnforeseen(String place, Throwable caught) { if (isUnforeseen(caught)) log(place, caught); }

    /** Whether it says that a library isn't as our sources know it, or that the JVM is in need. */
    public static boolean isUnforeseen(Throwable caught) {
        Throwable e = origin(caught);
        return e instanceof LinkageError || e instanceof VirtualMachineError || e instanceof ClassCastException
            || e instanceof NoSuchMethodException || e instanceof NoSuchFieldException || e instanceof IllegalAccessException
            || e.getClass().getName().equals("java.lang.reflect.InaccessibleObjectException");  // Java 8 doesn't have it
    }

    /** What a thread of ours catches from now on is about this statement. */
    static void reads(Statement statement) { READ.set(Long.valueOf(statement.id)); }

    static void readsNothing() { READ.remove(); }

    static long count() { return COUNT.get(); }

    /** Another context comes, which has other statements under the same numbers. */
    static void forgetStatements() { takeAll(UNREPORTED, UNREPORTED_COUNT); }

    /** JSON objects that say what is to be reported, as many as there are; `count` was as high before. */
    static List takeUnreported() { return takeAll(UNREPORTED, UNREPORTED_COUNT); }

    /** The same of what is to be logged. */
    static List takeUnlogged() { return takeAll(UNLOGGED, null); }

    private static List takeAll(ConcurrentLinkedQueue queue, AtomicInteger size) {
        List found = new ArrayList();
        for (Object next = queue.poll(); next != null; next = queue.poll()) {
            if (size != null) size.decrementAndGet();
            found.add(next);
        }
        return found;
    }

    private static String key(String place, Throwable origin) { return place + " " + origin.getClass().getName(); }

    private static String described(String place, Throwable caught) {
        Throwable e = origin(caught);
        String says = says(e);
        String key = key(place, e);
        String[] first = (String[]) FIRSTS.get(key);
        if (first == null && FIRSTS.size() < MOST_FIRSTS) {
            StackTraceElement[] frames = e.getStackTrace();
            first = new String[] {says, line(frames, place)};
            if (FIRSTS.putIfAbsent(key, first) == null) UNLOGGED.add(logged(place, first, frames));
        }
        // Where it says something else it may have come from another line.
        return (first != null && first[0].equals(says) ? first[1] : place) + ": " + says;
    }

    /** What reflection, and whoever only hands on, put around it isn't of interest. */
    private static Throwable origin(Throwable caught) {
        Throwable e = caught;
        for (int i = 0; i < 10 && e.getCause() != null && (e.getMessage() == null || e.getMessage().equals(e.getCause().toString())); i++)
            e = e.getCause();
        return e;
    }

    /** Its class, and the first line of its message. */
    private static String says(Throwable e) {
        String message = e.getMessage();
        if (message == null) return e.getClass().getName();
        int end = message.indexOf('\n');
        String line = message.substring(0, Math.min(end < 0 ? message.length() : end, MOST_CHARACTERS));
        // What a class or a method is called isn't data: in such quotes it isn't taken out.
        return e.getClass().getName() + ": " + (e instanceof LinkageError ? line.replace('\'', '`') : line);
    }

    /** The topmost line of ours, which says what was tried. */
    private static String line(StackTraceElement[] frames, String place) {
        for (int i = 0; i < frames.length; i++)
            if (frames[i].getClassName().startsWith(OURS) && frames[i].getFileName() != null)
                return frames[i].getFileName() + ":" + frames[i].getLineNumber();
        return place;
    }

    private static String logged(String place, String[] first, StackTraceElement[] frames) {
        Json json = new Json().open().entry("place", place).entry("why", first[1] + ": " + first[0]).key("frames").openList();
        for (int i = 0; i < frames.length && i < MOST_FRAMES; i++) json.value(frames[i].toString());
        return json.closeList().close().toString();
    }

    /** The statement that this thread reads or runs; null where it is in none, or it can't be said. */
    private static Long statement() {
        try {
            Long read = (Long) READ.get();
            if (read != null) return read;
            String execution = CommitRecorder.execution();
            String root = CommitRecorder.property("spark.sql.execution.root.id");
            if (execution == null) return null;
            return Long.valueOf(CommitRecorder.isRunning(root) && !execution.startsWith("-") ? root : execution);
        } catch (Throwable again) {
            return null;  // what was caught may have come from there
        }
    }
}
