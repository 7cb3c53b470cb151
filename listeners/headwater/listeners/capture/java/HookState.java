package headwater.capture;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a format's hook shares with the format's extractor.
 *
 * It names no class of a format: where a hook doesn't compile, because its format has moved on, the extractor still does.
 */
final class HookState {
    static final HookState DELTA = new HookState(1000);
    static final HookState HUDI = new HookState(1000);
    static final HookState ICEBERG = new HookState(10000);
    static final HookState ICEBERG_PROCEDURES = new HookState(0);
    static final HookState PAIMON = new HookState(1000);
    private static final int MOST_OWN = 20000;

    /** Whether the hook sees commits now. */
    volatile boolean isInstalled;
    private final PendingFacts pending;
    /** What this JVM committed, by whatever names a commit of this format. */
    private final Map own = new LinkedHashMap() {
        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > MOST_OWN; }
    };

    private HookState(int most) { this.pending = new PendingFacts(most); }

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
