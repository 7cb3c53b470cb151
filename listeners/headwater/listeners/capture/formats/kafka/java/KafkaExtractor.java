package headwater.capture;

import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.execution.RowDataSourceScanExec;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;

/** What is known of Kafka's topics: which are meant, by a relation's options, and from where to where they were read. */
public final class KafkaExtractor implements FormatExtractor, CommandExtractor, RddExtractor {
    private static final String PACKAGE = "org.apache.spark.sql.kafka010.";
    private static final String SERVERS = "kafka.bootstrap.servers";
    private static final String GROUP = "kafka.group.id";
    private static final String[] STRATEGIES = {"subscribe", "subscribepattern", "assign"};
    private static final int MOST_RDDS = 100;

    public String format() { return "kafka"; }

    /** Its options stand beside it in the plan. */
    public boolean table(Object table, Json json) {
        if (!is(table, "KafkaSourceProvider$KafkaTable")) return false;
        json.key("kafka").open().close();
        return true;
    }

    public boolean relation(Object relation, Json json) throws Exception {
        if (!is(relation, "KafkaRelation")) return false;
        described(options(relation), json);
        return true;
    }

    /** Never what a client is given for its own use: that is where secrets are. */
    private static void described(Map options, Json json) {
        json.key("kafka").open();
        Iterator each = new TreeMap(options).entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry entry = (Map.Entry) each.next();
            String key = ((String) entry.getKey()).toLowerCase(java.util.Locale.ROOT);
            if (!key.startsWith("kafka.") || key.equals(SERVERS) || key.equals(GROUP)) json.entry(key, (String) entry.getValue());
        }
        json.close();
    }

    private static Map options(Object relation) throws Exception {
        return ValueWriter.javaMap((scala.collection.Map) LazyFields.value(relation, "sourceOptions"));
    }

    public boolean read(Object leaf, Json json) throws Exception {
        if (leaf instanceof LogicalRelation) return asked(((LogicalRelation) leaf).relation(), json);
        if (leaf instanceof RowDataSourceScanExec) {
            Object relation = ((RowDataSourceScanExec) leaf).relation();
            if (!is(relation, "KafkaRelation")) return false;
            which(options(relation), json);
            ranges(source(((RowDataSourceScanExec) leaf).rdd()), json);
            return true;
        }
        if (!(leaf instanceof BatchScanExec) || !is(((BatchScanExec) leaf).scan(), "KafkaSourceProvider$KafkaScan")) return false;
        which((Map) LazyFields.value(((BatchScanExec) leaf).scan(), "options"), json);
        Object partitions = LazyFields.value(leaf, "inputPartitions");
        if (partitions != null) written(ofPartitions(PlanWriter.list(partitions)), json);
        return true;
    }

    /** By which a leaf of the shape knows what was read of it. */
    private static void which(Map options, Json json) {
        json.entry("servers", (String) options.get(SERVERS));
        for (int i = 0; i < STRATEGIES.length; i++)
            if (options.get(STRATEGIES[i]) != null) json.entry("strategy", STRATEGIES[i]).entry("topics", (String) options.get(STRATEGIES[i]));
    }

    /** What was asked for by number, where that is all there is to see: a command reads its query in a plan of its own. */
    private static boolean asked(Object relation, Json json) throws Exception {
        if (!is(relation, "KafkaRelation")) return false;
        which(options(relation), json);
        Map from = limits(LazyFields.value(relation, "startingOffsets"));
        Map to = limits(LazyFields.value(relation, "endingOffsets"));
        json.entry("asked", true);
        if (to == null) return true;
        TreeMap ranges = new TreeMap();
        for (Iterator i = to.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            Long start = from == null ? null : (Long) from.get(entry.getKey());
            known(ranges, (TopicPartition) entry.getKey(), start == null ? -2L : start.longValue(), ((Long) entry.getValue()).longValue());
        }
        written(ranges, json);
        return true;
    }

    private static Map limits(Object limit) throws Exception {
        if (!is(limit, "SpecificOffsetRangeLimit")) return null;
        return ValueWriter.javaMap((scala.collection.Map) LazyFields.value(limit, "partitionOffsets"));
    }

    /** The RDD at the ground of those that Spark put over it; null where there is none. */
    private static Object source(RDD start) {
        java.util.ArrayDeque waiting = new java.util.ArrayDeque();
        Set seen = new HashSet();
        waiting.add(start);
        while (!waiting.isEmpty() && seen.size() < MOST_RDDS) {
            RDD rdd = (RDD) waiting.poll();
            if (is(rdd, "KafkaSourceRDD")) return rdd;
            if (!seen.add(Integer.valueOf(rdd.id()))) continue;
            List dependencies = PlanWriter.list(rdd.dependencies());
            for (int i = 0; i < dependencies.size(); i++) waiting.add(((org.apache.spark.Dependency) dependencies.get(i)).rdd());
        }
        return null;
    }

    private static void ranges(Object rdd, Json json) throws Exception {
        Object found = rdd == null ? null : LazyFields.value(rdd, "offsetRanges");
        if (found == null) return;
        TreeMap ranges = new TreeMap();
        List each = PlanWriter.list(found);
        for (int i = 0; i < each.size(); i++) known(ranges, each.get(i));
        written(ranges, json);
    }

    public boolean rdd(RDD rdd, Json json) throws Exception {
        boolean isFirstKind = is(rdd, "KafkaSourceRDD");
        List partitions = isFirstKind ? new java.util.ArrayList() : RddSources.inputPartitions(rdd);
        if (!isFirstKind && (partitions.isEmpty() || !is(partitions.get(0), "KafkaBatchInputPartition"))) return false;
        Object servers = ((Map) LazyFields.value(isFirstKind ? rdd : partitions.get(0), "executorKafkaParams")).get("bootstrap.servers");
        if (!(servers instanceof String)) return false;
        json.entry("servers", (String) servers);
        if (isFirstKind) ranges(rdd, json);
        else written(ofPartitions(partitions), json);
        return true;
    }

    private static TreeMap ofPartitions(List partitions) throws Exception {
        TreeMap ranges = new TreeMap();
        for (int i = 0; i < partitions.size(); i++) known(ranges, LazyFields.value(partitions.get(i), "offsetRange"));
        return ranges;
    }

    private static void known(TreeMap ranges, Object range) throws Exception {
        long from = ((Number) LazyFields.value(range, "fromOffset")).longValue();
        long until = ((Number) LazyFields.value(range, "untilOffset")).longValue();
        known(ranges, (TopicPartition) LazyFields.value(range, "topicPartition"), from, until);
    }

    /** Spark cuts a partition into several ranges. -2 is the earliest and -1 the latest, whatever they were at the time. */
    private static void known(TreeMap ranges, TopicPartition partition, long from, long until) {
        TreeMap topic = (TreeMap) ranges.get(partition.topic());
        if (topic == null) ranges.put(partition.topic(), topic = new TreeMap());
        long[] range = (long[]) topic.get(Integer.valueOf(partition.partition()));
        if (range == null) {
            topic.put(Integer.valueOf(partition.partition()), new long[] {from, until});
            return;
        }
        range[0] = Math.min(range[0], from);
        range[1] = range[1] < 0 || until < 0 ? -1 : Math.max(range[1], until);
    }

    /** `{"topic": {"0": [from, until]}}` */
    private static void written(TreeMap ranges, Json json) {
        json.key("ranges").open();
        for (Iterator i = ranges.entrySet().iterator(); i.hasNext();) {
            Map.Entry topic = (Map.Entry) i.next();
            json.key((String) topic.getKey()).open();
            for (Iterator p = ((TreeMap) topic.getValue()).entrySet().iterator(); p.hasNext();) {
                Map.Entry entry = (Map.Entry) p.next();
                long[] range = (long[]) entry.getValue();
                json.key(entry.getKey().toString()).openList().value(range[0]).value(range[1]).closeList();
            }
            json.close();
        }
        json.close();
    }

    /** A write that has no option `topic` goes where its rows say. */
    public void command(QueryPlan command, PlanWriter plan, Json json) throws Exception {
        if (KafkaTopics.isWrite(command)) KafkaTopics.written(command, plan, json);
    }

    public void ended(Statement statement, Json json) { }

    private static boolean is(Object found, String name) {
        return found != null && found.getClass().getName().equals(PACKAGE + name);
    }
}
