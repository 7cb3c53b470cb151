package headwater.capture;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;

/**
 * Texts that wait to be taken, bounded by their number and length. What finds no room is counted, and reported in its place.
 *
 * The plans that a text refers to wait beside it, each once by its digest. One goes along with the first text that needs
 * it and again after whoever takes said that it forgot it: so a text that is taken never lacks its plan.
 */
final class RecordQueue {
    private static final int MOST_AT_ONCE = 1 << 20;
    /** What is forgotten by who lost an answer, and doesn't know what was in it. */
    private static final String ALL = "*";
    private final ArrayDeque queue = new ArrayDeque();
    /** By digest, plans that texts in the queue refer to. */
    private final Map plans = new HashMap();
    /** Digests of plans that whoever takes has. */
    private final Set known = new HashSet();
    private final int mostTexts;
    private final long most;
    private long held;
    private long missing;
    private long missingSince;

    RecordQueue(int mostTexts, long most) {
        this.mostTexts = mostTexts;
        this.most = most;
    }

    /** Before the work of writing one: whether there would be no room for the shortest. */
    synchronized boolean isFull() { return held >= most || queue.size() >= mostTexts; }

    synchronized boolean add(String text) { return add(text, new HashMap()); }

    /** A text with the plans that it refers to, by their digests. */
    synchronized boolean add(String text, Map itsPlans) {
        if (!queue.isEmpty() && (held + length(text, itsPlans) > most || queue.size() >= mostTexts)) {
            dropped();
            return false;
        }
        reportMissing();
        put(text, itsPlans);
        notifyAll();
        return true;
    }

    /** What has to arrive, however full it is. */
    synchronized void mark(String text) {
        reportMissing();
        put(text, new HashMap());
        notifyAll();
    }

    synchronized void dropped() {
        if (missing++ == 0) missingSince = System.currentTimeMillis();
        notifyAll();
    }

    /** Digests, separated by commas, of plans that are to be reported again when a text needs them. */
    synchronized void forget(String digests) {
        if (digests.equals(ALL)) known.clear();
        else known.removeAll(java.util.Arrays.asList(digests.split(",")));
    }

    /** Up to so many, a line each, or fewer that are long; null if there was none in that time. */
    synchronized String take(int mostTexts, long millis) throws InterruptedException {
        if (queue.isEmpty()) reportMissing();
        if (queue.isEmpty() && millis > 0) wait(millis);
        if (queue.isEmpty()) reportMissing();
        if (queue.isEmpty()) return null;
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < mostTexts && lines.length() < MOST_AT_ONCE && !queue.isEmpty(); i++) takeNext(lines);
        return lines.toString();
    }

    synchronized void clear() {
        queue.clear();
        plans.clear();
        held = 0;
        notifyAll();
    }

    private void takeNext(StringBuilder lines) {
        Object[] next = (Object[]) queue.poll();
        String text = (String) next[0];
        held -= 2L * text.length();
        StringBuilder unknown = new StringBuilder();
        for (Iterator each = ((Set) next[1]).iterator(); each.hasNext();) {
            String digest = (String) each.next();
            String plan = release(digest);
            if (known.add(digest)) unknown.append(unknown.length() == 0 ? "" : ",").append('"').append(digest).append("\":").append(plan);
        }
        if (unknown.length() == 0) lines.append(text);
        else lines.append(text, 0, text.length() - 1).append(",\"plans\":{").append(unknown).append("}}");
        lines.append('\n');
    }

    private String release(String digest) {
        WaitingPlan plan = (WaitingPlan) plans.get(digest);
        if (--plan.users == 0) {
            plans.remove(digest);
            held -= 2L * plan.text.length();
        }
        return plan.text;
    }

    private void reportMissing() {
        if (missing == 0) return;
        long now = System.currentTimeMillis();
        put(new Json().open().entry("kind", "dropped").entry("count", missing).entry("started", missingSince).entry("ended", now).close().toString(), new HashMap());
        missing = 0;
    }

    private long length(String text, Map itsPlans) {
        long found = 2L * text.length();
        for (Iterator each = itsPlans.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            if (!plans.containsKey(entry.getKey())) found += 2L * ((String) entry.getValue()).length();
        }
        return found;
    }

    private void put(String text, Map itsPlans) {
        held += length(text, itsPlans);
        for (Iterator each = itsPlans.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            WaitingPlan plan = (WaitingPlan) plans.get(entry.getKey());
            if (plan == null) plans.put(entry.getKey(), plan = new WaitingPlan((String) entry.getValue()));
            plan.users++;
        }
        queue.add(new Object[] {text, itsPlans.keySet()});
    }

    private static final class WaitingPlan {
        final String text;
        int users;

        WaitingPlan(String text) { this.text = text; }
    }
}
