package headwater.lens;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;

/**
 * From where to where pinned topics are read, held against what the broker has. It is compiled for the first pinned topic
 * alone, since it names classes of Kafka's.
 */
public final class TopicPins {
    private static final String CLIENT = "kafka.";
    private static final String[] START_TIMES = {"startingtimestamp", "startingoffsetsbytimestamp"};
    private static final String START = "startingoffsets";
    private static final String END = "endingoffsets";
    private static final String END_TIME = "endingtimestamp";
    private static final String END_TIMES = "endingoffsetsbytimestamp";
    private static final long EARLIEST = -2L;
    private static final long LATEST = -1L;

    private final LensSpec lens;
    private final TopicRead read;
    private final ObjectNode starts = new ObjectMapper().createObjectNode();
    private final ObjectNode ends = new ObjectMapper().createObjectNode();
    /** The first offset of each partition that is as late as the time up to which the user reads it. */
    private Map timed = new HashMap();
    /** Whether a version says from where a topic is read. */
    private boolean hasStart;
    /** A topic of which no version says so; null if each does. */
    private String withoutStart;

    private TopicPins(LensSpec lens, TopicRead read) {
        this.lens = lens;
        this.read = read;
    }

    /** The options of a read that change, so that it ends where its topics are pinned; null for one that goes. */
    public static Map optionsOf(LensSpec lens, TopicRead read) throws Exception {
        TopicPins pins = new TopicPins(lens, read);
        pins.find();
        Map changed = new HashMap();
        changed.put(END, pins.ends.toString());
        changed.put(END_TIME, null);
        changed.put(END_TIMES, null);
        if (!pins.hasStart) return changed;
        changed.put(START, pins.starts.toString());
        for (int i = 0; i < START_TIMES.length; i++) {
            if (read.options.get(START_TIMES[i]) != null && pins.withoutStart != null) throw pins.error(pins.withoutStart, "it is read from a time, beside topics that are pinned from an offset: read them one by one");
            changed.put(START_TIMES[i], null);
        }
        return changed;
    }

    private void find() throws Exception {
        scala.collection.immutable.Map given = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
        for (Iterator all = read.options.entrySet().iterator(); all.hasNext();) {
            Map.Entry entry = (Map.Entry) all.next();
            String key = (String) entry.getKey();
            if (key.startsWith(CLIENT)) given = (scala.collection.immutable.Map) given.updated(key.substring(CLIENT.length()), entry.getValue());
        }
        Admin broker = AdminClient.create((Map) org.apache.spark.sql.kafka010.KafkaSourceProvider$.MODULE$.kafkaParamsForDriver(given));
        try {
            Collection partitions = partitions(broker);
            Map first = offsets(broker, all(partitions, OffsetSpec.earliest()));
            Map last = offsets(broker, all(partitions, OffsetSpec.latest()));
            timed = offsets(broker, endTimes(partitions));
            for (Iterator all = partitions.iterator(); all.hasNext();) {
                TopicPartition each = (TopicPartition) all.next();
                pin(each, ((Long) first.get(each)).longValue(), ((Long) last.get(each)).longValue());
            }
        } finally {
            broker.close();
        }
    }

    private Collection partitions(Admin broker) throws Exception {
        List topics = new ArrayList(read.topics());
        if (read.pattern() != null) {
            Pattern pattern = Pattern.compile(read.pattern());
            for (Iterator all = ((Collection) broker.listTopics().names().get()).iterator(); all.hasNext();) {
                String topic = (String) all.next();
                if (pattern.matcher(topic).matches()) topics.add(topic);
            }
        }
        if (topics.isEmpty()) throw new LensError("the lens '" + lens.name + "' can't pin " + read.name(lens) + ": no topic has such a name");
        Map described = (Map) broker.describeTopics((Collection) topics).allTopicNames().get();
        TreeSet found = new TreeSet(new ByNumber());
        for (Iterator all = described.values().iterator(); all.hasNext();) {
            TopicDescription topic = (TopicDescription) all.next();
            JsonNode assigned = read.assigned() == null ? null : read.assigned().get(topic.name());
            for (Iterator each = topic.partitions().iterator(); each.hasNext();) {
                int number = ((TopicPartitionInfo) each.next()).partition();
                if (assigned == null || has(assigned, number)) found.add(new TopicPartition(topic.name(), number));
            }
            checkPartitions(topic);
        }
        return found;
    }

    private static boolean has(JsonNode numbers, int number) {
        for (Iterator all = numbers.elements(); all.hasNext();) if (((JsonNode) all.next()).asInt() == number) return true;
        return false;
    }

    private void checkPartitions(TopicDescription topic) {
        String version = read.pinOf(lens, topic.name());
        if (version == null) return;
        if (TopicRead.parse(version).size() == 0) throw error(topic.name(), "a topic's version is an offset by partition");
        for (Iterator all = TopicRead.parse(version).fieldNames(); all.hasNext();) {
            String number = (String) all.next();
            if (Integer.parseInt(number) >= topic.partitions().size()) throw error(topic.name(), "it has no partition " + number + ", so it was made anew since, or another topic is meant");
        }
    }

    private static Map all(Collection partitions, OffsetSpec which) {
        Map asked = new HashMap();
        for (Iterator each = partitions.iterator(); each.hasNext();) asked.put(each.next(), which);
        return asked;
    }

    /** The times up to which the user reads partitions. */
    private Map endTimes(Collection partitions) {
        Map asked = new HashMap();
        for (Iterator all = partitions.iterator(); all.hasNext() && read.endsAtTime();) {
            TopicPartition each = (TopicPartition) all.next();
            String time = (String) read.options.get(END_TIME);
            long millis = time == null ? own(END_TIMES, each, -1L) : Long.parseLong(time.trim());
            if (millis >= 0) asked.put(each, OffsetSpec.forTimestamp(millis));
        }
        return asked;
    }

    /** None where no record is as late as a time. */
    private static Map offsets(Admin broker, Map asked) throws Exception {
        Map found = (Map) broker.listOffsets(asked).all().get();
        Map offsets = new HashMap();
        for (Iterator all = found.entrySet().iterator(); all.hasNext();) {
            Map.Entry entry = (Map.Entry) all.next();
            long offset = ((ListOffsetsResult.ListOffsetsResultInfo) entry.getValue()).offset();
            if (offset >= 0) offsets.put(entry.getKey(), Long.valueOf(offset));
        }
        return offsets;
    }

    private void pin(TopicPartition partition, long first, long last) {
        String topic = partition.topic();
        String version = read.pinOf(lens, topic);
        if (version == null && !read.mayRead(lens, topic)) throw LensCheck.readError(lens, read.name(lens, topic), true);
        JsonNode pinned = version == null ? null : TopicRead.parse(version).get(Integer.toString(partition.partition()));
        long start = own(START, partition, EARLIEST);
        Long atTime = (Long) timed.get(partition);
        long end = !read.endsAtTime() ? own(END, partition, LATEST) : version == null && atTime != null ? atTime.longValue() : LATEST;
        boolean isRange = pinned != null && pinned.isArray();
        if (version != null && end < 0) {
            // A partition that was made later had nothing to read at that version.
            end = pinned == null ? first : offset(topic, isRange ? (JsonNode) pinned.get(1) : pinned);
            if (end > last) throw error(topic, "partition " + partition.partition() + " ends at offset " + last + ", before " + end + ": it was made anew since, or another topic is meant");
            if (end < first) throw error(topic, "partition " + partition.partition() + " begins at offset " + first + ", after " + end + ": what was read has been removed since");
            if (atTime != null && atTime.longValue() < end) end = atTime.longValue();
        }
        if (isRange) {
            start = offset(topic, (JsonNode) pinned.get(0));
            if (start < first) throw error(topic, "partition " + partition.partition() + " begins at offset " + first + ", after " + start + ": a part of what was read has been removed since");
        }
        if (isRange) hasStart = true;
        else if (pinned != null || version == null) withoutStart = topic;
        put(starts, partition, start);
        put(ends, partition, end);
    }

    private long offset(String topic, JsonNode node) {
        if (node != null && node.isIntegralNumber() && node.asLong() >= 0) return node.asLong();
        throw error(topic, "a topic's version is an offset by partition");
    }

    /** The user's own offset in this partition. */
    private long own(String option, TopicPartition partition, long otherwise) {
        JsonNode all = read.offsets(option);
        JsonNode topic = all == null ? null : all.get(partition.topic());
        JsonNode found = topic == null ? null : topic.get(Integer.toString(partition.partition()));
        return found == null ? otherwise : found.asLong();
    }

    private static void put(ObjectNode offsets, TopicPartition partition, long offset) {
        JsonNode topic = offsets.get(partition.topic());
        ObjectNode of = topic == null ? offsets.putObject(partition.topic()) : (ObjectNode) topic;
        of.put(Integer.toString(partition.partition()), offset);
    }

    private LensError error(String topic, String why) {
        return new LensError("the lens '" + lens.name + "' can't read " + read.name(lens, topic) + " at " + read.pinOf(lens, topic) + ": " + why);
    }

    private static final class ByNumber implements Comparator {
        public int compare(Object one, Object other) {
            TopicPartition a = (TopicPartition) one;
            TopicPartition b = (TopicPartition) other;
            int topics = a.topic().compareTo(b.topic());
            return topics != 0 ? topics : a.partition() - b.partition();
        }
    }
}
