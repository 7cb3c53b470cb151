package headwater.lens;

import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.internal.SessionState;

/**
 * A checkpoint of its own for each stream under a lens that redirects writes: in the one that is named the real stream
 * would find that its input has been read. A lens may lead it to a fork of that one.
 */
final class OwnCheckpoints {
    private static final String BASE = "spark.sql.streaming.checkpointLocation";
    /** Where a place in a case class's arguments is that of the location which the user names. */
    private static final int LOCATION = 1;
    /** By the location that is named, the one that stands for it: a stream that is started twice goes on. */
    private static final ConcurrentHashMap PLACES = new ConcurrentHashMap();

    private OwnCheckpoints() { }

    /** `isLed` says that the sink is one that the lens leads to. */
    static LogicalPlan of(LensSpec lens, SessionState session, WriteToStreamStatement stream, boolean isLed) {
        scala.Option named = (scala.Option) stream.productElement(LOCATION);
        String base = session.conf().getConfString(BASE, "");
        if (lens.writesElsewhere || (named.isEmpty() && base.isEmpty())) return stream;
        String location = named.isDefined() ? (String) named.get() : base + "/" + Leaves.call(stream, "userSpecifiedName");
        String path = TableNames.path(location);
        if (PLACES.containsValue(location) || lens.isAllowed(path) || lens.isTarget(path)) return stream;
        String other = lens.redirectOf(path);
        if (other == null && isLed && lens.leadsPaths()) throw LensCheck.checkpointError(lens, path);
        Object[] arguments = new Object[stream.productArity()];
        for (int i = 0; i < arguments.length; i++) arguments[i] = stream.productElement(i);
        arguments[LOCATION] = scala.Option.apply(other == null ? placeFor(location) : other);
        return (LogicalPlan) stream.makeCopy(arguments);
    }

    private static synchronized String placeFor(String location) {
        String place = (String) PLACES.get(location);
        if (place == null) {
            place = org.apache.spark.util.Utils.createTempDir(System.getProperty("java.io.tmpdir"), "headwater-lens-checkpoint").toURI().toString();
            PLACES.put(location, place);
        }
        return place;
    }
}
