package headwater.capture;

import org.apache.spark.scheduler.SparkListenerEvent;

/** Posted to our own queue only: when it arrives, all that was posted before it has arrived. */
final class QueueMark implements SparkListenerEvent {
    private long goal = -1;

    public boolean logEvent() { return false; }

    synchronized void arrived(long offered) {
        goal = offered;
        notifyAll();
    }

    /** How many plans had been offered by then; -1 if that isn't known in that time. */
    synchronized long await(long deadline) throws InterruptedException {
        for (long left = deadline - System.nanoTime(); goal < 0 && left > 0; left = deadline - System.nanoTime()) wait(left / 1000000L + 1);
        return goal;
    }
}
