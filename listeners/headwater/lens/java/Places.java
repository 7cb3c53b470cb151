package headwater.lens;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.TableChange;

/** Where a command would put what it writes, if it says so: by a location, a property or an option. A name leads nowhere then. */
final class Places {
    private static final String[] MAPS = {"properties", "writeOptions"};
    private static final String[] OF_SPEC = {"properties", "options"};
    /** What a value looks like that is a place. */
    private static final String PLACE = "(?s)/.*|[A-Za-z][A-Za-z0-9+.-]*:/.*";
    private final List found = new ArrayList();
    /** Options and properties by their names. */
    private final Map options = new HashMap();

    private Places() { }

    /** All places that it names, and none where a table is by itself. */
    List all() {
        return found;
    }

    Map options() {
        return options;
    }

    static Places of(LogicalPlan plan) {
        Places places = new Places();
        for (int i = 0; i < MAPS.length; i++) places.addAll(Leaves.call(plan, MAPS[i]));
        places.addChanges(Leaves.call(plan, "changes"));
        Object spec = Leaves.call(plan, "tableSpec");
        if (spec != null) {
            places.add(Leaves.call(spec, "location"));
            for (int i = 0; i < OF_SPEC.length; i++) places.addAll(Leaves.call(spec, OF_SPEC[i]));
            Object options = Leaves.call(spec, "optionExpression");
            if (options != null) places.addAll(Leaves.call(options, "options"));
        }
        if (PlanNodes.name(plan).startsWith("Create") || PlanNodes.name(plan).startsWith("SaveAs")) places.addTable(plan);
        return places;
    }

    /** What Hudi makes of ALTER TABLE where columns may change: properties are changes like others. */
    private void addChanges(Object changes) {
        if (!(changes instanceof scala.collection.Seq)) return;
        for (scala.collection.Iterator all = ((scala.collection.Seq) changes).iterator(); all.hasNext();) {
            Object each = all.next();
            if (each instanceof TableChange.SetProperty) addPair(((TableChange.SetProperty) each).property(), ((TableChange.SetProperty) each).value());
        }
    }

    private void addTable(LogicalPlan plan) {
        Object format = Leaves.call(plan, "fileFormat");
        if (format instanceof org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat) addStorage(format, true);
        for (int i = 0; i < plan.productArity(); i++) {
            if (!(plan.productElement(i) instanceof org.apache.spark.sql.catalyst.catalog.CatalogTable)) continue;
            Object table = plan.productElement(i);
            addAll(Leaves.call(table, "properties"));
            addStorage(Leaves.call(table, "storage"), Leaves.call(table, "tableType").toString().indexOf("EXTERNAL") >= 0);
            return;
        }
    }

    private void addStorage(Object storage, boolean isExternal) {
        if (isExternal) add(Leaves.call(storage, "locationUri"));
        addAll(Leaves.call(storage, "properties"));
    }

    private void add(Object location) {
        if (location instanceof scala.Option && ((scala.Option) location).isDefined()) found.add(((scala.Option) location).get().toString());
    }

    private void addAll(Object pairs) {
        if (pairs instanceof Map) {
            for (Iterator all = ((Map) pairs).entrySet().iterator(); all.hasNext();) {
                Map.Entry each = (Map.Entry) all.next();
                addPair(each.getKey(), each.getValue());
            }
        } else if (pairs instanceof scala.collection.Iterable) {
            for (scala.collection.Iterator all = ((scala.collection.Iterable) pairs).iterator(); all.hasNext();) {
                Object each = all.next();
                if (each instanceof scala.Tuple2) addPair(((scala.Tuple2) each)._1(), ((scala.Tuple2) each)._2());
            }
        }
    }

    private void addPair(Object key, Object value) {
        String name = String.valueOf(key).toLowerCase(Locale.ROOT);
        String text = String.valueOf(value).trim();
        options.put(name, text);
        boolean isNamed = name.indexOf("path") >= 0 || name.indexOf("location") >= 0;
        if ((isNamed || isPlace(text)) && !text.isEmpty()) found.add(text);
    }

    static boolean isPlace(String text) {
        return text.matches(PLACE);
    }
}
