package headwater.lens;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A read of Kafka's topics, as the options of its relation say it. None of Kafka's classes is named: they may not be there. */
final class TopicRead {
    private static final String PACKAGE = "org.apache.spark.sql.kafka010.";
    private static final String SCHEME = "kafka://";
    private static final String END = "endingoffsets";
    private static final String[] TIMES = {"endingtimestamp", "endingoffsetsbytimestamp"};
    private static final ObjectMapper JSON = new ObjectMapper();

    /** By lower-case name. */
    final Map options;
    private final LogicalPlan leaf;

    private TopicRead(LogicalPlan leaf, Map options) {
        this.leaf = leaf;
        this.options = options;
    }

    /** What a leaf reads in batch; null if it is no read of Kafka. */
    static TopicRead of(LogicalPlan leaf) {
        if (leaf instanceof LogicalRelation) {
            Object relation = ((LogicalRelation) leaf).relation();
            if (!relation.getClass().getName().equals(PACKAGE + "KafkaRelation")) return null;
            return new TopicRead(leaf, Leaves.map((scala.collection.immutable.Map) Leaves.field(relation, "sourceOptions")));
        }
        if (!(leaf instanceof DataSourceV2Relation)) return null;
        DataSourceV2Relation relation = (DataSourceV2Relation) leaf;
        return isKafkaTable(relation.table()) ? new TopicRead(leaf, relation.options()) : null;
    }

    /** What a stream reads; null if it is none of Kafka's. */
    static TopicRead ofStream(LogicalPlan leaf) {
        Object options = Leaves.call(leaf, "extraOptions");
        return options instanceof CaseInsensitiveStringMap && isKafkaTable(Leaves.call(leaf, "table")) ? new TopicRead(leaf, (Map) options) : null;
    }

    private static boolean isKafkaTable(Object table) {
        return table != null && table.getClass().getName().equals(PACKAGE + "KafkaSourceProvider$KafkaTable");
    }

    static boolean isTopic(String name) {
        return name.startsWith(SCHEME);
    }

    /** The pattern that chooses topics; null if they are named. */
    String pattern() {
        return (String) options.get("subscribepattern");
    }

    /** The partitions that are named, by topic; null if all are read. */
    JsonNode assigned() {
        String text = (String) options.get("assign");
        return text == null ? null : parse(text);
    }

    /** The topics that are named; of a pattern those of which it is written where they end. */
    Set topics() {
        Set found = new LinkedHashSet();
        if (pattern() != null && offsets(END) != null) for (Iterator all = offsets(END).fieldNames(); all.hasNext();) found.add(all.next());
        if (assigned() != null) for (Iterator all = assigned().fieldNames(); all.hasNext();) found.add(all.next());
        String text = (String) options.get("subscribe");
        String[] each = text == null ? new String[0] : text.split(",");
        for (int i = 0; i < each.length; i++) if (!each[i].trim().isEmpty()) found.add(each[i].trim());
        return found;
    }

    /** Topics, or the pattern that stands for them. */
    List subjects() {
        List found = new ArrayList(topics());
        if (found.isEmpty()) found.add(pattern() == null ? "" : pattern());
        return found;
    }

    /** What a topic is called in errors, and in lineage. */
    String name(LensSpec lens, String topic) {
        return (String) names(lens, topic).iterator().next();
    }

    /** The name of all that it reads. */
    String name(LensSpec lens) {
        return name(lens, String.join(",", subjects()));
    }

    private Set names(LensSpec lens, String topic) {
        Set names = new LinkedHashSet();
        Object servers = options.get("kafka.bootstrap.servers");
        for (Iterator all = lens.clusters.namesOf(servers == null ? "" : (String) servers).iterator(); all.hasNext();) names.add(SCHEME + all.next() + "/" + topic);
        if (leaf instanceof LogicalRelation && ((LogicalRelation) leaf).catalogTable().isDefined()) names.add(Leaves.name((LogicalRelation) leaf));
        if (names.isEmpty()) names.add(SCHEME + "/" + topic);
        return names;
    }

    String pinOf(LensSpec lens, String topic) {
        for (Iterator all = names(lens, topic).iterator(); all.hasNext();) {
            String version = lens.pinOf((String) all.next());
            if (version != null) return version;
        }
        return null;
    }

    /** What the lens pins of its topics, by name. */
    private Map pins(LensSpec lens) {
        Map found = new HashMap();
        for (Iterator topics = topics().iterator(); topics.hasNext();) {
            for (Iterator all = names(lens, (String) topics.next()).iterator(); all.hasNext();) {
                String name = (String) all.next();
                if (lens.pinOf(name) != null) found.put(name, lens.pinOf(name));
            }
        }
        return found;
    }

    boolean mayRead(LensSpec lens, String topic) {
        for (Iterator all = names(lens, topic).iterator(); all.hasNext();) if (lens.mayRead((String) all.next())) return true;
        return false;
    }

    /** Whether the lens pins a topic that goes on to the newest record. Which topics a pattern means only the broker knows. */
    boolean isToPin(LensSpec lens) {
        if (topics().isEmpty()) return lens.pinsTopics();
        for (Iterator all = topics().iterator(); all.hasNext();) {
            String topic = (String) all.next();
            if (!hasFixedEnd(topic) && pinOf(lens, topic) != null) return true;
        }
        return false;
    }

    /** Topics, or a pattern, that are read up to the newest record. */
    List withoutEnd() {
        List found = new ArrayList();
        for (Iterator all = subjects().iterator(); all.hasNext();) {
            String topic = (String) all.next();
            if (!hasFixedEnd(topic)) found.add(topic);
        }
        return found;
    }

    /** Whether each partition ends at an offset that stands in the options. A time may mean the newest record. */
    private boolean hasFixedEnd(String topic) {
        JsonNode ends = endsAtTime() || offsets(END) == null ? null : offsets(END).get(topic);
        if (ends == null || ends.size() == 0) return false;
        for (Iterator each = ends.elements(); each.hasNext();) if (((JsonNode) each.next()).asLong(-1L) < 0) return false;
        return true;
    }

    boolean endsAtTime() {
        return options.get(TIMES[0]) != null || options.get(TIMES[1]) != null;
    }

    /** Offsets by topic and partition that an option holds; null if it holds a word, or isn't there. */
    JsonNode offsets(String option) {
        String text = (String) options.get(option);
        return text == null || !text.trim().startsWith("{") ? null : parse(text);
    }

    static JsonNode parse(String text) {
        try {
            return JSON.readTree(text);
        } catch (Exception e) {
            throw new LensError("an option of a read of Kafka isn't JSON: " + text);
        }
    }

    /** The same read, up to the offsets to which its topics are pinned. */
    LogicalPlan pinned(LensSpec lens) {
        try {
            Class pins = Class.forName("headwater.lens.TopicPins", true, getClass().getClassLoader());
            Map changed = (Map) pins.getMethod("optionsOf", new Class[] {LensSpec.class, TopicRead.class}).invoke(null, new Object[] {lens, this});
            return PlanPin.mark(with(changed), pins(lens), lens);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof LensError) throw (LensError) e.getCause();
            throw unreadable(lens, e.getCause());
        } catch (LensError e) {
            throw e;
        } catch (Throwable e) {
            throw unreadable(lens, e);
        }
    }

    private LensError unreadable(LensSpec lens, Throwable why) {
        Throwable cause = why;
        while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        return new LensError("the lens '" + lens.name + "' can't pin " + name(lens) + ": its offsets can't be asked of the broker (" + cause + ")");
    }

    private LogicalPlan with(Map changed) throws Exception {
        Map all = new HashMap();
        for (Iterator each = options.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            all.put(((String) entry.getKey()).toLowerCase(Locale.ROOT), entry.getValue());
        }
        for (Iterator each = changed.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            if (entry.getValue() == null) all.remove(entry.getKey());
            else all.put(entry.getKey(), entry.getValue());
        }
        if (leaf instanceof DataSourceV2Relation) {
            return LensRewrite.with(leaf, ((DataSourceV2Relation) leaf).options(), new CaseInsensitiveStringMap(all));
        }
        Object relation = ((LogicalRelation) leaf).relation();
        return LensRewrite.with(leaf, relation, relationWith(relation, all));
    }

    private static Object relationWith(Object relation, Map options) throws Exception {
        scala.collection.immutable.Map given = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
        for (Iterator each = options.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            given = (scala.collection.immutable.Map) given.updated(entry.getKey(), entry.getValue());
        }
        Class type = Class.forName(PACKAGE + "KafkaSourceProvider", true, relation.getClass().getClassLoader());
        Object provider = type.getConstructor(new Class[0]).newInstance(new Object[0]);
        java.lang.reflect.Method[] all = type.getMethods();
        for (int i = 0; i < all.length; i++) {
            if (!all[i].getName().equals("createRelation") || all[i].getParameterTypes().length != 2) continue;
            return all[i].invoke(provider, new Object[] {Leaves.call(relation, "sqlContext"), given});
        }
        throw new NoSuchMethodException("createRelation");
    }
}
