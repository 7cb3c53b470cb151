package headwater.capture;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.spark.SparkTypeUtils;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;

/** What a Paimon table says of itself, and which generation it is in. */
public final class PaimonTables {
    private static final String MAIN = "main";
    private static final int MOST_GENERATIONS = 2000;
    /** Which versions were asked for: by the table's options, into which Paimon puts those of a query. */
    private static final String[] ASKED = {
        "scan.snapshot-id", "scan.tag-name", "scan.version", "scan.timestamp", "scan.timestamp-millis", "scan.watermark",
        "scan.file-creation-time-millis", "incremental-between", "incremental-between-timestamp"};
    private static final Map GENERATIONS = new LinkedHashMap(16, 0.75f, true) {
        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > MOST_GENERATIONS; }
    };

    private PaimonTables() { }

    /** What a plan's table is, or what is behind a view of it that has its rows; null of tables about a table. */
    public static FileStoreTable data(Object table) throws Exception {
        if (table instanceof FileStoreTable) return (FileStoreTable) table;
        String name = table.getClass().getSimpleName();
        if (!name.equals("AuditLogTable") && !name.equals("ReadOptimizedTable")) return null;
        Object wrapped = LazyFields.value(table, "wrapped");
        return wrapped instanceof FileStoreTable ? (FileStoreTable) wrapped : null;
    }

    public static String branch(FileStoreTable table) { return table.snapshotManager().branch(); }

    /** Where it is: what a source, a sink and a fact are matched by. */
    public static void place(FileStoreTable table, Json json) {
        json.entry("location", table.location().toString());
        if (!branch(table).equals(MAIN)) json.entry("branch", branch(table));
    }

    public static void asked(Table table, Json json) {
        Map options = table.options();
        boolean open = false;
        for (int i = 0; i < ASKED.length; i++) {
            String value = (String) options.get(ASKED[i]);
            if (value == null) continue;
            if (!open) json.key("asked").open();
            open = true;
            json.entry(ASKED[i], value);
        }
        if (open) json.close();
    }

    /** All that doesn't change while data comes and goes. */
    public static void described(Object table, Json json) throws Exception {
        FileStoreTable data = data(table);
        if (!(table instanceof FileStoreTable)) json.entry("system", table.getClass().getSimpleName());
        if (data == null) {
            about(table, json);
            return;
        }
        place(data, json);
        asked(data, json);
        json.entry("schema", data.schema().id());
        json.entry("generation", generation(data));
        names("primaryKey", data.primaryKeys(), json);
    }

    /** A table that the statement made or found by itself, of which the plan says nothing. */
    public static void create(FileStoreTable table, Json json) throws Exception {
        described(table, json);
        names("partitionKeys", table.partitionKeys(), json);
        json.entry("columns", SparkTypeUtils.fromPaimonRowType(table.rowType()).json());
    }

    private static void about(Object table, Json json) throws Exception {
        Object store = LazyFields.optional(table, "wrapped");
        if (store == null) store = LazyFields.optional(table, "storeTable");
        if (store == null) store = LazyFields.optional(table, "dataTable");
        if (store instanceof FileStoreTable) {
            place((FileStoreTable) store, json);
            json.entry("generation", generation((FileStoreTable) store));
            return;
        }
        Object location = LazyFields.optional(table, "location");
        Object branch = LazyFields.optional(table, "branch");
        if (location != null) json.entry("location", location.toString());
        if (branch != null && !branch.equals(MAIN)) json.entry("branch", branch.toString());
    }

    private static void names(String key, List names, Json json) {
        if (names.isEmpty()) return;
        json.key(key).openList();
        for (int i = 0; i < names.size(); i++) json.value((String) names.get(i));
        json.closeList();
    }

    /**
     * When the table's first schema was made; null where that can't be determined.
     *
     * In memory of a table that was never altered. Of another it is read once for each of its schemas: files that never
     * change, unless the table is dropped and made again, and then its schema has another time as well.
     */
    public static Long generation(FileStoreTable table) {
        TableSchema schema = table.schema();
        if (schema.timeMillis() == 0) return null;
        if (schema.id() == 0) return Long.valueOf(schema.timeMillis());
        String key = table.location() + "\n" + branch(table) + "\n" + schema.id() + "\n" + schema.timeMillis();
        synchronized (GENERATIONS) {
            Long known = (Long) GENERATIONS.get(key);
            if (known != null) return known;
        }
        Long found = read(table, schema);
        if (found != null) {
            synchronized (GENERATIONS) {
                GENERATIONS.put(key, found);
            }
        }
        return found;
    }

    /** The schema that is known has to be there before and after: else this is another table already. */
    private static Long read(FileStoreTable table, TableSchema schema) {
        try {
            SchemaManager own = new SchemaManager(table.fileIO(), table.location(), branch(table));
            if (own.schema(schema.id()).timeMillis() != schema.timeMillis()) return null;
            long first = new SchemaManager(table.fileIO(), table.location()).schema(0).timeMillis();
            boolean same = own.schema(schema.id()).timeMillis() == schema.timeMillis();
            return same && first > 0 ? Long.valueOf(first) : null;
        } catch (Throwable missing) {
            CaughtErrors.reportUnforeseen("PaimonTables.read", missing);
            return null;
        }
    }
}
