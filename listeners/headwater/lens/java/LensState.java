package headwater.lens;

/** The lens of a session and of those that are cloned from it, as streams do it; null while there is none. */
public final class LensState {
    public volatile LensSpec current;
    final org.apache.spark.SparkContext context;

    public LensState(org.apache.spark.SparkContext context) {
        this.context = context;
    }
}
