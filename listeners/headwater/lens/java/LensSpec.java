package headwater.lens;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** What a lens says: which tables are read at a version, which names stand for others, and what is let be. */
public final class LensSpec {
    public final String name;
    /** Whether tables may be written that the lens doesn't redirect. */
    public final boolean writesElsewhere;
    /** Whether a table that the lens doesn't name may be read as it is now. */
    public final boolean readsElsewhere;
    /** What clusters of Kafka are called in the names of topics. */
    public final KafkaClusters clusters = new KafkaClusters();
    private final Map pins = new LinkedHashMap();
    private final Map generations = new LinkedHashMap();
    private final Map redirects = new LinkedHashMap();
    private final List targets = new ArrayList();
    private final List allowed = new ArrayList();

    public LensSpec(String name, boolean writesElsewhere, boolean readsElsewhere) {
        this.name = name;
        this.writesElsewhere = writesElsewhere;
        this.readsElsewhere = readsElsewhere;
    }

    /** `table` is a full name, or a path; `version` is what VERSION AS OF takes, Hudi's instant, or a topic's offsets as JSON. */
    public void pin(String table, String version) {
        pins.put(table, version);
    }

    /** What tells the table whose version is meant from one that is made anew under its name, as its format has it. */
    public void generation(String table, String generation) {
        generations.put(table, generation);
    }

    /** `from` and `to` are full names of tables, or of namespaces with all that is in them. */
    public void redirect(String from, String to) {
        redirects.put(from, to);
        targets.add(to);
    }

    /** A full name or a path, in which `*` stands for anything. */
    public void allow(String pattern) {
        StringBuilder text = new StringBuilder();
        String[] parts = pattern.split("\\*", -1);
        for (int i = 0; i < parts.length; i++) text.append(i == 0 ? "" : ".*").append(Pattern.quote(parts[i]));
        allowed.add(Pattern.compile(text.toString(), Pattern.DOTALL));
    }

    /** The version at which this table is read; null if the lens pins no such table. */
    public String pinOf(String table) {
        return (String) pins.get(table);
    }

    /** Whether a table of this generation isn't the one whose version is meant. Where either isn't known, nobody can say. */
    boolean isOfAnother(String table, String generation) {
        String asked = (String) generations.get(table);
        return asked != null && !generation.isEmpty() && !generation.equals(asked);
    }

    /** Whether a topic of Kafka is pinned. */
    boolean pinsTopics() {
        for (java.util.Iterator all = pins.keySet().iterator(); all.hasNext();) if (TopicRead.isTopic((String) all.next())) return true;
        return false;
    }

    /** The full name that stands in this one's place; null if it stands for itself, as a branch does that its table leads to. */
    public String redirectOf(String table) {
        String best = null;
        for (java.util.Iterator all = redirects.keySet().iterator(); all.hasNext();) {
            String from = (String) all.next();
            if (covers((String) redirects.get(from), table)) continue;
            if (covers(from, table) && (best == null || from.length() > best.length())) best = from;
        }
        return best == null ? null : (String) redirects.get(best) + table.substring(best.length());
    }

    /** Whether any path leads elsewhere, as checkpoints of streams do. */
    boolean leadsPaths() {
        for (java.util.Iterator all = redirects.keySet().iterator(); all.hasNext();) if (TableNames.isPath((String) all.next())) return true;
        return false;
    }

    /** Whether a table leads to a branch of its own. */
    boolean leadsToBranch(String table) {
        String target = redirectOf(table);
        return target != null && (target.startsWith(table + ".") || target.startsWith(table + "$"));
    }

    public boolean hasTargets() {
        return !targets.isEmpty();
    }

    /** Whether the lens itself sends statements to this table. */
    public boolean isTarget(String table) {
        for (java.util.Iterator all = targets.iterator(); all.hasNext();) {
            if (covers((String) all.next(), table)) return true;
        }
        return false;
    }

    public boolean isAllowed(String table) {
        for (java.util.Iterator all = allowed.iterator(); all.hasNext();) {
            if (((Pattern) all.next()).matcher(table).matches()) return true;
        }
        return false;
    }

    public boolean mayRead(String table) {
        return readsElsewhere || isTarget(table) || isAllowed(table);
    }

    public boolean mayWrite(String table) {
        return writesElsewhere || isTarget(table) || isAllowed(table);
    }

    private static boolean covers(String prefix, String table) {
        return table.startsWith(prefix) && (table.length() == prefix.length() || table.charAt(prefix.length()) == '.');
    }
}
