package headwater.capture;

import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Whose a statement is where servers in this driver run statements for others: Spark Connect and the Thrift server.
 *
 * Their events are read by the names of their fields, because neither server need be on the class path. Connect puts a tag
 * on whatever it runs; the Thrift server a job group, which Spark 3.5 shows with jobs only: what runs no job is reported by its
 * text, where just one operation has that text. Called on the thread of our queue only.
 */
final class ServerClients {
    private static final String CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnect";
    private static final String THRIFT = "org.apache.spark.sql.hive.thriftserver.ui.SparkListenerThriftServer";
    private static final String ID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
    private static final Pattern TAG =
        Pattern.compile("SparkConnect_OperationTag_User_(.*)_Session_(" + ID + ")_Operation_(" + ID + ")", Pattern.DOTALL);
    private static final int MOST = 10000;
    private static final int MOST_OPEN = 1000;
    private static final int MOST_FAILURES = 100;

    /** By operation; of Connect those only of which no execution was seen so far. */
    private final Map operations = bounded(MOST);
    /** Users of the Thrift server's sessions. */
    private final Map users = bounded(MOST);
    /** By execution: statements that may be the Thrift server's. */
    private final Map begun = bounded(MOST_OPEN);
    /** Messages of failures that Spark showed, but not whose they are. */
    private final Map failures = bounded(MOST_FAILURES);

    private static Map bounded(final int most) {
        return new LinkedHashMap() {
            protected boolean removeEldestEntry(Map.Entry eldest) { return size() > most; }
        };
    }

    static boolean isClientEvent(Object event) {
        String name = event.getClass().getName();
        return name.startsWith(CONNECT) || name.startsWith(THRIFT);
    }

    /** A text to be reported behind all that was seen so far, or null. */
    String receive(Object event) throws Exception {
        String name = event.getClass().getName();
        return name.startsWith(CONNECT)
            ? connect(name.substring(CONNECT.length()), event) : thrift(name.substring(THRIFT.length()), event);
    }

    private String connect(String name, Object event) throws Exception {
        if (name.equals("OperationStarted")) {
            Operation started = new Operation(
                "connect", LazyFields.value(event, "sessionId"), LazyFields.value(event, "userId"), LazyFields.value(event, "operationId"));
            started.request = ScalaOptions.get(LazyFields.value(event, "planRequest"));
            operations.put(started.id, started);
        } else if (name.equals("OperationFailed")) {
            return failed((Operation) operations.remove(LazyFields.value(event, "operationId")), (String) LazyFields.value(event, "errorMessage"));
        } else if (name.equals("OperationFinished") || name.equals("OperationCanceled") || name.equals("OperationClosed")) {
            operations.remove(LazyFields.value(event, "operationId"));
        } else if (name.equals("SessionClosed")) {
            return sessionClosed(new Operation("connect", LazyFields.value(event, "sessionId"), LazyFields.value(event, "userId"), null));
        }
        return null;
    }

    private String thrift(String name, Object event) throws Exception {
        if (name.equals("SessionCreated")) {
            users.put(LazyFields.value(event, "sessionId"), LazyFields.value(event, "userName"));
        } else if (name.equals("SessionClosed")) {
            Object session = LazyFields.value(event, "sessionId");
            return sessionClosed(new Operation("thrift", session, users.remove(session), null));
        } else if (name.equals("OperationStart")) {
            Operation started = new Operation(
                "thrift", LazyFields.value(event, "sessionId"), LazyFields.value(event, "userName"), LazyFields.value(event, "id"));
            started.statement = (String) LazyFields.value(event, "statement");
            operations.put(started.id, started);
        } else if (name.equals("OperationError")) {
            return failed((Operation) operations.get(LazyFields.value(event, "id")), (String) LazyFields.value(event, "errorMsg"));
        } else if (name.equals("OperationFinish")) {
            Operation known = (Operation) operations.get(LazyFields.value(event, "id"));
            if (known != null) known.isOver = true;
        } else if (name.equals("OperationClosed")) {
            operations.remove(LazyFields.value(event, "id"));
        }
        return null;
    }

    /** A statement begins: whose it is, if it is a client's. */
    void begin(Statement statement, SparkListenerSQLExecutionStart start) throws Exception {
        scala.collection.Iterator tags = start.jobTags().iterator();
        while (tags.hasNext()) {
            Matcher tag = TAG.matcher((String) tags.next());
            if (tag.matches()) {
                statement.client = new Operation("connect", tag.group(2), tag.group(1), tag.group(3)).toString();
                operations.remove(tag.group(3));
                return;
            }
        }
        if (operations.isEmpty()) return;
        own(statement, thrifts(start));
        begun.put(Long.valueOf(statement.id), new WeakReference(statement));
    }

    private Operation thrifts(SparkListenerSQLExecutionStart start) throws Exception {
        if (!LazyFields.has(start.getClass(), "jobGroupId")) return saying(start.description());
        return (Operation) operations.get(ScalaOptions.get(LazyFields.value(start, "jobGroupId")));
    }

    /** The operation that runs and has this text, if it is the only one. */
    private Operation saying(String text) {
        Operation found = null;
        for (Iterator i = operations.values().iterator(); i.hasNext();) {
            Operation each = (Operation) i.next();
            if (each.isOver || !each.says(text)) continue;
            if (found != null) return null;
            found = each;
        }
        return found;
    }

    /** A job begins: its group is exact. */
    void begin(SparkListenerJobStart job) {
        Properties properties = operations.isEmpty() ? null : job.properties();
        if (properties == null) return;
        Operation operation = (Operation) operations.get(properties.getProperty("spark.jobGroup.id"));
        Reference statement = operation == null ? null : begun(properties.getProperty("spark.sql.execution.id"));
        if (statement == null && operation != null) statement = begun(properties.getProperty("spark.sql.execution.root.id"));
        if (statement != null && statement.get() != null) own((Statement) statement.get(), operation);
    }

    private Reference begun(String execution) { return execution == null ? null : (Reference) begun.get(Long.valueOf(execution)); }

    private static void own(Statement statement, Operation operation) {
        if (operation == null || operation.statement == null) return;
        operation.isSeen = true;
        statement.client = operation.toString();
    }

    /** A statement that failed without a start, which would have said whose it is. Its operation needn't tell it again. */
    void failing(Statement statement, SparkListenerSQLExecutionEnd end) {
        Operation operation = saying((String) ScalaOptions.get(end.qe().logical().origin().sqlText()));
        String message = (String) ScalaOptions.get(end.errorMessage());
        if (operation != null) {
            operation.isSeen = true;
            statement.client = operation.toString();
        } else if (message != null && message.length() > 0) {
            failures.put(message, Boolean.TRUE);
        }
    }

    private static String sessionClosed(Operation session) { return session.open("closed").close().toString(); }

    /** An operation failed. What Spark showed as an execution is reported as that. */
    private String failed(Operation operation, String message) {
        if (operation == null || operation.isSeen || message == null) return null;
        operation.isSeen = true;
        for (Iterator i = failures.keySet().iterator(); i.hasNext();) if (message.contains((String) i.next())) return null;
        List targets = new ArrayList();
        try {
            if (!IntendedTargets.by(operation.request, operation.statement, targets)) return null;
        } catch (Throwable e) {
            CaughtErrors.reportUnforeseen("ServerClients.failed", e);
            return null;  // it can't be known what it was to do
        }
        Json json = operation.open("failed").entry("message", message.length() > 20000 ? message.substring(0, 20000) : message);
        json.entry("ended", System.currentTimeMillis()).key("targets").openList();
        for (int i = 0; i < targets.size(); i++) {
            List parts = (List) targets.get(i);
            json.openList();
            for (int p = 0; p < parts.size(); p++) json.value((String) parts.get(p));
            json.closeList();
        }
        return json.closeList().close().toString();
    }

    /** What a client asked for in its session. */
    private static final class Operation {
        final String server;
        final String session;
        final String user;
        final String id;
        /** Of Connect: what was asked for. */
        Object request;
        /** Of the Thrift server: its text. */
        String statement;
        boolean isOver;
        /** Spark showed an execution of it. */
        boolean isSeen;

        Operation(String server, Object session, Object user, Object id) {
            this.server = server;
            this.session = (String) session;
            this.user = (String) user;
            this.id = (String) id;
        }

        boolean says(String text) {
            if (text == null) return false;
            if (statement != null || request == null) return text.equals(statement);
            try {
                return text.equals(IntendedTargets.text(request));
            } catch (Exception e) {
                return false;
            }
        }

        Json open(String what) { return new Json().open().entry("kind", "client").entry("what", what).key("client").raw(toString()); }

        public String toString() {
            Json json = new Json().open().entry("server", server).entry("session", session);
            if (user != null && user.length() > 0) json.entry("user", user);
            if (id != null) json.entry("operation", id);
            return json.close().toString();
        }
    }
}
