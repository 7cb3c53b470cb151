package headwater.lens;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SessionState;

/** Full names of tables as texts: `catalog.namespace.table`, or a path. */
public final class TableNames {
    private static final String SESSION_CATALOG = "spark_catalog";

    private TableNames() { }

    /** What a name means where it is analysed: within a view, the view's catalog and namespace count. */
    public static String qualify(scala.collection.Seq parts, SessionState session) {
        return qualify(parts, session, AnalysisContext.get().catalogAndNamespace());
    }

    /** The same in a view that was made in this catalog and namespace; outside of views they are empty. */
    static String qualify(scala.collection.Seq parts, SessionState session, scala.collection.Seq view) {
        String[] full = full(parts, session, view);
        return full == null ? path((String) parts.apply(parts.length() - 1)) : sessionNames(String.join(".", full));
    }

    /** The parts of the full name: a catalog, its namespaces, and the table. Null for a path. */
    static String[] full(scala.collection.Seq parts, SessionState session, scala.collection.Seq view) {
        if (parts.length() <= 2 && isPath((String) parts.apply(parts.length() - 1))) return null;
        CatalogManager catalogs = session.catalogManager();
        List full = new ArrayList();
        if (parts.length() == 1) {
            if (view.isEmpty()) {
                full.add(catalogs.currentCatalog().name());
                full.addAll(Arrays.asList(catalogs.currentNamespace()));
            } else {
                add(full, view);
            }
        } else if (!catalogs.isCatalogRegistered((String) parts.apply(0))) {
            full.add(view.isEmpty() ? catalogs.currentCatalog().name() : view.apply(0));
        }
        add(full, parts);
        return (String[]) full.toArray(new String[0]);
    }

    private static void add(List full, scala.collection.Seq parts) {
        for (scala.collection.Iterator all = parts.iterator(); all.hasNext();) full.add(all.next());
    }

    /** The full name of what a catalog resolved. */
    public static String of(CatalogPlugin catalog, Identifier identifier) {
        String[] namespace = identifier.namespace();
        if (isPath(identifier.name())) return path(identifier.name());
        if (namespace.length > 0 && isPath(namespace[0])) return path(String.join("/", namespace) + "/" + identifier.name());
        StringBuilder full = new StringBuilder(catalog.name());
        for (int i = 0; i < namespace.length; i++) full.append('.').append(namespace[i]);
        return sessionNames(full.append('.').append(identifier.name()).toString());
    }

    /** The full name of a table of Spark's own catalog. */
    public static String ofSessionTable(org.apache.spark.sql.catalyst.TableIdentifier table) {
        String database = table.database().isDefined() ? (String) table.database().get() : "default";
        return sessionNames(SESSION_CATALOG + "." + database + "." + table.table());
    }

    public static boolean isPath(String text) {
        return text.indexOf('/') >= 0;
    }

    /** A path without `file:` and without a slash at its end. */
    public static String path(String text) {
        String clean = text.replaceFirst("^file:/+", "/");
        while (clean.length() > 1 && clean.endsWith("/")) clean = clean.substring(0, clean.length() - 1);
        return clean;
    }

    /** Spark's own catalog doesn't tell upper from lower case. */
    private static String sessionNames(String name) {
        return name.startsWith(SESSION_CATALOG + ".") ? name.toLowerCase(java.util.Locale.ROOT) : name;
    }
}
