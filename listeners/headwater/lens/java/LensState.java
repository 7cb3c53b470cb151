package headwater.lens;

/** The lens of a session and of those that are cloned from it, as streams do it; null while there is none. */
public final class LensState {
    public volatile LensSpec current;
    final org.apache.spark.SparkContext context;
    final TargetUses uses = new TargetUses();

    public LensState(org.apache.spark.SparkContext context) {
        this.context = context;
    }

    /** What was done with the tables that are redirected to: one use a line, such as "ADDS scratch.dws.daily". */
    public String uses() {
        return uses.text();
    }
}
