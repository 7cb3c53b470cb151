package headwater.capture;

import java.util.ArrayDeque;

/** Texts that wait to be taken, bounded by their number and length. What finds no room is counted, and told in its place. */
final class Texts {
    private static final int MOST_AT_ONCE = 1 << 20;
    private final ArrayDeque queue = new ArrayDeque();
    private final int mostTexts;
    private final long most;
    private long held;
    private long missing;
    private long missingSince;

    Texts(int mostTexts, long most) {
        this.mostTexts = mostTexts;
        this.most = most;
    }

    /** Before the work of writing one: whether there would be no room for the shortest. */
    synchronized boolean isFull() { return held >= most || queue.size() >= mostTexts; }

    synchronized boolean add(String text) {
        if (!queue.isEmpty() && (held + 2L * text.length() > most || queue.size() >= mostTexts)) {
            dropped();
            return false;
        }
        mark(text);
        return true;
    }

    /** What has to arrive, however full it is. */
    synchronized void mark(String text) {
        tellMissing();
        put(text);
        notifyAll();
    }

    synchronized void dropped() {
        if (missing++ == 0) missingSince = System.currentTimeMillis();
        notifyAll();
    }

    /** Up to so many, a line each, or fewer that are long; null if there was none in that time. */
    synchronized String take(int mostTexts, long millis) throws InterruptedException {
        if (queue.isEmpty()) tellMissing();
        if (queue.isEmpty() && millis > 0) wait(millis);
        if (queue.isEmpty()) tellMissing();
        if (queue.isEmpty()) return null;
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < mostTexts && lines.length() < MOST_AT_ONCE && !queue.isEmpty(); i++) {
            String text = (String) queue.poll();
            held -= 2L * text.length();
            lines.append(text).append('\n');
        }
        return lines.toString();
    }

    synchronized void clear() {
        queue.clear();
        held = 0;
        notifyAll();
    }

    private void tellMissing() {
        if (missing == 0) return;
        long now = System.currentTimeMillis();
        put(new Json().open().entry("kind", "dropped").entry("count", missing).entry("from", missingSince).entry("to", now).close().toString());
        missing = 0;
    }

    private void put(String text) {
        held += 2L * text.length();
        queue.add(text);
    }
}
