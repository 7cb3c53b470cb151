package headwater.capture;

import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCRDD;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation;
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTable;

/** What is known of tables in databases. They have no versions, so there is nothing to see of a read. */
public final class JdbcExtractor implements FormatExtractor, RddExtractor {
    public String format() { return "jdbc"; }

    /** Of a catalog's table the catalog knows where it is. */
    public boolean table(Object table, Json json) {
        if (!(table instanceof JDBCTable)) return false;
        json.key("jdbc").open().close();
        return true;
    }

    public boolean relation(Object relation, Json json) throws Exception {
        if (!(relation instanceof JDBCRelation)) return false;
        described(((JDBCRelation) relation).jdbcOptions(), json);
        return true;
    }

    public boolean rdd(RDD rdd, Json json) throws Exception {
        if (!(rdd instanceof JDBCRDD)) return false;
        described((JDBCOptions) LazyFields.value(rdd, "options"), json);
        return true;
    }

    private static void described(JDBCOptions options, Json json) throws Exception {
        json.key("jdbc").open();
        Iterator each = new TreeMap(ValueWriter.javaMap((scala.collection.Map) LazyFields.value(options, "parameters"))).entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry entry = (Map.Entry) each.next();
            String key = ((String) entry.getKey()).toLowerCase(java.util.Locale.ROOT);
            if (key.indexOf("password") < 0) json.entry(key, (String) entry.getValue());
        }
        json.close();
    }

    public boolean read(Object leaf, Json json) { return false; }

    /**
     * A write that may leave alone what is there has written where a job took its rows: nothing else of it runs one. An
     * execution of its own for them is there only since Spark 3.5.1 (SPARK-45475).
     */
    public void ended(Statement statement, Json json) {
        if (statement.ranJob && statement.plan instanceof SaveIntoDataSourceCommand) json.entry("rows", true);
    }
}
