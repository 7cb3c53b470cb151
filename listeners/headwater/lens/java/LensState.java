package headwater.lens;

import java.util.LinkedHashSet;
import java.util.Set;

/** The lens of a session and of those that are cloned from it, as streams do it; null while there is none. */
public final class LensState {
    private static final int MOST_REFUSALS = 100;
    public volatile LensSpec current;
    /** Whether the session's script is over: nothing more is run then. */
    public volatile boolean isClosed;
    final org.apache.spark.SparkContext context;
    final TargetUses uses = new TargetUses();
    private final Set refusals = new LinkedHashSet();

    public LensState(org.apache.spark.SparkContext context) {
        this.context = context;
    }

    /** What was done with the tables that are redirected to: one use a line, such as "ADDS scratch.dws.daily". */
    public String uses() {
        return uses.text();
    }

    /** What was refused: one message a line. A script may have gone on without it. */
    public synchronized String refusals() {
        return String.join("\n", refusals);
    }

    /** What a stream's batch tries that was stopped when the script was over, is what is lost when a process ends. */
    synchronized void note(Throwable refusal) {
        if (isClosed && context.getLocalProperty("sql.streaming.queryId") != null) return;
        if (refusals.size() < MOST_REFUSALS) refusals.add(String.valueOf(refusal.getMessage()).replace('\n', ' '));
    }

    void refuseIfClosed() {
        if (isClosed) throw new LensError("the lens '" + current.name + "' is closed, since the script is over: what goes on then isn't looked at");
    }
}
