package headwater.capture;

import java.util.Iterator;
import java.util.Map;
import org.apache.iceberg.CachingCatalog;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.spark.sql.SparkSession;

/**
 * A snapshot that was committed outside of any execution: looked for in the table that has this name in one of the
 * catalogs that the session has loaded. A name may be another catalog's; a snapshot's id is nobody else's.
 */
final class IcebergOutsideCommit implements DeferredFact {
    private final String fact;
    private final String table;
    private final long snapshot;

    /** `fact` is an object without its end. */
    IcebergOutsideCommit(String fact, String table, long snapshot) {
        this.fact = fact;
        this.table = table;
        this.snapshot = snapshot;
    }

    public String resolve(boolean isLast) {
        String found = null;
        try {
            found = table.indexOf('/') >= 0 ? atPath() : inCatalogs();
        } catch (Throwable e) {
            CaughtErrors.report("IcebergOutsideCommit.resolve", e);
        }
        return fact + (found == null ? "" : ",\"found\":" + found) + "}";
    }

    private String atPath() throws Exception {
        SparkSession session = session();
        if (session == null) return null;
        return described(null, null, new HadoopTables(session.sparkContext().hadoopConfiguration()).load(table));
    }

    private String inCatalogs() throws Exception {
        SparkSession session = session();
        Object state = session == null ? null : LazyFields.value(session, "sessionState");
        Object analyzer = state == null ? null : LazyFields.value(state, "analyzer");
        Object manager = analyzer == null ? null : LazyFields.value(analyzer, "catalogManager");
        Object loaded = manager == null ? null : LazyFields.value(manager, "catalogs");
        if (!(loaded instanceof scala.collection.Map)) return null;
        for (Iterator i = new java.util.TreeMap(ValueWriter.javaMap((scala.collection.Map) loaded)).entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            String prefix = entry.getKey() + ".";
            if (!(entry.getValue() instanceof HasIcebergCatalog) || !table.startsWith(prefix)) continue;
            Catalog catalog = ((HasIcebergCatalog) entry.getValue()).icebergCatalog();
            Object behind = catalog instanceof CachingCatalog ? LazyFields.value(catalog, "catalog") : null;
            TableIdentifier identifier = TableIdentifier.parse(table.substring(prefix.length()));
            String found = in((Catalog) (behind == null ? catalog : behind), identifier, (String) entry.getKey());
            if (found != null) return found;
        }
        return null;
    }

    private String in(Catalog catalog, TableIdentifier identifier, String name) {
        try {
            return described(name, identifier, catalog.loadTable(identifier));
        } catch (Throwable none) {
            CaughtErrors.reportUnforeseen("IcebergOutsideCommit.in", none);
            return null;
        }
    }

    private static SparkSession session() { return (SparkSession) ScalaOptions.get(SparkSession.getDefaultSession()); }

    private String described(String catalog, TableIdentifier identifier, Table found) {
        Snapshot made = found.snapshot(snapshot);
        if (made == null) return null;
        Json json = new Json().open();
        if (identifier != null) {
            json.entry("catalog", catalog).entry("name", identifier.name()).key("namespace").openList();
            String[] levels = identifier.namespace().levels();
            for (int i = 0; i < levels.length; i++) json.value(levels[i]);
            json.closeList();
        }
        IcebergSnapshots.described(found, made, json);
        return json.close().toString();
    }
}
