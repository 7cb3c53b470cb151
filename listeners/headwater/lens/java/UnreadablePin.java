package headwater.lens;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SessionState;

/** A pinned table that has no such version. The formats' own errors name the version, and not the table. */
final class UnreadablePin {
    private static final int SHOWN = 5;

    private UnreadablePin() { }

    /** The error that names the table, with the format's own as its cause; that one itself if no pin is the reason. */
    static Throwable explain(LensSpec lens, SessionState session, LogicalPlan plan, Throwable error) {
        String why = error instanceof LensError ? null : find(lens, session, plan);
        if (why == null) return error;
        return new LensError(message(lens, why), error);
    }

    static String message(LensSpec lens, String why) {
        return "the lens '" + lens.name + "' pins a table to a version that can't be read: " + why + ". Pin it to a version that is there";
    }

    /** Which table of a plan can be read, but not at the version that it is pinned to, and why; null if there is none. */
    static String find(LensSpec pins, SessionState session, LogicalPlan plan) {
        try {
            for (Iterator all = names(session, plan).iterator(); all.hasNext();) {
                String name = (String) all.next();
                String version = pins.pinOf(name);
                String why = version == null ? null : problem(session.catalogManager(), name, version);
                if (why != null) return why;
            }
        } catch (Throwable e) {
            return null;  // what was to be explained is told as it is
        }
        return null;
    }

    /** Why a table that is pinned and resolved has no such version. Paimon alone looks for it only when the plan is run. */
    static String missing(DataSourceV2Relation relation) {
        Object paimon = relation.table().getClass().getName().startsWith("org.apache.paimon.") ? Leaves.call(relation.table(), "getTable") : null;
        Object options = paimon == null ? null : Leaves.call(paimon, "options");
        Object snapshot = options instanceof Map ? ((Map) options).get("scan.snapshot-id") : null;
        Object snapshots = snapshot == null ? null : Leaves.call(paimon, "snapshotManager");
        if (snapshots == null) return null;
        try {
            Method exists = snapshots.getClass().getMethod("snapshotExists", new Class[] {Long.TYPE});
            if (!Boolean.FALSE.equals(exists.invoke(snapshots, new Object[] {Long.valueOf(snapshot.toString())}))) return null;
        } catch (Exception e) {
            return null;  // Paimon will say what is wrong
        }
        return Leaves.name(relation) + " at " + snapshot + versions(relation.table());
    }

    private static Set names(SessionState session, LogicalPlan plan) {
        Set names = new LinkedHashSet();
        if (plan instanceof DataSourceV2Relation) names.add(Leaves.name((DataSourceV2Relation) plan));
        else if (plan instanceof LogicalRelation) names.add(Leaves.name((LogicalRelation) plan));
        else names.addAll(QueryTables.of(session, plan).tables);
        return names;
    }

    private static String problem(CatalogManager catalogs, String name, String version) throws Exception {
        String[] parts = TableNames.isPath(name) ? new String[] {"spark_catalog", "delta", name} : name.split("\\.");
        if (parts.length < 2 || !(catalogs.catalog(parts[0]) instanceof TableCatalog)) return null;
        TableCatalog catalog = (TableCatalog) catalogs.catalog(parts[0]);
        Identifier identifier = identifier((String[]) Arrays.copyOfRange(parts, 1, parts.length - 1), parts[parts.length - 1]);
        Table now = catalog.loadTable(identifier);
        now.schema();
        int last = parts.length - 1;
        if (last > 1 && IcebergTableBranches.isBranch(now, parts[last])) return problem(catalogs, name.substring(0, name.length() - parts[last].length() - 1), version);
        try {
            catalog.loadTable(identifier, version).schema();
            return null;
        } catch (Exception e) {
            return name + " at " + version + " (" + firstLine(e) + ")" + versions(now);
        }
    }

    /** Janino calls no static method of an interface. */
    static Identifier identifier(String[] namespace, String table) throws Exception {
        return (Identifier) Identifier.class.getMethod("of", new Class[] {String[].class, String.class}).invoke(null, new Object[] {namespace, table});
    }

    private static String firstLine(Throwable error) {
        String text = error.getMessage() == null ? error.toString() : error.getMessage();
        int end = text.indexOf('\n');
        String line = end < 0 ? text : text.substring(0, end);
        return line.endsWith(".") ? line.substring(0, line.length() - 1) : line;
    }

    /** What of its versions a table tells by itself; those of Delta are in its error. */
    private static String versions(Table now) {
        Object iceberg = now.getClass().getName().startsWith("org.apache.iceberg.") ? Leaves.call(now, "table") : null;
        if (iceberg != null) return snapshots(Leaves.call(iceberg, "snapshots"));
        Object paimon = now.getClass().getName().startsWith("org.apache.paimon.") ? Leaves.call(now, "getTable") : null;
        Object snapshots = paimon == null ? null : Leaves.call(paimon, "snapshotManager");
        if (snapshots == null) return "";
        return "; it has the snapshots from " + Leaves.call(snapshots, "earliestSnapshotId") + " to " + Leaves.call(snapshots, "latestSnapshotId") + ", and others may have expired";
    }

    private static String snapshots(Object found) {
        if (!(found instanceof Iterable)) return "";
        List texts = new ArrayList();
        for (Iterator all = ((Iterable) found).iterator(); all.hasNext();) {
            Object each = all.next();
            Object millis = Leaves.call(each, "timestampMillis");
            texts.add(Leaves.call(each, "snapshotId") + (millis instanceof Long ? " of " + java.time.Instant.ofEpochMilli(((Long) millis).longValue()) : ""));
        }
        Collections.reverse(texts);  // the newest first
        int count = texts.size();
        String shown = String.join(", ", texts.subList(0, Math.min(SHOWN, count)));
        return count == 0 ? "; it has no snapshot" : "; it has " + (count > SHOWN ? count + " snapshots, the newest are " : "the snapshots ") + shown + ", and others may have expired";
    }
}
