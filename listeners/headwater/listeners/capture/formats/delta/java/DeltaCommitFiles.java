package headwater.capture;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;

/** Looks into the commit files of a table: on the reader's thread, a few small files at most. */
final class DeltaCommitFiles {
    private static final int MOST = 200;
    private static final int LINES = 1000;
    private static final Pattern TRANSACTION = Pattern.compile("\"txnId\":\"([^\"]*)\"");
    private static final Pattern TIME = Pattern.compile("\"timestamp\":([0-9]+)");

    private DeltaCommitFiles() { }

    static void found(Statement statement, Map tables, Json json) throws Exception {
        List pending = DeltaState.HOOK.take(statement.executions);
        if (!pending.isEmpty()) {
            json.key("committed").openList();
            for (int i = 0; i < pending.size(); i++) {
                Object[] each = (Object[]) pending.get(i);
                byTransaction((DeltaLog) each[0], ((Long) each[1]).longValue(), (String) each[2], json);
            }
            json.closeList();
        }
        if (!DeltaState.HOOK.covers(statement)) candidates(statement, tables, json);
    }

    /** The commit of a transaction: none before what it read, and none behind the first that isn't there. */
    static void byTransaction(DeltaLog log, long readVersion, String id, Json json) throws Exception {
        Configuration configuration = log.newDeltaHadoopConf();
        for (long version = readVersion + 1; version <= readVersion + MOST; version++) {
            String info = commitInfo(log, version, configuration);
            if (info == null) return;
            Matcher transaction = TRANSACTION.matcher(info);
            if (!transaction.find() || !transaction.group(1).equals(id)) continue;
            json.open().entry("txnId", id).entry("version", version).key("info").raw(info).close();
            return;
        }
    }

    /** Where no hook sees commits: those that were made while the statement ran, whoever made them. */
    private static void candidates(Statement statement, Map tables, Json json) throws Exception {
        if (statement.started < 0) return;
        json.key("candidates").open();
        for (Iterator i = tables.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            Object[] known = (Object[]) entry.getValue();
            json.key((String) entry.getKey()).openList();
            List found = since((DeltaLog) known[0], ((Long) known[1]).longValue(), statement.started, statement.ended);
            for (int k = 0; k < found.size(); k++) json.raw((String) found.get(k));
            json.closeList();
        }
        json.close();
    }

    private static List since(DeltaLog log, long lowest, long started, long ended) throws Exception {
        Configuration configuration = log.newDeltaHadoopConf();
        List found = new ArrayList();
        long highest = log.unsafeVolatileSnapshot().version();
        for (long version = highest; version > lowest && version > highest - MOST; version--) {
            String info = commitInfo(log, version, configuration);
            Matcher time = info == null ? null : TIME.matcher(info);
            if (time == null || !time.find()) continue;
            long made = Long.parseLong(time.group(1));
            if (made < started) break;
            if (made <= ended) found.add(new Json().open().entry("version", version).key("info").raw(info).close().toString());
        }
        return found;
    }

    /** The newest commit of an application's own transaction, among the last: as an object, or nothing. */
    static void byApplication(DeltaLog log, String application, long transaction, Json json) throws Exception {
        Configuration configuration = log.newDeltaHadoopConf();
        long highest = log.unsafeVolatileSnapshot().version();
        for (long version = highest; version >= 0 && version > highest - MOST; version--) {
            String line = line(log, version, configuration, "{\"txn\"");
            if (line == null || !line.contains("\"appId\":\"" + application + "\"") || !line.contains("\"version\":" + transaction + ",") && !line.contains("\"version\":" + transaction + "}")) continue;
            json.open().entry("path", log.dataPath().toString()).entry("version", version).key("info").raw(commitInfo(log, version, configuration)).close();
            return;
        }
    }

    /** The line of a commit that says who made it, or null where there is no such commit; "{}" where it doesn't say. */
    private static String commitInfo(DeltaLog log, long version, Configuration configuration) throws Exception {
        return line(log, version, configuration, "{\"commitInfo\"");
    }

    /** The first line of a commit that begins so, or null where there is no such commit; "{}" where none does. */
    private static String line(DeltaLog log, long version, Configuration configuration, String begin) throws Exception {
        Path file = new Path(log.logPath(), String.format("%020d.json", new Object[] {Long.valueOf(version)}));
        BufferedReader reader;
        try {
            reader = new BufferedReader(new InputStreamReader(file.getFileSystem(configuration).open(file), "UTF-8"));
        } catch (java.io.FileNotFoundException e) {
            return null;
        }
        try {
            for (int i = 0; i < LINES; i++) {
                String line = reader.readLine();
                if (line == null) break;
                if (line.startsWith(begin)) return line;
            }
            return "{}";
        } finally {
            reader.close();
        }
    }
}
