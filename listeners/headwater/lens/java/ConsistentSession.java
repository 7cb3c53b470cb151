package headwater.lens;

import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SessionState;

/** Consistent reads in one session: which versions each statement reads, and which the session has read before. */
final class ConsistentSession {
    private static final org.slf4j.Logger LOG = org.slf4j.LoggerFactory.getLogger("headwater.lens.ConsistentReads");
    private static final int MOST_WARNINGS = 200;
    private static final Set WARNED = ConcurrentHashMap.newKeySet();
    private static final int KEPT = 8;
    private static final long PAUSE_MILLIS = 200L;
    private static final String NONE = "no consistent versions of ";
    private static final String UNREADABLE = "they can't be read at the versions that belong together: ";
    /** The newest analyses of this thread: views and subqueries are analysed in the middle of others. */
    private static final ThreadLocal ANALYSES = new ThreadLocal();
    /** What EXPLAIN shows, while this thread explains a statement. */
    private static final ThreadLocal EXPLAINED = new ThreadLocal();

    final SessionState state;
    /** Those of the application now: headwater can be taken out and put in again. */
    volatile ConsistentReads reads;
    /** The newest version of each table that this session has read. */
    private final Map newest = new LinkedHashMap();

    ConsistentSession(ConsistentReads reads, SessionState state) {
        this.reads = reads;
        this.state = state;
    }

    boolean isOn() {
        return ConsistentSettings.isOn(state.conf()) && !reads.isClosed() && !Executions.isInternal(reads.context);
    }

    /** What is pinned in the plan of this analysis; null if nothing is. The first call decides for all that follow. */
    LensSpec pinsFor(LogicalPlan plan) {
        Analysis analysis = current();
        if (analysis == null) {
            QueryTables found = QueryTables.of(state, plan);
            if (found.seen.isEmpty()) return null;
            analysis = begin(found);
            analysis.pins = decide(found.tables);
            return analysis.pins;
        }
        if (!analysis.seen.containsAll(QueryTables.named(state, plan).seen)) addLate(analysis, QueryTables.of(state, plan));
        return analysis.pins;
    }

    private LensSpec decide(Set tables) {
        ConsistentSettings settings = ConsistentSettings.of(state.conf());
        List asked = notAllowed(tables, settings);
        if (asked.size() < 2) return null;
        ConsistentAnswer answer = answer(asked, settings);
        if (!answer.reasons.isEmpty()) {
            if (!settings.readsLatest) throw error(asked, answer.why());
            warn(asked, answer.why());
        }
        explain(answer, asked);
        if (answer.pins.isEmpty()) return null;
        LensSpec pins = new LensSpec("consistent reads", true, true);
        for (Iterator all = answer.pins.values().iterator(); all.hasNext();) {
            ConsistentAnswer.Pin pin = (ConsistentAnswer.Pin) all.next();
            pins.pin(pin.name, pin.version);
        }
        return pins;
    }

    private static List notAllowed(Set tables, ConsistentSettings settings) {
        List asked = new ArrayList();
        for (Iterator all = tables.iterator(); all.hasNext();) {
            String table = (String) all.next();
            if (!settings.isAllowed(table)) asked.add(table);
        }
        return asked;
    }

    /** A recent answer that this session can read; else ask until there is one, or the time is over for which it waits. */
    private ConsistentAnswer answer(List tables, ConsistentSettings settings) {
        ConsistentAnswer recent = reads.recent(String.join("\n", tables), settings.maxAgeMillis);
        if (recent != null) {
            refuseUnreadable(recent);
            if (recent.reasons.isEmpty()) return recent;
        }
        long end = System.nanoTime() + settings.waitMillis * 1000000L;
        while (true) {
            ConsistentAnswer answer = askOnce(tables, settings);
            if (answer.reasons.isEmpty() || settings.readsLatest) refuseUnreadable(answer);
            long left = (end - System.nanoTime()) / 1000000L;
            if (answer.reasons.isEmpty() || left <= 0) return answer;
            pause(Math.min(PAUSE_MILLIS, left));
        }
    }

    /** Refuse versions of other tables, and those that this session has left behind. */
    private void refuseUnreadable(ConsistentAnswer answer) {
        List strangers = strangers(answer);
        if (!strangers.isEmpty()) answer.refuse(strangers);
        goForward(answer);
    }

    private ConsistentAnswer askOnce(List tables, ConsistentSettings settings) {
        try {
            ConsistentAnswer answer = reads.ask(String.join("\n", tables), settings.timeoutMillis);
            if (answer != null) return answer;
            return ConsistentAnswer.none("the lineage store hasn't answered within " + settings.timeoutMillis + " ms");
        } catch (InterruptedException e) {
            throw interrupted();
        }
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw interrupted();
        }
    }

    private static LensError interrupted() {
        Thread.currentThread().interrupt();
        return new LensError("the statement was cancelled while it waited for versions that belong together");
    }

    /** Why versions are of other tables than those that the session would read. */
    private List strangers(ConsistentAnswer answer) {
        List why = new ArrayList();
        for (Iterator all = answer.pins.values().iterator(); all.hasNext();) {
            ConsistentAnswer.Pin pin = (ConsistentAnswer.Pin) all.next();
            if (pin.isOfAnother(CachedTables.generation(state, pin))) why.add(stranger(pin.name));
        }
        return why;
    }

    private static String stranger(String name) {
        return name + " is another table than the one whose versions the lineage store knows: it was dropped and made again, or the store means another catalog of that name";
    }

    /** Remember what is read now; where a table would go back in time, nothing is pinned, and the answer says why. */
    private void goForward(ConsistentAnswer answer) {
        List why = new ArrayList();
        synchronized (newest) {
            for (Iterator all = answer.pins.values().iterator(); all.hasNext();) {
                ConsistentAnswer.Pin pin = (ConsistentAnswer.Pin) all.next();
                ConsistentAnswer.Pin before = (ConsistentAnswer.Pin) newest.get(pin.name);
                if (before != null && pin.isBefore(before)) {
                    why.add("together with the others " + pin.name + " would be read at " + pin.version + ", and this session has read it at " + before.version + " before, which is later");
                }
            }
            if (why.isEmpty()) newest.putAll(answer.pins);
        }
        if (!why.isEmpty()) answer.refuse(why);
    }

    /** Whether a statement goes on without pins whose tables can't be read so, as after a snapshot expired. */
    boolean goOnWithoutPins(String reason) {
        Analysis analysis = current();
        if (analysis == null || analysis.pins == null || !ConsistentSettings.of(state.conf()).readsLatest) return false;
        analysis.pins = null;
        List tables = new ArrayList(analysis.tables);
        String why = UNREADABLE + reason;
        warn(tables, why);
        explain(ConsistentAnswer.none(why), tables);
        return true;
    }

    /** The error of a statement of which a table can't be read at its version, with the format's own as its cause. */
    LensError unreadableError(String why, Throwable cause) {
        Analysis analysis = current();
        return new LensError(message(analysis == null ? Collections.EMPTY_SET : analysis.tables, UNREADABLE + why), cause);
    }

    /** Names that only came up when others had been looked up: in views of a kind that wasn't looked into. */
    private void addLate(Analysis analysis, QueryTables found) {
        analysis.seen.addAll(found.seen);
        boolean isMore = analysis.tables.addAll(found.tables);
        ConsistentSettings settings = ConsistentSettings.of(state.conf());
        List asked = notAllowed(analysis.tables, settings);
        if (!isMore || asked.size() < 2) return;
        refuse(asked, "some of them came up only after others had been looked up, as in a view of a catalog's own", settings);
    }

    /** Whether the analysed plan has what was decided, and what of it was looked up earlier, one by one. */
    void check(LogicalPlan plan) {
        PlanReads found = PlanReads.of(plan);
        Set pinned = found.pinned();
        checkGenerations(found);
        if (!found.missing.isEmpty()) {  // also with `latest`: the plan is made, and can't be made without pins any more
            throw new LensError(NONE + String.join(", ", pinned) + ": " + UNREADABLE + String.join(", ", found.missing) + ". SET " + ConsistentSettings.KEY + " = false reads them as they are now");
        }
        if (!found.areOfOneCut()) refuse(new ArrayList(pinned), "DataFrames or views of two cuts are read together, which were made when other versions belonged together: read them by one SQL statement", ConsistentSettings.of(state.conf()));
        if (found.unpinned.isEmpty()) return;  // as SET, by which a setting that can't be read is mended
        ConsistentSettings settings = ConsistentSettings.of(state.conf());
        List unpinned = notAllowed(found.unpinned, settings);
        if (unpinned.isEmpty() || settings.readsLatest && wasDecided(unpinned)) return;
        Set all = new HashSet(pinned);
        all.addAll(unpinned);
        if (all.size() < 2) return;
        refuse(new ArrayList(all), "of these " + String.join(", ", unpinned) + " was looked up before, by itself, as DataFrames are that are joined: read them by one SQL statement", settings);
    }

    /** Whether the analysis that ends now has said what becomes of these tables. */
    private static boolean wasDecided(List tables) {
        Analysis last = last();
        return last != null && last.tables.containsAll(tables);
    }

    /** The analysis that this thread has begun last. */
    private static Analysis last() {
        ArrayDeque all = (ArrayDeque) ANALYSES.get();
        return all == null || all.isEmpty() ? null : (Analysis) all.getFirst();
    }

    private void checkGenerations(PlanReads found) {
        for (Iterator all = found.pinned().iterator(); all.hasNext();) {
            String name = (String) all.next();
            String generation = (String) found.fixed.get(name);
            ConsistentAnswer.Pin pin;
            synchronized (newest) {
                pin = (ConsistentAnswer.Pin) newest.get(name);
            }
            if (pin != null && generation != null && pin.isOfAnother(generation)) throw new LensError(stranger(name) + ". " + advice());
        }
    }

    private void refuse(List tables, String why, ConsistentSettings settings) {
        if (!settings.readsLatest) throw error(tables, why);
        warn(tables, why);
        explain(ConsistentAnswer.none(why), tables);
    }

    private static LensError error(Collection tables, String why) {
        return new LensError(message(tables, why));
    }

    private static String message(Collection tables, String why) {
        return NONE + String.join(", ", tables) + ": " + why + ". " + advice();
    }

    private static String advice() {
        return "SET " + ConsistentSettings.OTHERWISE + " = latest reads them as they are now, = wait 60s waits for them, and " + ConsistentSettings.ALLOWED + " = NAME leaves a table out";
    }

    private static void warn(List tables, String why) {
        if (WARNED.size() < MOST_WARNINGS && WARNED.add(tables + why)) LOG.warn("no consistent versions of {}, which are read as they are now: {}", String.join(", ", tables), why);
    }

    void beginExplaining() {
        EXPLAINED.set(new StringBuilder());
    }

    String endExplaining() {
        String text = EXPLAINED.get().toString();
        EXPLAINED.remove();
        return text;
    }

    private static void explain(ConsistentAnswer answer, List asked) {
        StringBuilder text = (StringBuilder) EXPLAINED.get();
        if (text == null) return;
        for (Iterator all = answer.pins.values().iterator(); all.hasNext();) text.append(((ConsistentAnswer.Pin) all.next()).describe()).append('\n');
        if (!answer.cut.isEmpty()) text.append("they contain ").append(answer.cut).append('\n');
        for (Iterator all = asked.iterator(); all.hasNext();) {
            String table = (String) all.next();
            if (!answer.pins.containsKey(table)) text.append(table).append(" as it is now\n");
        }
        for (Iterator all = answer.notes.iterator(); all.hasNext();) text.append("not known: ").append(all.next()).append('\n');
        if (!answer.reasons.isEmpty()) text.append("not consistent: ").append(answer.why()).append('\n');
    }

    private static Analysis current() {
        ArrayDeque all = (ArrayDeque) ANALYSES.get();
        if (all == null) return null;
        Object key = AnalysisContext.get().relationCache();
        for (Iterator each = all.iterator(); each.hasNext();) {
            Analysis analysis = (Analysis) each.next();
            if (analysis.key.get() == key) return analysis;
        }
        return null;
    }

    private static Analysis begin(QueryTables found) {
        ArrayDeque all = (ArrayDeque) ANALYSES.get();
        if (all == null) {
            all = new ArrayDeque();
            ANALYSES.set(all);
        }
        if (all.size() >= KEPT) all.removeLast();
        Analysis analysis = new Analysis(AnalysisContext.get().relationCache(), found);
        all.addFirst(analysis);
        return analysis;
    }

    private static final class Analysis {
        final WeakReference key;
        final Set seen;
        final Set tables;
        LensSpec pins;

        Analysis(Object key, QueryTables found) {
            this.key = new WeakReference(key);
            this.seen = found.seen;
            this.tables = found.tables;
        }
    }
}
