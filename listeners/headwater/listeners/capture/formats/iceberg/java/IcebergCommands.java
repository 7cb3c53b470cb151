package headwater.capture;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.CachingCatalog;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;

/**
 * Commands that change tables otherwise than by a query's rows: DDL and procedures. The table is the one that the session
 * has in memory or, where that isn't as the statement left it, loaded anew: past the session's cache, which must not be
 * fresher or staler for our having looked.
 */
final class IcebergCommands {
    private static final String LOADED = "iceberg.loaded.";
    private static final String BEFORE = "iceberg.before.";

    private IcebergCommands() { }

    /** False where the statement's topmost operator is none of them. */
    static boolean describe(Statement statement, List committed, Json json) throws Exception {
        Object physical = LazyFields.value(statement.query, "executedPlan");
        if (physical == null || statement.started < 0) return false;
        if (physical.getClass().getSimpleName().equals("CallExec")) return IcebergCalls.describe(statement, (SparkPlan) physical, committed, json);
        if (!physical.getClass().getSimpleName().endsWith("Exec")) return false;
        Object catalog = LazyFields.optional(physical, "catalog");
        Object identifier = LazyFields.optional(physical, "ident");
        if (identifier == null) identifier = LazyFields.optional(physical, "identifier");
        if (!(catalog instanceof HasIcebergCatalog) || !(identifier instanceof Identifier)) return false;
        json.key("changed").open();
        changed(statement, (CatalogPlugin) catalog, (Identifier) identifier, load(catalog, (Identifier) identifier, statement), json);
        json.close();
        return true;
    }

    static void changed(Statement statement, CatalogPlugin catalog, Identifier identifier, Table table, Json json) throws Exception {
        json.entry("catalog", statement.catalogs.number(catalog)).entry("name", identifier.name());
        if (identifier instanceof PathIdentifier) json.entry("path", ((PathIdentifier) identifier).location());
        json.key("namespace").openList();
        for (int i = 0; i < identifier.namespace().length; i++) json.value(identifier.namespace()[i]);
        json.closeList().entry("found", table != null);
        TableMetadata before = (TableMetadata) statement.kept.get(BEFORE + identifier);
        if (table != null) IcebergTables.change(table, before, statement.started, statement.ended, json);
    }

    /** Once for each statement; null where there is no such table of Iceberg's, or its metadata is too large. */
    static Table load(Object catalog, Identifier identifier, Statement statement) {
        String key = LOADED + identifier;
        if (!statement.kept.containsKey(key)) statement.kept.put(key, read(catalog, identifier, statement));
        return (Table) statement.kept.get(key);
    }

    private static Table read(Object catalog, Identifier identifier, Statement statement) {
        try {
            if (identifier instanceof PathIdentifier) {
                return new HadoopTables(statement.session.sessionState().newHadoopConf()).load(((PathIdentifier) identifier).location());
            }
            Catalog iceberg = ((HasIcebergCatalog) catalog).icebergCatalog();
            TableIdentifier name = Spark3Util.identifierToTableIdentifier(identifier);
            Table cached = IcebergMemory.cached(iceberg, name);
            Table changed = statement.started < 0 ? null : IcebergMemory.changedSince(cached, statement.started);
            if (changed != null || IcebergMemory.isLarge(cached)) return changed;
            statement.kept.put(BEFORE + identifier, IcebergMemory.of(cached));
            Object behind = iceberg instanceof CachingCatalog ? LazyFields.value(iceberg, "catalog") : null;
            return (behind == null ? iceberg : (Catalog) behind).loadTable(name);
        } catch (Throwable none) {
            CaughtErrors.reportUnforeseen("IcebergCommands.read", none);
            return null;
        }
    }
}
