package headwater.lens;

import java.lang.reflect.Method;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What the leaves of a plan read: which table, and whether its version is fixed. */
final class Leaves {
    /** Options by which somebody asks for a version, whether or not anybody heeds them. */
    private static final String[] VERSION_OPTIONS = {
        "versionAsOf", "timestampAsOf", "snapshot-id", "as-of-timestamp", "tag", "as.of.instant", "end-snapshot-id",
        "scan.snapshot-id", "scan.version", "scan.tag-name", "scan.timestamp-millis", "scan.timestamp", "incremental-between",
    };
    private static final String[] ICEBERG_OPTIONS = {"snapshot-id", "as-of-timestamp", "tag", "end-snapshot-id"};
    private static final String[] PAIMON_OPTIONS = {
        "scan.snapshot-id", "scan.version", "scan.tag-name", "scan.timestamp-millis", "scan.timestamp", "incremental-between",
    };
    private static final String[] HUDI_OPTIONS = {"as.of.instant"};

    private Leaves() { }

    /** The table's full name, or its path; null if it has neither. */
    static String name(DataSourceV2Relation relation) {
        if (relation.catalog().isDefined() && relation.identifier().isDefined()) {
            return TableNames.of((org.apache.spark.sql.connector.catalog.CatalogPlugin) relation.catalog().get(),
                (org.apache.spark.sql.connector.catalog.Identifier) relation.identifier().get());
        }
        Object catalogTable = call(relation.table(), "catalogTable");
        if (catalogTable instanceof scala.Option && ((scala.Option) catalogTable).isDefined()) {
            return TableNames.ofSessionTable(((org.apache.spark.sql.catalyst.catalog.CatalogTable) ((scala.Option) catalogTable).get()).identifier());
        }
        String path = relation.options().get("path");
        return path != null ? TableNames.path(path) : relation.table().name();
    }

    static String name(LogicalRelation relation) {
        if (relation.catalogTable().isDefined()) {
            return TableNames.ofSessionTable(((org.apache.spark.sql.catalyst.catalog.CatalogTable) relation.catalogTable().get()).identifier());
        }
        if (relation.relation() instanceof HadoopFsRelation) {
            return TableNames.path(((HadoopFsRelation) relation.relation()).location().rootPaths().mkString(","));
        }
        return relation.relation().toString();
    }

    static boolean isDelta(LogicalRelation relation) {
        return location(relation).startsWith("Tahoe");
    }

    /** The simple name of the class that lists the files; empty if there are none. */
    static String location(LogicalRelation relation) {
        if (!(relation.relation() instanceof HadoopFsRelation)) return "";
        return ((HadoopFsRelation) relation.relation()).location().getClass().getSimpleName();
    }

    static boolean hasFixedVersion(DataSourceV2Relation relation) {
        Object table = relation.table();
        String type = table.getClass().getName();
        if (type.startsWith("org.apache.iceberg.")) return hasAny(relation.options(), ICEBERG_OPTIONS) || isIcebergVersionFixed(table);
        if (type.indexOf(".delta.") > 0) return isDefined(call(table, "timeTravelOpt")) || isDefined(call(table, "timeTravelByPath"));
        if (type.startsWith("org.apache.paimon.")) return hasAny(relation.options(), PAIMON_OPTIONS) || isPaimonVersionFixed(table);
        return false;
    }

    static boolean hasFixedVersion(LogicalRelation relation) {
        if (!(relation.relation() instanceof HadoopFsRelation)) return false;
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        Object location = files.location();
        String type = location.getClass().getSimpleName();
        if (type.equals("TahoeLogFileIndex") || type.equals("TahoeLogFileIndexWithCloudFiles")) return Boolean.TRUE.equals(call(location, "isTimeTravelQuery"));
        return type.startsWith("Hoodie") && hasAny(map(files.options()), HUDI_OPTIONS);
    }

    /** What tells a table from one that is made anew under its name; empty where its format doesn't say it. */
    static String generation(Object table) {
        Object inner = table.getClass().getName().startsWith("org.apache.iceberg.") ? call(table, "table") : null;
        Object id = inner != null ? call(inner, "uuid") : null;
        if (id == null) {
            Object metadata = call(table, "metadata");
            id = metadata == null ? null : call(metadata, "id");
        }
        return id == null ? "" : id.toString();
    }

    /** Whether a library reads parts of a table whose version it has chosen before, or its own log. */
    static boolean isInternal(LogicalRelation relation) {
        String type = location(relation);
        return type.equals("DeltaLogFileIndex") || type.equals("TahoeBatchFileIndex");
    }

    /** Whether an option of the user's asks for a version. It isn't known whether anybody heeds it. */
    static boolean hasVersionOption(CaseInsensitiveStringMap options) {
        return hasAny(options, VERSION_OPTIONS);
    }

    private static boolean hasAny(CaseInsensitiveStringMap options, String[] names) {
        for (int i = 0; i < names.length; i++) {
            if (options.containsKey(names[i])) return true;
        }
        return false;
    }

    static CaseInsensitiveStringMap map(scala.collection.immutable.Map options) {
        java.util.HashMap made = new java.util.HashMap();
        for (scala.collection.Iterator all = options.iterator(); all.hasNext();) {
            scala.Tuple2 pair = (scala.Tuple2) all.next();
            made.put(pair._1(), pair._2());
        }
        return new CaseInsensitiveStringMap(made);
    }

    /** `snapshotId()` is that of time travel alone on some releases, and on others whatever is current. */
    private static boolean isIcebergVersionFixed(Object table) {
        Object travel = field(table, "timeTravel");
        if (travel != MISSING) return travel != null;
        Object snapshot = field(table, "snapshotId");
        return snapshot != MISSING && snapshot != null;
    }

    private static boolean isPaimonVersionFixed(Object table) {
        Object inner = call(table, "getTable");
        Object options = inner == null ? null : call(inner, "options");
        if (!(options instanceof Map)) return false;
        return hasAny(new CaseInsensitiveStringMap((Map) options), PAIMON_OPTIONS);
    }

    private static boolean isDefined(Object option) {
        return option instanceof scala.Option && ((scala.Option) option).isDefined();
    }

    private static final Object MISSING = new Object();

    static Object field(Object of, String name) {
        for (Class type = of.getClass(); type != null; type = type.getSuperclass()) {
            try {
                java.lang.reflect.Field field = type.getDeclaredField(name);
                field.setAccessible(true);
                return field.get(of);
            } catch (NoSuchFieldException above) {
                continue;
            } catch (Exception e) {
                return MISSING;
            }
        }
        return MISSING;
    }

    /** What a method without arguments answers; null if there is none. */
    static Object call(Object of, String name) {
        try {
            Method method = of.getClass().getMethod(name, new Class[0]);  // also what an interface brings
            method.setAccessible(true);
            return method.invoke(of, new Object[0]);
        } catch (NoSuchMethodException notPublic) {
            return declared(of, name);
        } catch (Exception e) {
            return null;
        }
    }

    private static Object declared(Object of, String name) {
        for (Class type = of.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Method method = type.getDeclaredMethod(name, new Class[0]);
                method.setAccessible(true);
                return method.invoke(of, new Object[0]);
            } catch (NoSuchMethodException above) {
                continue;
            } catch (Exception e) {
                return null;
            }
        }
        return null;
    }
}
