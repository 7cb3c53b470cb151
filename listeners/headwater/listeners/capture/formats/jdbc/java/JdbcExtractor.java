package headwater.capture;

import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.plans.logical.DeserializeToObject;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation;
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTable;

/** What is known of tables in databases. They have no versions, so there is nothing to see of a read. */
public final class JdbcExtractor implements FormatExtractor, NestedPlanExtractor {
    public String format() { return "jdbc"; }

    /** Of a catalog's table the catalog knows where it is. */
    public boolean table(Object table, Json json) {
        if (!(table instanceof JDBCTable)) return false;
        json.key("jdbc").open().close();
        return true;
    }

    public boolean relation(Object relation, Json json) throws Exception {
        if (!(relation instanceof JDBCRelation)) return false;
        JDBCOptions options = ((JDBCRelation) relation).jdbcOptions();
        json.key("jdbc").open();
        Iterator each = new TreeMap(ValueWriter.javaMap((scala.collection.Map) LazyFields.value(options, "parameters"))).entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry entry = (Map.Entry) each.next();
            String key = ((String) entry.getKey()).toLowerCase(java.util.Locale.ROOT);
            if (key.indexOf("password") < 0) json.entry(key, (String) entry.getValue());
        }
        json.close();
        return true;
    }

    public boolean read(Object leaf, Json json) { return false; }

    /** A write that may leave alone what is there has written when its rows were taken out of the query. */
    public void nested(Statement statement, QueryExecution query, Json json) throws Exception {
        if (LazyFields.value(query, "analyzed") instanceof DeserializeToObject) json.key("jdbc").open().entry("rows", true).close();
    }

    public void ended(Statement statement, Json json) { }
}
