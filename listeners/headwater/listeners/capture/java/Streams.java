package headwater.capture;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.StreamExecution;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/** The streaming queries that run, by their runs. They are looked up when Spark first tells of them. */
final class Streams {
    private static final Pattern DESCRIPTION =
        Pattern.compile("(?s).*\\nid = [0-9a-f-]{36}\\nrunId = [0-9a-f-]{36}\\nbatch = (?:[0-9]+|init)");

    private final Map byRun = new HashMap();

    /** Whether this describes what a query does, be it its batch, or what its sources do to find out what is new. */
    static boolean describes(String text) { return text != null && text.indexOf("\nrunId = ") >= 0 && DESCRIPTION.matcher(text).matches(); }

    /** The run, where it is known or still active; else null. */
    synchronized Stream at(UUID id, UUID run) {
        Stream known = (Stream) byRun.get(run);
        if (known != null) return known;
        StreamExecution running = running(id, run);
        if (running == null) return null;
        Stream made = new Stream(running);
        byRun.put(run, made);
        return made;
    }

    private static StreamExecution running(UUID id, UUID run) {
        SparkSession session = (SparkSession) Options.get(SparkSession.getDefaultSession());
        if (session == null) return null;
        Object found = session.sharedState().activeStreamingQueries().get(id);
        boolean fits = found instanceof StreamExecution && run.equals(((StreamExecution) found).runId());
        return fits ? (StreamExecution) found : null;
    }

    /** The run that something was told of that isn't its start or end; null where it isn't there any more. */
    Stream of(StreamingQueryListener.Event event) {
        if (event instanceof StreamingQueryListener.QueryProgressEvent) {
            StreamingQueryProgress progress = ((StreamingQueryListener.QueryProgressEvent) event).progress();
            return at(progress.id(), progress.runId());
        }
        if (!(event instanceof StreamingQueryListener.QueryIdleEvent)) return null;
        StreamingQueryListener.QueryIdleEvent idle = (StreamingQueryListener.QueryIdleEvent) event;
        return at(idle.id(), idle.runId());
    }

    synchronized Stream ended(UUID run) { return (Stream) byRun.remove(run); }

    synchronized void clear() { byRun.clear(); }
}
