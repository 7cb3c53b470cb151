package headwater.lens;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Settings by which Hudi writes a table at another place than its own, or makes it known as another one. They stand in
 * the session or in Hudi's file of defaults, beside the statement: a table that is synchronized under the name of one
 * that lies elsewhere has that one dropped, with its files.
 */
final class HudiSettings {
    static final String ALLOWED = "setting:";
    private static final String COMMAND = "Hoodie";
    private static final String DEFAULTS = "org.apache.hudi.common.config.DFSPropertiesConfiguration";
    private static final Set NAMES = new HashSet(Arrays.asList("hoodie.table.name", "hoodie.datasource.write.table.name"));
    private static final String DATABASE = "hoodie.database.name";
    /** Where it puts what it can't keep in memory. */
    private static final String SCRATCH = "hoodie.memory.spillable.map.path";

    private HudiSettings() { }

    /** The name of a setting by which a command would write something else than this table; null if there is none. */
    static String leadingAway(LensSpec lens, LogicalPlan plan, String table, Map options) {
        if (lens.writesElsewhere) return null;
        String found = among(lens, table, options);
        if (found != null || PlanNodes.name(plan).indexOf(COMMAND) < 0) return found;
        found = among(lens, table, ofSession());
        return found == null ? among(lens, table, defaults()) : found;
    }

    private static String among(LensSpec lens, String table, Map settings) {
        for (Iterator all = settings.entrySet().iterator(); all.hasNext();) {
            Map.Entry each = (Map.Entry) all.next();
            String name = String.valueOf(each.getKey()).toLowerCase(Locale.ROOT);
            String value = String.valueOf(each.getValue()).trim();
            if (leadsAway(name, value, table) && !lens.isAllowed(ALLOWED + name)) return name;
        }
        return null;
    }

    private static boolean leadsAway(String name, String value, String table) {
        if (!name.startsWith("hoodie.") || value.isEmpty() || name.equals(SCRATCH)) return false;
        boolean isOfSync = name.indexOf("sync.") >= 0;
        if (NAMES.contains(name) || isOfSync && name.endsWith(".table")) return !value.equalsIgnoreCase(table.substring(table.lastIndexOf('.') + 1));
        return isOfSync && name.endsWith(".database") || name.equals(DATABASE) || name.endsWith("path") || name.endsWith("location") || Places.isPlace(value);
    }

    private static Map ofSession() {
        Map found = new HashMap();
        for (scala.collection.Iterator all = SQLConf.get().getAllConfs().iterator(); all.hasNext();) {
            scala.Tuple2 pair = (scala.Tuple2) all.next();
            found.put(pair._1(), pair._2());
        }
        return found;
    }

    /** What Hudi's own file says, which counts for each statement. */
    private static Map defaults() {
        try {
            Class type = Class.forName(DEFAULTS, true, Thread.currentThread().getContextClassLoader());
            return (Properties) type.getMethod("getGlobalProps", new Class[0]).invoke(null, new Object[0]);
        } catch (Exception withoutHudi) {
            return new Properties();
        }
    }
}
