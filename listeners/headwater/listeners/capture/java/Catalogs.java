package headwater.capture;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** Catalogs are told once each, with what they are configured with, and referred to by number after that. */
public final class Catalogs {
    private final Map numbers = new LinkedHashMap();
    private final Map seen = new java.util.WeakHashMap();
    private final StringBuilder news = new StringBuilder();
    private int next;
    private org.apache.spark.sql.SparkSession session;

    /** The configuration of the session that the next plan is of: asked only when a catalog is new. */
    public void session(org.apache.spark.sql.SparkSession session) { this.session = session; }

    public synchronized int number(CatalogPlugin catalog) {
        Integer known = (Integer) seen.get(catalog);
        if (known != null) return known.intValue();
        String text = described(catalog);
        Integer number = (Integer) numbers.get(text);
        if (number == null) {
            number = Integer.valueOf(next++);
            numbers.put(text, number);
            news.append(news.length() == 0 ? "" : ",").append("{\"number\":").append(number).append(",").append(text);
        }
        seen.put(catalog, number);
        return number.intValue();
    }

    /** What was told didn't arrive: everything is told anew, under numbers of its own. */
    public synchronized void forget() {
        numbers.clear();
        seen.clear();
        news.setLength(0);
    }

    /** What was told of catalogs since the last call, as elements of a list. */
    public synchronized String news() {
        String told = news.toString();
        news.setLength(0);
        return told;
    }

    private String described(CatalogPlugin catalog) {
        String name = catalog.name();
        Json json = new Json().open().entry("name", name).entry("class", catalog.getClass().getName()).key("options").open();
        if (session != null) {
            String prefix = "spark.sql.catalog." + name;
            TreeMap options = new TreeMap(Values.javaMap(session.conf().getAll()));
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
