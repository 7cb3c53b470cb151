package headwater.capture;

import org.apache.spark.rdd.RDD;

/** An extractor of a format whose own RDDs show what they read, below a DataFrame's `rdd`. */
public interface RddExtractor {
    /** Entries of an open object that say what this RDD reads, never reading anything but memory; false if it isn't this format's, or doesn't show it. */
    boolean rdd(RDD rdd, Json json) throws Exception;
}
