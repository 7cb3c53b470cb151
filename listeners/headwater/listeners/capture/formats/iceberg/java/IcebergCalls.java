package headwater.capture;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
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

    /** On Spark 3.5: a statement of its own. */
    static boolean describe(Statement statement, SparkPlan physical, List committed, Json json) throws Exception {
        Object procedure = LazyFields.value(physical, "procedure");
        InternalRow input = (InternalRow) LazyFields.value(physical, "input");
        if (procedure == null || input == null || !(catalog(procedure) instanceof CatalogPlugin)) return false;
        Object result = LazyFields.value(physical, "result");
        List rows = result instanceof scala.collection.Iterable ? PlanWriter.list(result) : java.util.Collections.emptyList();
        ProcedureCall called = new ProcedureCall(procedure, input, rows, physical.schema());
        called.target = target(called, statement.session);
        return describe(statement, called, committed, json);
    }

    static boolean describe(Statement statement, ProcedureCall called, List committed, Json json) throws Exception {
        if (called.input.numFields() == 0) return false;
        json.key("call").open().entry("procedure", called.procedure.getClass().getSimpleName());
        place(statement, called, committed, json);
        json.close();
        return true;
    }

    /** Whom a procedure is called for, by the name in its arguments; null where there is none. */
    static Object target(ProcedureCall called, SparkSession session) throws Exception {
        String name = table(called);
        return name == null ? null : Spark3Util.catalogAndIdentifier(session, name, (CatalogPlugin) catalog(called.procedure));
    }

    private static Object catalog(Object procedure) throws Exception { return LazyFields.optional(procedure, "tableCatalog"); }

    private static void place(Statement statement, ProcedureCall called, List committed, Json json) throws Exception {
        Spark3Util.CatalogAndIdentifier found = (Spark3Util.CatalogAndIdentifier) called.target;
        if (found == null) return;
        arguments(called.input, json);
        Table table = IcebergCommands.load(found.catalog(), found.identifier(), statement);
        IcebergCommands.changed(statement, found.catalog(), found.identifier(), table, json);
        if (table == null) return;
        Set ids = answered(called);
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
    private static String table(ProcedureCall called) {
        return text(called.input, called.procedure.getClass().getSimpleName().equals("SnapshotTableProcedure") ? 1 : 0);
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
    private static Set answered(ProcedureCall called) {
        Set ids = new LinkedHashSet();
        if (called.schema == null) return ids;
        StructField[] fields = called.schema.fields();
        for (int r = 0; r < called.rows.size() && r < 100; r++) {
            InternalRow row = (InternalRow) called.rows.get(r);
            for (int i = 0; i < fields.length; i++)
                if (fields[i].dataType() instanceof LongType && !row.isNullAt(i)) ids.add(Long.valueOf(row.getLong(i)));
        }
        return ids;
    }
}
