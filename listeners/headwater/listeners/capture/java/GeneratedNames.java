package headwater.capture;

import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.View;

/** What Spark makes up anew for each statement, and is of no interest to anybody: without it the same is the same text. */
final class GeneratedNames {
    /** `max(v#6)`, `scalar-subquery#7 []`: how an expression prints an attribute, or a query, with its id. */
    private static final Pattern ID = Pattern.compile("([\\w`)-])#(\\d+)(L?)");
    private static final Pattern FRAME = Pattern.compile("_pyspark_[0-9a-f]{32}");
    private static final String SUBQUERY = "-subquery";
    /** By Spark's ids, names of the attributes that were met. */
    private final Map names = new HashMap();

    /** An argument of a plan's operator, or of what is in one. */
    static boolean is(Object product, String name, Object value) {
        String type = product.getClass().getSimpleName();
        if (type.startsWith("WriteToMicroBatchDataSource")) return name.equals("queryId") || name.equals("batchId");
        if (type.equals("Sample")) return name.equals("seed");
        if (type.equals("CollectMetrics")) return name.equals("name") || name.equals("dataframeId");
        if (type.equals("View")) return name.equals("desc") && ((View) product).isTempView();
        return type.equals("AliasIdentifier") && name.equals("name") && value instanceof String && FRAME.matcher((String) value).matches();
    }

    void number(Long id, String name) { names.put(id, name); }

    /**
     * A name that is an expression's text, with the ids in it as they are numbered here. A user's own name, whatever is
     * in it, stays: only what stands behind the name of an attribute of the plan is its id.
     */
    String stable(String name, Map numbers) {
        if (name.indexOf('#') < 0 || name.indexOf('(') < 0 && name.indexOf(SUBQUERY) < 0) return name;
        Matcher found = ID.matcher(name);
        StringBuffer text = new StringBuffer();
        while (found.find()) {
            String number = number(name.substring(0, found.end(1)), found.group(2), numbers);
            found.appendReplacement(text, Matcher.quoteReplacement(number == null ? found.group() : found.group(1) + "#" + number + found.group(3)));
        }
        return found.appendTail(text).toString();
    }

    private String number(String before, String id, Map numbers) {
        if (before.endsWith(SUBQUERY)) return "";
        if (id.length() > 18) return null;
        Object name = names.get(Long.valueOf(id));
        return name == null || !before.endsWith((String) name) ? null : String.valueOf(numbers.get(Long.valueOf(id)));
    }
}
