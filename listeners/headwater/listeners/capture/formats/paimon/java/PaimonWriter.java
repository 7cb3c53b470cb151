package headwater.capture;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.spark.SparkTypeUtils;
import org.apache.paimon.spark.commands.PaimonSparkWriter;
import org.apache.paimon.table.FileStoreTable;

/** Who writes which table: Paimon gives each write a user of its own, and each of its snapshots has it. */
public final class PaimonWriter {
    public final String user;
    public final FileStoreTable table;

    private PaimonWriter(String user, FileStoreTable table) {
        this.user = user;
        this.table = table;
    }

    /** The writer that a function has for its tasks; null of anybody else's function. */
    public static PaimonWriter in(Object function) throws Exception {
        if (function == null || !function.getClass().getName().startsWith("org.apache.paimon.")) return null;
        Field[] fields = function.getClass().getDeclaredFields();
        for (int i = 0; i < fields.length; i++) {
            if (Modifier.isStatic(fields[i].getModifiers()) || fields[i].getType() != PaimonSparkWriter.class) continue;
            fields[i].setAccessible(true);
            return create((PaimonSparkWriter) fields[i].get(function));
        }
        return null;
    }

    /** The writer of a command that has one and used it; null otherwise. */
    public static PaimonWriter of(Object command) throws Exception {
        Object writer = command == null ? null : LazyFields.optional(command, "writer");
        return writer instanceof PaimonSparkWriter ? create((PaimonSparkWriter) writer) : null;
    }

    private static PaimonWriter create(PaimonSparkWriter writer) throws Exception {
        Object user = writer == null ? null : LazyFields.value(writer.writeBuilder(), "commitUser");
        return user == null ? null : new PaimonWriter((String) user, writer.table());
    }

    /** Whether the hook saw all that this statement's writes committed to this table. */
    static boolean isCovered(Statement statement, FileStoreTable table) {
        return PaimonState.HOOK.covers(statement) && CommitRecorder.listening() && !table.options().containsKey(CoreOptions.COMMIT_CALLBACKS.key())
            && !table.options().containsKey(CoreOptions.PARTITION_EXPIRATION_TIME.key());
    }

    /** What it committed: the hook's business where there is one, else looked for. */
    public void onCommit(Statement statement, Json json) throws Exception {
        json.open().entry("user", user);
        if (PaimonCommands.makesTable(statement.plan)) PaimonTables.create(table, json);
        else PaimonTables.place(table, json);
        if (isCovered(statement, table)) {
            json.entry("seen", PaimonState.HOOK.isOwn(user));
        } else {
            long since = statement.started < 0 ? 0 : statement.started;
            boolean thorough = table.options().containsKey("partition.expiration-time");
            PaimonSnapshots.of(user, table, since, thorough).write(json);
        }
        evolved(statement, json);
        json.close();
    }

    /** A schema that was made while the statement ran, and the one before it. */
    private void evolved(Statement statement, Json json) throws Exception {
        TableSchema schema = table.schema();
        if (schema.id() == 0 || statement.started < 0 || schema.timeMillis() < statement.started) return;
        TableSchema before = new SchemaManager(table.fileIO(), table.location(), PaimonTables.branch(table)).schema(schema.id() - 1);
        json.key("evolved").open().entry("schema", schema.id()).entry("columns", columns(schema));
        json.entry("schemaBefore", before.id()).entry("columnsBefore", columns(before)).close();
    }

    private static String columns(TableSchema schema) { return SparkTypeUtils.fromPaimonRowType(schema.logicalRowType()).json(); }
}
