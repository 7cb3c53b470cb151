package headwater.capture;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.AlterTableEvent;
import org.apache.spark.sql.catalyst.catalog.CreateTableEvent;
import org.apache.spark.sql.catalyst.catalog.DatabaseEvent;
import org.apache.spark.sql.catalyst.catalog.DropTableEvent;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogEvent;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogEventListener;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogWithListener;
import org.apache.spark.sql.catalyst.catalog.RenameTableEvent;
import org.apache.spark.sql.catalyst.catalog.TableEvent;

/**
 * Notes what really happened to Spark's own catalog, in the thread that did it: the evidence for IF [NOT] EXISTS.
 *
 * Spark makes that catalog when it is first needed, maybe only for the first statement, and it must never be made for
 * our sake. Until it is there, its events are heard on the listener bus, where they stand between the start and the end
 * of their statement; they count where only one statement was open.
 */
public final class CatalogHook {
    private static final String RECEIVED = "catalog.heard";
    private static final String UNCLEAR = "catalog.unclear";
    private static final ExternalCatalogEventListener LISTENER = new ExternalCatalogEventListener() {
        public void onEvent(ExternalCatalogEvent event) { note(event); }
    };
    /** By thread: what it dropped last outside of any statement. */
    private static final ThreadLocal DROPPED = new ThreadLocal();
    private static ExternalCatalogWithListener catalog;
    private static boolean wanted;
    private static volatile long since = Long.MAX_VALUE;

    private CatalogHook() { }

    public static synchronized void install() throws Exception {
        wanted = true;
        attach();
    }

    public static synchronized void uninstall() throws Exception {
        wanted = false;
        if (catalog != null) catalog.removeListener(LISTENER);
        catalog = null;
        since = Long.MAX_VALUE;
    }

    public static boolean attached() { return since != Long.MAX_VALUE; }

    /** Whether all that a statement did, which began at this time, was noted. */
    public static boolean covers(long started) { return started > since; }

    public static synchronized void attach() throws Exception {
        if (!wanted || catalog != null) return;
        SparkSession session = (SparkSession) ScalaOptions.get(SparkSession.getDefaultSession());
        if (session == null || session.sparkContext().isStopped()) return;
        Object found = externalCatalog(session);
        if (!(found instanceof ExternalCatalogWithListener)) return;
        catalog = (ExternalCatalogWithListener) found;
        catalog.addListener(LISTENER);
        since = System.currentTimeMillis();
    }

    /** Null where it isn't there yet. Where it can't be found, Spark's bus shows what it does. */
    private static Object externalCatalog(SparkSession session) throws Exception {
        try {
            Object shared = LazyFields.value(session, "sharedState");
            return shared == null ? null : LazyFields.value(shared, "externalCatalog");
        } catch (NoSuchFieldException e) {
            CaughtErrors.log("CatalogHook.externalCatalog", e);
            return null;
        }
    }

    private static void note(ExternalCatalogEvent event) {
        try {
            if (!CommitRecorder.listening()) return;
            Json fact = fact(event);
            if (fact == null) return;
            boolean within = CommitRecorder.execution() != null;
            before(event, within);
            if (!within && event instanceof DropTableEvent) DROPPED.set(new Object[] {event, fact});
            else if (within || !(event instanceof AlterTableEvent)) CommitRecorder.note(fact);
        } catch (Throwable e) {
            CaughtErrors.report("CatalogHook.note", e);
        }
    }

    /**
     * A table that this thread dropped outside of any statement: `saveAsTable` does so with one that it overwrites, and
     * the statement that makes it anew follows. That is what the drop belongs to then.
     */
    private static void before(ExternalCatalogEvent event, boolean within) {
        Object[] pending = (Object[]) DROPPED.get();
        if (pending == null) return;
        DROPPED.remove();
        DropTableEvent dropped = (DropTableEvent) pending[0];
        boolean again = within && event instanceof CreateTableEvent && ((CreateTableEvent) event).name().equals(dropped.name())
            && ((CreateTableEvent) event).database().equals(dropped.database());
        CommitRecorder.noteFor(again ? CommitRecorder.execution() : null, (Json) pending[1]);
    }

    /** On the bus's thread: an event that came between the starts and the ends of these statements. */
    public static void receive(ExternalCatalogEvent event, Set statements) {
        Json fact = fact(event);
        if (fact == null) return;
        for (Iterator i = statements.iterator(); i.hasNext();) {
            Statement statement = (Statement) i.next();
            if (statement == null) continue;
            if (statements.size() > 1) statement.kept.put(UNCLEAR, Boolean.TRUE);
            else takeReceived(statement).add(fact.toString());
        }
    }

    private static List takeReceived(Statement statement) {
        List known = (List) statement.kept.get(RECEIVED);
        if (known == null) statement.kept.put(RECEIVED, known = new ArrayList());
        return known;
    }

    /** What the bus reported of a statement, and whether there can be nothing else; written into an open object. */
    public static void writeFacts(Statement statement, Json json) {
        boolean received = (!attached() || statement.isReadLate) && wanted && statement.kept.get(UNCLEAR) == null;
        json.entry("certain", covers(statement.started) || received);
        List facts = takeReceived(statement);
        if (facts.isEmpty()) return;
        json.key("catalogEvents").openList();
        for (int i = 0; i < facts.size(); i++) json.raw((String) facts.get(i));
        json.closeList();
    }

    /** Only of what has happened: Spark also says before that something is about to. */
    private static Json fact(ExternalCatalogEvent event) {
        String name = event.getClass().getSimpleName();
        if (!(event instanceof DatabaseEvent) || name.endsWith("PreEvent") || name.contains("Function")) return null;
        Json json = new Json().open().entry("hook", "catalog").entry("event", name);
        json.entry("database", ((DatabaseEvent) event).database());
        if (event instanceof TableEvent) json.entry("name", ((TableEvent) event).name());
        if (event instanceof RenameTableEvent) json.entry("newName", ((RenameTableEvent) event).newName());
        if (event instanceof AlterTableEvent) json.entry("kind", ((AlterTableEvent) event).kind());
        return json.close();
    }
}
