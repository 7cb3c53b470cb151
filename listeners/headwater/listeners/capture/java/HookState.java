package headwater.capture;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a format's hook shares with the format's extractor.
 *
 * Each format has it in a class that names nothing else: where a hook doesn't compile, because its format has moved on,
 * the extractor still does.
 */
final class HookState {
    private static final int MOST_OWN = 20000;

    /** Whether the hook sees commits now. */
    volatile boolean isInstalled;
    /** The last execution that had begun before the hook saw commits. */
    private volatile long lastUnseen;
    private final PendingFacts pending;
    /** What this JVM committed, by whatever names a commit of this format. */
    private final Map own = new LinkedHashMap() {
        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > MOST_OWN; }
    };

    /** At most so many things to look up are kept. */
    HookState(int most) { this.pending = new PendingFacts(most); }

    void installed() {
        if (isInstalled) return;
        isInstalled = true;
        lastUnseen = ExecutionTracker.lastExecution();
    }

    /**
     * Whether the hook saw all that a statement committed: not of one that began before the hook came. Numbers below zero
     * are given to what a hook has seen begin.
     */
    boolean covers(Statement statement) { return isInstalled && (statement.id < 0 || statement.id > lastUnseen); }

    /** Keeps what the extractor has to look up when this execution's statement has ended. */
    void later(String execution, Object what) { pending.add(execution, what); }

    /** Takes what was kept for these executions. */
    List take(List executions) { return pending.take(executions); }

    void markOwn(String commit) {
        synchronized (own) {
            own.put(commit, Boolean.TRUE);
        }
    }

    boolean isOwn(String commit) {
        synchronized (own) {
            return own.containsKey(commit);
        }
    }

    void uninstalled() {
        isInstalled = false;
        pending.clear();
    }
}
