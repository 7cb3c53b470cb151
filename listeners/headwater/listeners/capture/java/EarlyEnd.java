package headwater.capture;

import org.apache.spark.scheduler.SparkListenerEvent;

/** Posted to our own queue only, behind the last event that EarlyEvents kept. */
final class EarlyEnd implements SparkListenerEvent {
    public boolean logEvent() { return false; }
}
