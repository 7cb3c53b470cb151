package headwater.lens;

import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SessionState;

/** Tables that a session's catalog keeps: Iceberg's may be from before a snapshot that was written by another session. */
final class CachedTables {
    private CachedTables() { }

    /**
     * The id of the table that will be read at this version, empty where it isn't known yet. Where the catalog keeps a
     * table that hasn't this version, it is made to load it anew. Whatever goes wrong, reading will say it.
     */
    static String generation(SessionState session, ConsistentAnswer.Pin pin) {
        String[] parts = pin.name.split("\\.");
        if (parts.length < 3) return "";
        try {
            CatalogPlugin plugin = session.catalogManager().catalog(parts[0]);
            if (!plugin.getClass().getName().startsWith("org.apache.iceberg.")) return "";
            TableCatalog catalog = (TableCatalog) plugin;
            Object[] words = {Arrays.copyOfRange(parts, 1, parts.length - 1), parts[parts.length - 1]};
            Identifier name = (Identifier) Identifier.class.getMethod("of", new Class[] {String[].class, String.class}).invoke(null, words);
            Object table = catalog.loadTable(name);
            if (!has(table, pin)) {
                catalog.invalidateTable(name);
                table = catalog.loadTable(name);
            }
            return Leaves.generation(table);
        } catch (Throwable e) {
            return "";
        }
    }

    private static boolean has(Object table, ConsistentAnswer.Pin pin) throws Exception {
        Object known = Leaves.call(table, "table");
        Method snapshot = known.getClass().getMethod("snapshot", new Class[] {Long.TYPE});
        snapshot.setAccessible(true);
        return snapshot.invoke(known, new Object[] {Long.valueOf(pin.version)}) != null;
    }
}
