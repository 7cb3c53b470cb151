package headwater.capture;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.UTF8String;

/** Procedures: which table one was called for, and the snapshots that it made or that its answer names. */
final class IcebergCalls {
    private IcebergCalls() { }

    static boolean told(Statement statement, Object physical, List committed, Json json) throws Exception {
        Object procedure = Lazily.value(physical, "procedure");
        Object catalog = procedure == null ? null : Lazily.value(procedure, "tableCatalog");
        InternalRow input = (InternalRow) Lazily.value(physical, "input");
        if (!(catalog instanceof CatalogPlugin) || input == null || input.numFields() == 0) return false;
        json.key("call").open().entry("procedure", procedure.getClass().getSimpleName());
        place(statement, (CatalogPlugin) catalog, (SparkPlan) physical, input, committed, json);
        json.close();
        return true;
    }

    private static void place(
        Statement statement, CatalogPlugin catalog, SparkPlan physical, InternalRow input, List committed, Json json) throws Exception {
        String name = table(physical, input);
        if (name == null) return;
        arguments(input, json);
        Spark3Util.CatalogAndIdentifier found = Spark3Util.catalogAndIdentifier(statement.query.sparkSession(), name, catalog);
        Table table = IcebergCommands.load(found.catalog(), found.identifier(), statement);
        IcebergCommands.changed(statement, found.catalog(), found.identifier(), table, json);
        if (table == null) return;
        Set ids = answered(physical);
        ids.addAll(committed);
        json.key("snapshots").openList();
        for (Iterator i = ids.iterator(); i.hasNext();) {
            Snapshot snapshot = table.snapshot(((Long) i.next()).longValue());
            if (snapshot == null) continue;
            json.open();
            IcebergSnapshots.described(table, snapshot, json);
            json.close();
        }
        json.closeList();
    }

    /** Procedures take the name of the table first; the one that makes a table from another takes it second. */
    private static String table(SparkPlan physical, InternalRow input) throws Exception {
        String procedure = Lazily.value(physical, "procedure").getClass().getSimpleName();
        return text(input, procedure.equals("SnapshotTableProcedure") ? 1 : 0);
    }

    private static String text(InternalRow input, int place) {
        Object value = place >= input.numFields() || input.isNullAt(place) ? null : input.get(place, DataTypes.StringType);
        return value instanceof UTF8String ? value.toString() : null;
    }

    private static void arguments(InternalRow input, Json json) {
        json.key("arguments").openList();
        for (int i = 0; i < input.numFields() && i < 3; i++) json.value(text(input, i));
        json.closeList();
    }

    /** Whatever whole number the procedure answered: among them ids of snapshots. */
    private static Set answered(SparkPlan physical) throws Exception {
        Set ids = new LinkedHashSet();
        Object rows = Lazily.value(physical, "result");
        if (!(rows instanceof scala.collection.Iterable)) return ids;
        StructField[] fields = physical.schema().fields();
        List all = PlanWriter.list(rows);
        for (int r = 0; r < all.size() && r < 100; r++) {
            InternalRow row = (InternalRow) all.get(r);
            for (int i = 0; i < fields.length; i++)
                if (fields[i].dataType() instanceof LongType && !row.isNullAt(i)) ids.add(Long.valueOf(row.getLong(i)));
        }
        return ids;
    }
}
