package headwater.capture;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Listens on a queue of its own, lets through what matters, and turns it into texts on a thread of its own.
 *
 * Plans are held only until that thread has read them; how many may wait is bounded by number and by weight (the length
 * of the plan's description), and so are the texts that wait to be taken. What finds no room is counted, and told in
 * its place among the texts.
 */
public final class Tap extends SparkListener {
    private static final int SHAPES = 1000;
    private static final int MOST_STATEMENTS = 10000;
    private static final long BASE_WEIGHT = 2000;

    private final SparkContext context;
    private final StatementWriter writer;
    private final LinkedBlockingQueue waiting;
    private final long mostWeight;
    private final AtomicLong weight = new AtomicLong();
    private final Map statements = new LinkedHashMap();
    private final Map weights = new HashMap();
    private final Texts texts;
    private final boolean reads;
    private final AtomicLong pending = new AtomicLong();
    private volatile Set ignored = new HashSet();
    private volatile boolean stopped;
    private Thread reader;

    /** What was dropped before it was read, and what couldn't be read. */
    public final AtomicLong dropped = new AtomicLong();
    public final AtomicLong failed = new AtomicLong();

    public Tap(SparkContext context, Eye[] eyes, boolean reads, boolean sql, int mostPlans, long mostWeight, int mostTexts, long mostBytes) {
        this.context = context;
        this.reads = reads;
        this.waiting = new LinkedBlockingQueue(mostPlans);
        this.mostWeight = mostWeight;
        this.texts = new Texts(mostTexts, mostBytes);
        this.writer = new StatementWriter(eyes, sql, SHAPES);
    }

    /** Commands that are nobody's lineage: they aren't read at all. */
    public void ignore(List names) { ignored = new HashSet(names); }

    public void start() {
        reader = new Thread(null, new Runnable() { public void run() { readOn(); } }, "headwater-reader", 256L << 20);
        reader.setDaemon(true);
        reader.start();
    }

    public void stop() {
        stopped = true;
        if (reader != null) reader.interrupt();
        waiting.clear();
        texts.clear();
    }

    /** Up to so many texts, a line each; null if there was none in that time. */
    public String take(int most, long millis) throws InterruptedException { return texts.take(most, millis); }

    /**
     * True once everything that was posted to the bus before this call has become a text, within that time; a text
     * `{"kind":"mark","token":…}` stands behind it then.
     */
    public boolean settle(String token, long millis) throws Exception {
        long deadline = System.nanoTime() + millis * 1000000L;
        boolean done = queueIsEmpty(millis);
        while (done && pending.get() > 0) {
            done = System.nanoTime() < deadline;
            if (done) Thread.sleep(1);
        }
        loose();
        texts.mark(new Json().open().entry("kind", "mark").entry("token", token).entry("settled", done).close().toString());
        return done;
    }

    /** Only our own queue counts: others may hang in somebody's listener. */
    private boolean queueIsEmpty(long millis) throws Exception {
        Object bus = context.listenerBus();
        java.util.Iterator queues = ((java.util.List) Lazily.field(bus.getClass(), "queues").get(bus)).iterator();
        while (queues.hasNext()) {
            Object queue = queues.next();
            if (!"headwater".equals(Lazily.field(queue.getClass(), "name").get(queue))) continue;
            java.lang.reflect.Method wait = queue.getClass().getMethod("waitUntilEmpty", new Class[] {long.class});
            wait.setAccessible(true);
            return Boolean.TRUE.equals(wait.invoke(queue, new Object[] {Long.valueOf(System.currentTimeMillis() + millis)}));
        }
        return true;
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (stopped) return;
        try {
            if (event instanceof SparkListenerSQLExecutionStart) offer(event, weigh((SparkListenerSQLExecutionStart) event), false);
            else if (event instanceof SparkListenerSQLExecutionEnd) ended((SparkListenerSQLExecutionEnd) event);
        } catch (Throwable e) {
            failed.incrementAndGet();
        }
    }

    /** A start is kept without its plan's description, which may be long. */
    private long weigh(SparkListenerSQLExecutionStart start) {
        String text = start.physicalPlanDescription();
        synchronized (weights) {
            if (weights.size() < MOST_STATEMENTS) weights.put(Long.valueOf(start.executionId()), Long.valueOf(text == null ? 0 : text.length()));
        }
        return 0;
    }

    private void ended(SparkListenerSQLExecutionEnd end) {
        Long plan;
        synchronized (weights) {
            plan = (Long) weights.remove(Long.valueOf(end.executionId()));
        }
        offer(end, BASE_WEIGHT + (plan == null ? 0 : plan.longValue()), matters(end));
    }

    private boolean matters(SparkListenerSQLExecutionEnd end) {
        return reads || end.qe() == null || StatementWriter.isCommand(end.qe()) || StatementWriter.keepsRows(end);
    }

    private void offer(Object event, long itsWeight, boolean matters) {
        Object[] entry = new Object[] {event, Long.valueOf(itsWeight)};
        pending.incrementAndGet();
        boolean fits = weight.addAndGet(itsWeight) <= mostWeight || weight.get() == itsWeight;
        if (fits && waiting.offer(entry)) return;
        weight.addAndGet(-itsWeight);
        pending.decrementAndGet();
        if (matters) {
            dropped.incrementAndGet();
            texts.dropped();
        }
    }

    private void readOn() {
        while (!stopped) {
            Object[] entry;
            try {
                entry = (Object[]) waiting.poll(1, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                continue;
            }
            if (entry == null) {
                loose();
                continue;
            }
            try {
                read(entry[0]);
            } catch (Throwable e) {
                failed.incrementAndGet();
            } finally {
                weight.addAndGet(-((Long) entry[1]).longValue());
                pending.decrementAndGet();
            }
        }
    }

    private void read(Object event) {
        if (event instanceof SparkListenerSQLExecutionStart) begin((SparkListenerSQLExecutionStart) event);
        else finish((SparkListenerSQLExecutionEnd) event);
    }

    private void begin(SparkListenerSQLExecutionStart start) {
        Object root = Options.get(start.rootExecutionId());
        Statement statement = statement(root == null ? start.executionId() : ((Number) root).longValue());
        Long id = Long.valueOf(start.executionId());
        if (start.executionId() != statement.id) {
            statement.executions.add(id);
            statements.put(id, statement);
            return;
        }
        statement.started = start.time();
        statement.description = start.description();
        statement.confs = Values.javaMap(start.modifiedConfigs());
        scala.collection.Iterator tags = start.jobTags().iterator();
        while (tags.hasNext()) statement.tags.add(tags.next());
    }

    private Statement statement(long id) {
        Statement known = (Statement) statements.get(Long.valueOf(id));
        if (known != null) return known;
        Statement made = new Statement(id);
        statements.put(Long.valueOf(id), made);
        if (statements.size() > MOST_STATEMENTS) statements.remove(statements.keySet().iterator().next());
        return made;
    }

    private void finish(SparkListenerSQLExecutionEnd end) {
        Statement statement = statement(end.executionId());
        if (statement.id != end.executionId()) {
            if (end.qe() != null) writer.nested(statement, end);
            statements.remove(Long.valueOf(end.executionId()));
            return;
        }
        for (int i = 0; i < statement.executions.size(); i++) statements.remove(statement.executions.get(i));
        String text;
        try {
            text = writer.write(statement, end, reads, ignored);
        } catch (Throwable e) {
            failed.incrementAndGet();
            text = StatementWriter.unreadable(statement, end, e);
        }
        for (int i = 0; i < statement.executions.size(); i++) Facts.take(statement.executions.get(i).toString());
        if (text != null && !texts.add(text)) writer.forget();
    }

    /** Commits that were made outside of any execution. */
    private void loose() {
        List facts = Facts.take("");
        for (int i = 0; i < facts.size(); i++) texts.add("{\"kind\":\"loose\",\"fact\":" + facts.get(i) + "}");
    }

    public long failures() { return failed.get() + Facts.FAILED.get() + Facts.DROPPED.get(); }

    /** How many events Spark itself dropped for this listener's queue. */
    public long droppedBySpark() {
        return context.listenerBus().metrics().metricRegistry().counter("queue.headwater.numDroppedEvents").getCount();
    }

    /** Texts that wait, bounded by their length. */
    private static final class Texts {
        private final ArrayDeque queue = new ArrayDeque();
        private final int mostTexts;
        private final long most;
        private long held;
        private long missing;
        private long missingSince;

        Texts(int mostTexts, long most) {
            this.mostTexts = mostTexts;
            this.most = most;
        }

        synchronized boolean add(String text) {
            if (!queue.isEmpty() && (held + 2L * text.length() > most || queue.size() >= mostTexts)) {
                dropped();
                return false;
            }
            tellMissing();
            held += 2L * text.length();
            queue.add(text);
            notifyAll();
            return true;
        }

        /** What has to arrive, however full it is. */
        synchronized void mark(String text) {
            tellMissing();
            held += 2L * text.length();
            queue.add(text);
            notifyAll();
        }

        synchronized void dropped() {
            if (missing++ == 0) missingSince = System.currentTimeMillis();
            notifyAll();
        }

        private void tellMissing() {
            if (missing == 0) return;
            long now = System.currentTimeMillis();
            String text = new Json().open().entry("kind", "dropped").entry("count", missing).entry("from", missingSince).entry("to", now).close().toString();
            held += 2L * text.length();
            queue.add(text);
            missing = 0;
        }

        synchronized String take(int mostTexts, long millis) throws InterruptedException {
            if (queue.isEmpty()) tellMissing();
            if (queue.isEmpty() && millis > 0) wait(millis);
            if (queue.isEmpty()) tellMissing();
            if (queue.isEmpty()) return null;
            StringBuilder lines = new StringBuilder();
            for (int i = 0; i < mostTexts && !queue.isEmpty(); i++) {
                String text = (String) queue.poll();
                held -= 2L * text.length();
                lines.append(text).append('\n');
            }
            return lines.toString();
        }

        synchronized void clear() { queue.clear(); }
    }
}
