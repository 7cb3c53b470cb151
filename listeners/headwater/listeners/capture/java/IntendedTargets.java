package headwater.capture;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.SparkSqlParser;

/** What an operation that failed before Spark ran anything was to write, as far as its request alone tells. */
final class IntendedTargets {
    /** Plans that write, as they are parsed, and the field that says into what. */
    private static final List WRITES = Arrays.asList(new Object[] {
        "InsertIntoStatement", "table", "InsertIntoDir", "", "MergeIntoTable", "targetTable", "UpdateTable", "table",
        "DeleteFromTable", "table", "CreateTableAsSelect", "name", "ReplaceTableAsSelect", "name"});

    private IntendedTargets() { }

    /** Whether it would have written; `targets` gets the names, as lists of their parts. */
    static boolean by(Object request, String sql, List targets) throws Exception {
        if (request == null) return sql != null && inText(sql, targets);
        Object plan = call(request, "getPlan");
        if (!Boolean.TRUE.equals(call(plan, "hasCommand"))) return false;
        Object command = call(plan, "getCommand");
        String kind = call(command, "getCommandTypeCase").toString();
        if (kind.equals("SQL_COMMAND")) return inText(sql(call(command, "getSqlCommand")), targets);
        if (kind.equals("WRITE_OPERATION_V2")) return named((String) call(call(command, "getWriteOperationV2"), "getTableName"), targets);
        if (!kind.equals("WRITE_OPERATION")) return false;
        Object write = call(command, "getWriteOperation");
        if (call(write, "getSaveTypeCase").toString().equals("TABLE")) named((String) call(call(write, "getTable"), "getTableName"), targets);
        return true;
    }

    /** The SQL that a request of Connect holds, or null. */
    static String text(Object request) throws Exception {
        Object plan = call(request, "getPlan");
        if (!Boolean.TRUE.equals(call(plan, "hasCommand"))) return null;
        Object command = call(plan, "getCommand");
        return call(command, "getCommandTypeCase").toString().equals("SQL_COMMAND") ? sql(call(command, "getSqlCommand")) : null;
    }

    /** From Spark 4 on the text is a relation within the command. */
    private static String sql(Object command) throws Exception {
        String sql = (String) call(command, "getSql");
        if (sql.length() > 0) return sql;
        return (String) call(call(call(command, "getInput"), "getSql"), "getQuery");
    }

    private static boolean named(String name, List targets) throws Exception {
        targets.add(PlanWriter.list(new SparkSqlParser().parseMultipartIdentifier(name)));
        return true;
    }

    private static boolean inText(String sql, List targets) throws Exception {
        return in(new SparkSqlParser().parsePlan(sql), targets);
    }

    private static boolean in(LogicalPlan plan, List targets) throws Exception {
        int known = WRITES.indexOf(plan.getClass().getSimpleName());
        boolean writes = known >= 0;
        if (writes) target(plan, (String) WRITES.get(known + 1), targets);
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) writes |= in((LogicalPlan) children.get(i), targets);
        return writes;
    }

    private static void target(LogicalPlan plan, String field, List targets) throws Exception {
        Object target = field.length() == 0 ? null : LazyFields.value(plan, field);
        if (target instanceof SubqueryAlias) target = ((SubqueryAlias) target).children().head();
        if (target == null) return;
        Object name = LazyFields.optional(target, "multipartIdentifier");
        if (name == null) name = LazyFields.optional(target, "nameParts");
        if (name != null) targets.add(PlanWriter.list(name));
    }

    private static Object call(Object owner, String method) throws Exception {
        return owner.getClass().getMethod(method, new Class[0]).invoke(owner, new Object[0]);
    }
}
