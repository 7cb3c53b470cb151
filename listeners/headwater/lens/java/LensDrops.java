package headwater.lens;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.DropTablePreEvent;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogEvent;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogEventListener;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogWithListener;
import org.apache.spark.sql.internal.SessionState;
import scala.runtime.AbstractFunction0;

/**
 * Keeps tables of Spark's own catalog from being dropped that the lens doesn't let be written. `saveAsTable` with the mode
 * overwrite drops the table that it is given before anything is analysed, so no check of a plan comes in time.
 *
 * It stands where a session asks for that catalog, which Spark makes when it is first needed, and never for our sake.
 */
final class LensDrops extends AbstractFunction0 implements ExternalCatalogEventListener {
    private final scala.Function0 original;
    private final SessionState session;
    private final LensState state;
    private ExternalCatalogWithListener catalog;

    LensDrops(scala.Function0 original, SessionState session, LensState state) {
        this.original = original;
        this.session = session;
        this.state = state;
    }

    public Object apply() {
        Object made = original.apply();
        attach(made);
        return made;
    }

    synchronized void attach(Object made) {
        if (catalog != null || !(made instanceof ExternalCatalogWithListener)) return;
        catalog = (ExternalCatalogWithListener) made;
        catalog.addListener(this);
    }

    synchronized void detach() {
        if (catalog != null) catalog.removeListener(this);
        catalog = null;
    }

    public void onEvent(ExternalCatalogEvent event) {
        LensSpec lens = state.current;
        if (lens == null || !(event instanceof DropTablePreEvent) || !isOfSession()) return;
        DropTablePreEvent drop = (DropTablePreEvent) event;
        String name = TableNames.ofSessionTable(new TableIdentifier(drop.name(), scala.Option.apply(drop.database())));
        if (lens.mayWrite(name)) return;
        Refusal refusal = new Refusal(lens, name);
        state.note(refusal);
        throw refusal;
    }

    /** Sessions share the catalog, and the event comes in the thread of the one that drops. */
    private boolean isOfSession() {
        scala.Option active = SparkSession.getActiveSession();
        if (active.isEmpty()) active = SparkSession.getDefaultSession();
        return active.isEmpty() || Leaves.call(active.get(), "sessionState") == session;
    }

    /** Spark goes on after any other exception of a listener, and would drop the table. */
    static final class Refusal extends LinkageError {
        Refusal(LensSpec lens, String name) {
            super("the lens '" + lens.name + "' doesn't redirect " + name + ", which saveAsTable would drop to overwrite it: use insertInto or INSERT OVERWRITE, which are redirected, or allow it by this name");
        }
    }
}
