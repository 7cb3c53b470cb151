package headwater.capture;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogEvent;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Listens on a queue of its own, lets through what matters, and turns it into texts on a thread of its own.
 *
 * Plans are held only until that thread has read them; how many may wait is bounded by number and by weight, and so are
 * the texts that wait to be taken. What finds no room is counted, and told in its place among the texts. A statement of
 * which a part found no room is dropped whole: half of what it did would be told for all of it.
 */
public final class Tap extends SparkListener {
    /** A job tag: what carries it isn't the job's doing, and isn't told. */
    public static final String OWN = "headwater-own";
    private static final String QUEUE = "headwater";
    private static final int SHAPES = 1000;
    private static final int MOST_STATEMENTS = 10000;
    private static final int LONGEST_DESCRIPTION = 1000;

    private final SparkContext context;
    private final StatementWriter writer;
    private final LinkedBlockingQueue waiting;
    private final long mostWeight;
    private final AtomicLong weight = new AtomicLong();
    /** By execution: the statement it is, or is part of. */
    private final Map open = new LinkedHashMap();
    private final Clients clients = new Clients();
    private final Texts texts;
    private final boolean reads;
    private final AtomicLong offered = new AtomicLong();
    private final AtomicLong finished = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final com.codahale.metrics.Counter droppedBySpark;
    private long lost;
    private long failures;
    private volatile Set ignored = new HashSet();
    private volatile boolean stopped;
    private Thread reader;

    public Tap(SparkContext context, Eye[] eyes, boolean reads, boolean sql, int mostPlans, long mostWeight, int mostTexts, long mostBytes) {
        this.context = context;
        this.reads = reads;
        this.waiting = new LinkedBlockingQueue(mostPlans);
        this.mostWeight = mostWeight;
        this.texts = new Texts(mostTexts, mostBytes);
        this.writer = new StatementWriter(eyes, sql, SHAPES);
        this.droppedBySpark = context.listenerBus().metrics().metricRegistry().counter("queue." + QUEUE + ".numDroppedEvents");
        this.lost = droppedBySpark.getCount();
        this.failures = failures();
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
        synchronized (open) {
            open.clear();
        }
    }

    /** Up to so many texts, a line each; null if there was none in that time. */
    public String take(int most, long millis) throws InterruptedException {
        tellLost();
        return texts.take(most, millis);
    }

    /** What Spark itself had no room for, events of all kinds, and what went wrong that no text tells. */
    private synchronized void tellLost() {
        long now = droppedBySpark.getCount();
        if (now > lost) texts.mark(new Json().open().entry("kind", "lost").entry("count", now - lost).close().toString());
        lost = now;
        now = failures();
        if (now > failures) texts.mark(new Json().open().entry("kind", "failed").entry("count", now - failures).close().toString());
        failures = now;
    }

    /**
     * True once everything that was posted to the bus before this call has become a text, within that time; a text
     * `{"kind":"mark","token":…}` stands behind it then.
     */
    public boolean settle(String token, long millis) throws Exception {
        long deadline = System.nanoTime() + millis * 1000000L;
        boolean done = isRead(deadline);
        loose();
        tellLost();
        texts.mark(new Json().open().entry("kind", "mark").entry("token", token).entry("settled", done).close().toString());
        return done;
    }

    private boolean isRead(long deadline) throws Exception {
        long goal = arrived(deadline);
        while (goal >= 0 && finished.get() < goal && System.nanoTime() < deadline) Thread.sleep(1);
        return goal >= 0 && finished.get() >= goal;
    }

    /** How many plans had been offered when a mark came through our queue: others may hang in somebody's listener. */
    private long arrived(long deadline) throws Exception {
        Object queue = ownQueue();
        if (queue == null) return offered.get();
        BlockingQueue events = events(queue);
        java.lang.reflect.Method post = queue.getClass().getMethod("post", new Class[] {SparkListenerEvent.class});
        post.setAccessible(true);
        while (events.remainingCapacity() < 10) {  // a mark that finds no room would count as an event that was lost
            if (System.nanoTime() > deadline) return -1;
            Thread.sleep(1);
        }
        Mark mark = new Mark();
        post.invoke(queue, new Object[] {mark});
        return mark.await(deadline);
    }

    /** Its name isn't the same in all versions of Scala. */
    private static BlockingQueue events(Object queue) throws Exception {
        java.lang.reflect.Field[] fields = queue.getClass().getDeclaredFields();
        for (int i = 0; i < fields.length; i++) {
            fields[i].setAccessible(true);
            Object found = fields[i].get(queue);
            if (found instanceof BlockingQueue) return (BlockingQueue) found;
        }
        throw new IllegalStateException("Spark's queue holds its events in an unknown way");
    }

    private Object ownQueue() throws Exception {
        Object bus = context.listenerBus();
        java.util.Iterator queues = ((List) Lazily.field(bus.getClass(), "queues").get(bus)).iterator();
        while (queues.hasNext()) {
            Object queue = queues.next();
            if (QUEUE.equals(Lazily.field(queue.getClass(), "name").get(queue))) return queue;
        }
        return null;
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (stopped) return;
        try {
            if (event instanceof SparkListenerSQLExecutionStart) started((SparkListenerSQLExecutionStart) event);
            else if (event instanceof SparkListenerSQLExecutionEnd) ended((SparkListenerSQLExecutionEnd) event);
            else if (event instanceof Mark) ((Mark) event).arrived(offered.get());
            else if (event instanceof ExternalCatalogEvent && !CatalogHook.attached()) heard((ExternalCatalogEvent) event);
            else if (Clients.tell(event)) later(clients.heard(event));
        } catch (Throwable e) {
            failed.incrementAndGet();
        }
    }

    public void onJobStart(SparkListenerJobStart job) {
        try {
            if (!stopped) clients.begin(job);
        } catch (Throwable e) {
            failed.incrementAndGet();
        }
    }

    /** To be told behind what waits to be read. */
    private void later(String text) {
        if (text == null) return;
        if (waiting.offer(new Object[] {text, null, Long.valueOf(0)})) offered.incrementAndGet();
        else failed.incrementAndGet();
    }

    /** Until the hook of Spark's own catalog is there. */
    private void heard(ExternalCatalogEvent event) {
        Set statements = new HashSet();
        synchronized (open) {
            java.util.Iterator each = open.values().iterator();
            while (each.hasNext()) statements.add(((Open) each.next()).statement);
            statements.remove(null);
        }
        CatalogHook.heard(event, statements);
    }

    /** Of a start only this is kept: its plan's description may be long. */
    private void started(SparkListenerSQLExecutionStart start) throws Exception {
        Long id = Long.valueOf(start.executionId());
        Number root = (Number) Options.get(start.rootExecutionId());
        boolean isOwn = start.jobTags().contains(OWN);
        synchronized (open) {
            Open statement = opened(root == null ? id : Long.valueOf(root.longValue()), isOwn);
            if (root == null || root.longValue() == start.executionId()) {
                begin(statement.statement, start);
                statement.isBegun = true;
                clients.begin(statement.statement, start);
            } else {
                statement.statement.executions.add(id);
                open.put(id, statement);
            }
            if (open.size() > MOST_STATEMENTS) forgetEldest();
        }
    }

    /** A part may be seen first: what a builder of Delta's does ends before the whole is told to have started. */
    private Open opened(Long root, boolean isOwn) {
        Open known = (Open) open.get(root);
        if (known != null) return known;
        Open made = new Open(new Statement(root.longValue()), isOwn);
        open.put(root, made);
        return made;
    }

    private static void begin(Statement statement, SparkListenerSQLExecutionStart start) {
        String description = start.description();
        statement.started = start.time();
        statement.description = description.length() > LONGEST_DESCRIPTION ? description.substring(0, LONGEST_DESCRIPTION) : description;
        statement.confs = Values.javaMap(start.modifiedConfigs());
        scala.collection.Iterator tags = start.jobTags().iterator();
        while (tags.hasNext()) statement.tags.add(tags.next());
    }

    /** Its end was lost, or takes longer than so many others. */
    private void forgetEldest() {
        Long eldest = (Long) open.keySet().iterator().next();
        open.remove(eldest);
        Facts.take(eldest.toString());
    }

    private void ended(SparkListenerSQLExecutionEnd end) {
        Open known;
        synchronized (open) {
            known = (Open) open.remove(Long.valueOf(end.executionId()));
        }
        boolean isFailed = (known == null || !known.isBegun) && isFailedPlanning(end);
        if (isFailed) clients.failedUnseen((String) Options.get(end.errorMessage()));
        if (known == null && isFailed) known = new Open(new Statement(end.executionId()), false);
        boolean isRoot = known == null || known.statement.id == end.executionId();
        if (known == null || isRoot && !known.isBegun && !isFailed) unknown(end, known);
        else if (known.statement.id != end.executionId()) known.isPartial |= end.qe() != null && !known.isOwn && !offer(end, known);
        else if (known.isOwn || !matters(end, known.statement.executions.size())) close(known.statement);
        else if (known.isPartial || !offer(end, known)) drop(known.statement);
    }

    /** The one kind of end that has no start: a start is posted when the plan is there. */
    private static boolean isFailedPlanning(SparkListenerSQLExecutionEnd end) {
        try {
            return end.qe() != null && Lazily.value(end.qe(), "executedPlan") == null;
        } catch (Exception e) {
            return false;
        }
    }

    /** What began before we listened, or whose start was lost: nobody knows whose it is, or what it is part of. */
    private void unknown(SparkListenerSQLExecutionEnd end, Open known) {
        Statement statement = known == null ? new Statement(end.executionId()) : known.statement;
        close(statement);
        if (matters(end, statement.executions.size()))
            texts.add(StatementWriter.unreadable(statement, end, "its start wasn't seen"));
    }

    private boolean matters(SparkListenerSQLExecutionEnd end, int executions) {
        return end.qe() != null && StatementWriter.matters(end, executions, reads, ignored);
    }

    private void drop(Statement statement) {
        texts.dropped();
        close(statement);
    }

    private void close(Statement statement) {
        synchronized (open) {
            for (int i = 0; i < statement.executions.size(); i++) open.remove(statement.executions.get(i));
        }
        for (int i = 0; i < statement.executions.size(); i++) Facts.take(statement.executions.get(i).toString());
    }

    private boolean offer(SparkListenerSQLExecutionEnd end, Open known) {
        long itsWeight = Weights.of(end.qe());
        boolean fits = weight.addAndGet(itsWeight) <= mostWeight || weight.get() == itsWeight;
        if (fits && waiting.offer(new Object[] {end, known.statement, Long.valueOf(itsWeight)})) {
            offered.incrementAndGet();
            return true;
        }
        weight.addAndGet(-itsWeight);
        return false;
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
                if (entry[0] instanceof String) texts.add((String) entry[0]);
                else read((SparkListenerSQLExecutionEnd) entry[0], (Statement) entry[1]);
            } catch (Throwable e) {
                failed.incrementAndGet();
            } finally {
                weight.addAndGet(-((Long) entry[2]).longValue());
                finished.incrementAndGet();
            }
        }
    }

    private void read(SparkListenerSQLExecutionEnd end, Statement statement) {
        if (statement.id != end.executionId()) writer.nested(statement, end);
        else if (texts.isFull()) drop(statement);
        else finish(end, statement);
    }

    private void finish(SparkListenerSQLExecutionEnd end, Statement statement) {
        String text;
        try {
            text = writer.write(statement, end, reads, ignored);
        } catch (Throwable e) {
            boolean isLarge = e instanceof PlanWriter.TooLarge;
            text = StatementWriter.unreadable(statement, end, isLarge ? "its plan is too large" : e.toString());
            if (!isLarge) writer.forget();
        }
        close(statement);
        if (text != null && !texts.add(text)) writer.forget();
    }

    /** Commits that were made outside of any execution. */
    private void loose() {
        List facts = Facts.take("");
        for (int i = 0; i < facts.size(); i++) texts.add("{\"kind\":\"loose\",\"fact\":" + facts.get(i) + "}");
    }

    private long failures() { return failed.get() + Facts.FAILED.get() + Facts.DROPPED.get(); }

    /** A statement that has begun. */
    private static final class Open {
        final Statement statement;
        /** Not the job's doing. */
        final boolean isOwn;
        /** Its own start was seen, not only that of a part. */
        boolean isBegun;
        /** A part of it found no room. */
        boolean isPartial;

        Open(Statement statement, boolean isOwn) {
            this.statement = statement;
            this.isOwn = isOwn;
        }
    }
}
