package headwater.capture;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** Catalogs are reported once each, with what they are configured with, and referred to by number after that. */
public final class CatalogWriter {
    private static final String SESSION = "spark_catalog";
    private static final String STANDARD = "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog";
    private final Map numbers = new LinkedHashMap();
    private final Map seen = new java.util.WeakHashMap();
    private final StringBuilder pending = new StringBuilder();
    private int next;
    private org.apache.spark.sql.SparkSession session;

    /** The configuration of the session that the next plan is of: asked only when a catalog is new. */
    public void session(org.apache.spark.sql.SparkSession session) { this.session = session; }

    public synchronized int number(CatalogPlugin catalog) {
        Integer known = (Integer) seen.get(catalog);
        if (known != null) return known.intValue();
        int number = numberOf(described(catalog.name(), catalog.getClass().getName()));
        seen.put(catalog, Integer.valueOf(number));
        return number;
    }

    private int numberOf(String text) {
        Integer number = (Integer) numbers.get(text);
        if (number == null) {
            number = Integer.valueOf(next++);
            numbers.put(text, number);
            pending.append(pending.length() == 0 ? "" : ",").append("{\"number\":").append(number).append(",").append(text);
        }
        return number.intValue();
    }

    /** Of Spark's own catalog under the name that commands of the first kind don't say, as this session means it. */
    public synchronized int sessionCatalog() {
        String kind = session == null ? STANDARD : session.conf().get("spark.sql.catalog." + SESSION, STANDARD);
        return numberOf(described(SESSION, "builtin".equals(kind) ? STANDARD : kind));
    }

    /** What was reported didn't arrive: everything is reported anew, under numbers of its own. */
    public synchronized void forget() {
        numbers.clear();
        seen.clear();
        pending.setLength(0);
    }

    /** What was reported of catalogs since the last call, as elements of a list. */
    public synchronized String takeNew() {
        String text = pending.toString();
        pending.setLength(0);
        return text;
    }

    private String described(String name, String kind) {
        Json json = new Json().open().entry("name", name).entry("class", kind).key("options").open();
        if (session != null) {
            String prefix = "spark.sql.catalog." + name;
            TreeMap options = new TreeMap(ValueWriter.javaMap(session.conf().getAll()));
            for (java.util.Iterator i = options.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                String key = (String) entry.getKey();
                if (key.equals(prefix)) json.entry("", (String) entry.getValue());
                else if (key.startsWith(prefix + ".")) json.entry(key.substring(prefix.length() + 1), (String) entry.getValue());
            }
        }
        return json.close().close().toString().substring(1);
    }
}
