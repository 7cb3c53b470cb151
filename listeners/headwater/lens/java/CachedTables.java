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

    /** Have the catalog load a table anew, if the one that it keeps hasn't this version. Whatever goes wrong, reading will say it. */
    static void refresh(SessionState session, ConsistentAnswer.Pin pin) {
        String[] parts = pin.name.split("\\.");
        if (parts.length < 3) return;
        try {
            CatalogPlugin plugin = session.catalogManager().catalog(parts[0]);
            if (!plugin.getClass().getName().startsWith("org.apache.iceberg.")) return;
            TableCatalog catalog = (TableCatalog) plugin;
            Object[] words = {Arrays.copyOfRange(parts, 1, parts.length - 1), parts[parts.length - 1]};
            Identifier table = (Identifier) Identifier.class.getMethod("of", new Class[] {String[].class, String.class}).invoke(null, words);
            Object known = Leaves.call(catalog.loadTable(table), "table");
            if (known == null) return;
            Method snapshot = known.getClass().getMethod("snapshot", new Class[] {Long.TYPE});
            snapshot.setAccessible(true);
            if (snapshot.invoke(known, new Object[] {Long.valueOf(pin.version)}) == null) catalog.invalidateTable(table);
        } catch (Throwable e) {
            return;
        }
    }
}
