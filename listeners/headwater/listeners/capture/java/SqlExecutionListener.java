package headwater.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogEvent;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/**
 * Listens on a queue of its own, lets through what matters, and turns it into texts on a thread of its own.
 *
 * Plans are held only until that thread has read them; how many may wait is bounded by number and by weight, and so are
 * the texts that wait to be taken. What finds no room is counted, and reported in its place among the texts. A statement of
 * which a part found no room is dropped whole: half of what it did would be reported for all of it.
 */
public final class SqlExecutionListener extends SparkListener {
    /** A job tag: what carries it isn't the job's doing, and isn't recorded. */
    public static final String OWN = "headwater-own";
    private static final String QUEUE = "headwater";

    private final SparkContext context;
    private final StatementWriter writer;
    /** Plans, and now and then what is recorded of a query's life, which always finds room. */
    private final LinkedBlockingQueue waiting = new LinkedBlockingQueue();
    private final int mostPlans;
    private final long mostWeight;
    private final AtomicInteger plans = new AtomicInteger();
    private final AtomicLong weight = new AtomicLong();
    private final ServerClients clients = new ServerClients();
    private final StreamCapture streams;
    private final ExecutionTracker running;
    private final RecordQueue texts;
    private final RddJobs jobs;
    private final boolean reads;
    private final AtomicLong offered = new AtomicLong();
    private final AtomicLong finished = new AtomicLong();
    /** What Spark reported before we were there, in its order; null when all of it is read. The bus's thread reads it. */
    private Queue early;
    private final com.codahale.metrics.Counter droppedBySpark;
    private long lost;
    private long failures;
    private volatile Set ignored = new HashSet();
    /** Whether a text got lost, with what it reported once only. */
    private volatile boolean hasLostText;
    private volatile boolean stopped;
    private Thread reader;

    public SqlExecutionListener(SparkContext context, FormatExtractor[] extractors, StreamCapture streams, boolean reads, boolean sql, int mostPlans, long mostWeight, int mostTexts, long mostBytes) {
        this.context = context;
        this.streams = streams;
        this.running = new ExecutionTracker(streams);
        this.reads = reads;
        this.mostPlans = mostPlans;
        this.mostWeight = mostWeight;
        this.texts = new RecordQueue(mostTexts, mostBytes);
        this.jobs = new RddJobs(context, running);
        this.writer = new StatementWriter(extractors, streams, sql);
        RddSources.setExtractors(extractors);
        this.droppedBySpark = context.listenerBus().metrics().metricRegistry().counter("queue." + QUEUE + ".numDroppedEvents");
        this.lost = droppedBySpark.getCount();
        this.failures = failures();
    }

    /** Of what is written: docs/capture-records.md. Python's half says the same in `records.VERSION`. */
    public static int recordVersion() { return 1; }

    /** Commands that are nobody's lineage: they aren't read at all. */
    public void ignore(String names) { ignored = new HashSet(lines(names)); }

    public void addLibraries(String packages) { jobs.addLibraries(lines(packages)); }

    public void setTableLogs(String directories) { RddSources.setTableLogs(lines(directories)); }

    private static List lines(String text) { return text.isEmpty() ? new ArrayList() : Arrays.asList(text.split("\n")); }

    /**
     * Before this is registered: what EarlyEvents keeps is read first. `last` is the execution that had begun last when it
     * was registered, and `lost` how many events Spark's queue had dropped. The two may be registered at the same time.
     */
    public void readFirst(Queue early, long last, long lost) {
        this.early = early;
        this.lost = lost;
        running.listenedSince(last);
    }

    /** Nothing is kept for us any more: what is left is read at the next event, which this is. */
    public void endEarly() throws Exception { post(new EarlyEnd()); }

    public void start() {
        reader = new Thread(null, new Runnable() { public void run() { readLoop(); } }, "headwater-reader", 256L << 20);
        reader.setDaemon(true);
        reader.start();
        CommitRecorder.setListener(this);
    }

    public void stop() {
        stopped = true;
        CommitRecorder.setListener(null);
        if (reader != null) reader.interrupt();
        waiting.clear();
        texts.clear();
        running.clear();
        streams.clear();
    }

    /** Whoever takes doesn't have the plans of these digests any more, or has lost what came last: `*`. */
    public void forget(String digests) {
        if (digests.equals("*")) hasLostText = true;
        texts.forget(digests);
    }

    /** Up to so many texts, a line each; null if there was none in that time. */
    public String take(int most, long millis) throws InterruptedException {
        reportLost();
        return texts.take(most, millis);
    }

    /** What Spark itself had no room for, events of all kinds, and what went wrong that no text tells. */
    synchronized void reportLost() {
        long now = droppedBySpark.getCount();
        if (now > lost) texts.mark(new Json().open().entry("kind", "lost").entry("count", now - lost).close().toString());
        lost = now;
        List unreported = CaughtErrors.takeUnreported();
        List unlogged = CaughtErrors.takeUnlogged();
        now = failures();
        if (now > failures || !unlogged.isEmpty()) texts.mark(failed(now - failures, unreported, unlogged));
        failures = now;
    }

    private static String failed(long count, List unreported, List unlogged) {
        Json json = new Json().open().entry("kind", "failed").entry("count", count);
        list("caught", unreported, json);
        list("firsts", unlogged, json);
        return json.close().toString();
    }

    private static void list(String name, List objects, Json json) {
        if (objects.isEmpty()) return;
        json.key(name).openList();
        for (int i = 0; i < objects.size(); i++) json.raw((String) objects.get(i));
        json.closeList();
    }

    /**
     * True once everything that was posted to the bus before this call has become a text, within that time; a text
     * `{"kind":"mark","token":…}` stands behind it then.
     */
    public boolean settle(String token, long millis) throws Exception {
        long deadline = System.nanoTime() + millis * 1000000L;
        boolean done = isRead(deadline);
        outsideExecution();
        reportLost();
        texts.mark(new Json().open().entry("kind", "mark").entry("token", token).close().toString());
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
        while (events.remainingCapacity() < 10) {  // a mark that finds no room would count as an event that was lost
            if (System.nanoTime() > deadline) return -1;
            Thread.sleep(1);
        }
        QueueMark mark = new QueueMark();
        post(queue, mark);
        return mark.await(deadline);
    }

    /** What only we receive, behind all that was posted before. Never waits: what finds no room is counted by Spark. */
    void post(SparkListenerEvent event) throws Exception {
        Object queue = ownQueue();
        if (queue != null) post(queue, event);
    }

    private static void post(Object queue, SparkListenerEvent event) throws Exception {
        java.lang.reflect.Method post = queue.getClass().getMethod("post", new Class[] {SparkListenerEvent.class});
        post.setAccessible(true);
        post.invoke(queue, new Object[] {event});
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
        java.util.Iterator queues = ((List) LazyFields.value(bus, "queues")).iterator();
        while (queues.hasNext()) {
            Object queue = queues.next();
            if (QUEUE.equals(LazyFields.value(queue, "name"))) return queue;
        }
        return null;
    }

    public void onJobEnd(SparkListenerJobEnd end) { receive(end); }

    public void onJobStart(SparkListenerJobStart job) { receive(job); }

    public void onTaskEnd(SparkListenerTaskEnd end) {
        if (end.taskInfo() == null || !end.taskInfo().successful()) receive(end);
    }

    public void onOtherEvent(SparkListenerEvent event) { receive(event); }

    /** An event that both of us get is the last one that was kept for us so far. */
    private void receive(SparkListenerEvent event) {
        while (early != null && !stopped) {
            Object[] kept = (Object[]) early.poll();
            if (kept == null && event instanceof EarlyEnd) early = null;
            if (kept == null) break;
            if (kept[0] != event) receive((SparkListenerEvent) kept[0], kept[1], true);
        }
        receive(event, null, false);
    }

    /** `beside` is what EarlyEvents kept with it. */
    private void receive(SparkListenerEvent event, Object beside, boolean isLate) {
        if (event instanceof SparkListenerJobStart) started((SparkListenerJobStart) event, beside);
        else if (event instanceof SparkListenerJobEnd) ended((SparkListenerJobEnd) event);
        else if (event instanceof SparkListenerTaskEnd) ended((SparkListenerTaskEnd) event);
        else other(event, beside, isLate);
    }

    private void ended(SparkListenerJobEnd end) {
        try {
            if (!stopped) jobs.ended(end);
        } catch (Throwable e) {
            CaughtErrors.report("SqlExecutionListener.onJobEnd", e);
        }
    }

    private void ended(SparkListenerTaskEnd end) {
        try {
            if (!stopped) jobs.failed(end.stageId());
        } catch (Throwable e) {
            CaughtErrors.report("SqlExecutionListener.onTaskEnd", e);
        }
    }

    private void other(SparkListenerEvent event, Object beside, boolean isLate) {
        if (stopped) return;
        try {
            if (event instanceof SparkListenerSQLExecutionStart) started((SparkListenerSQLExecutionStart) event, (QueryExecution) beside);
            else if (event instanceof SparkListenerSQLExecutionEnd) ended((SparkListenerSQLExecutionEnd) event, isLate);
            else if (event instanceof ProcedureCall) called((ProcedureCall) event);
            else if (event instanceof QueueMark) ((QueueMark) event).arrived(offered.get());
            else if (event instanceof ExternalCatalogEvent && (isLate || !CatalogHook.attached())) CatalogHook.receive((ExternalCatalogEvent) event, running.statements());
            else if (ServerClients.isClientEvent(event)) later(clients.receive(event));
            else if (event instanceof StreamingQueryListener.Event) streaming((StreamingQueryListener.Event) event, beside);
        } catch (Throwable e) {
            CaughtErrors.report("SqlExecutionListener.onOtherEvent", e);
        }
    }

    private void started(SparkListenerJobStart job, Object stage) {
        try {
            if (!stopped) clients.begin(job);
            if (!stopped) jobs.started(job, stage);
        } catch (Throwable e) {
            CaughtErrors.report("SqlExecutionListener.onJobStart", e);
        }
    }

    /** To be reported behind what waits to be read. */
    private void later(String text) {
        if (text == null) return;
        waiting.add(text);
        offered.incrementAndGet();
    }

    private void started(SparkListenerSQLExecutionStart start, QueryExecution kept) throws Exception {
        QueryExecution query = kept != null ? kept : SQLExecution.getQueryExecution(start.executionId());
        TrackedExecution whole = running.started(start, query);
        if (whole.statement.id != start.executionId()) return;
        clients.begin(whole.statement, start);
        if (whole.statement.stream != null) announce(whole.statement.stream, whole.statement, query);
    }

    /** That a query runs is reported with its first micro-batch, or when it is sure that none comes: that says where it starts. */
    private void announce(final StreamQuery stream, final Statement first, final QueryExecution query) {
        if (stream == null || stream.isAnnounced) return;
        stream.isAnnounced = true;
        later(new Runnable() { public void run() { texts.mark(streams.started(stream, first, query)); } });
    }

    private void streaming(StreamingQueryListener.Event event, Object running) {
        if (event instanceof StreamingQueryListener.QueryStartedEvent) {
            StreamingQueryListener.QueryStartedEvent begun = (StreamingQueryListener.QueryStartedEvent) event;
            streams.at(begun.id(), begun.runId(), running);
        } else if (event instanceof StreamingQueryListener.QueryTerminatedEvent) {
            final StreamingQueryListener.QueryTerminatedEvent end = (StreamingQueryListener.QueryTerminatedEvent) event;
            announce(streams.ended(end.runId()), null, null);
            later(new Runnable() { public void run() { ended(end); } });
        } else {
            announce(streams.of(event), null, null);
        }
    }

    private void ended(StreamingQueryListener.QueryTerminatedEvent end) {
        String text = streams.ended(end);
        if (text != null) texts.mark(text);
    }

    private void called(final ProcedureCall called) {
        later(new Runnable() { public void run() { finish(called); } });
    }

    private void later(Runnable task) {
        waiting.add(task);
        offered.incrementAndGet();
    }

    private void ended(SparkListenerSQLExecutionEnd end, boolean isLate) {
        TrackedExecution known = running.ended(end.executionId());
        if (known != null && known.statement.id == end.executionId()) known.statement.isReadLate = isLate;
        if (known != null && known.statement.id == end.executionId() && StreamQuery.isExecution(end.qe())) {
            running.adopt(known.statement, end.qe());
            announce(known.statement.stream, known.statement, end.qe());
        }
        boolean isFailed = (known == null || !known.isBegun) && isFailedPlanning(end);
        if (known == null && isFailed) known = new TrackedExecution(new Statement(end.executionId()), false);
        if (isFailed && matters(end, known.statement)) clients.failing(known.statement, end);
        boolean isRoot = known == null || known.statement.id == end.executionId();
        if (known != null && isRoot && known.batch == null) known.readsOf(running.batchReadBy(end.qe()));
        if (known != null && (known.batch != null || known.beside != null)) endedWithin(end, known);
        else if (known == null || isRoot && !known.isBegun && !isFailed) unknown(end, known);
        else if (!isRoot) known.isPartial |= end.qe() != null && !known.isOwn && !offer(end, known, null);
        else if (known.isOwn || !matters(end, known.statement)) running.close(known);
        else if (known.isPartial || !offer(end, known, null)) drop(known);
    }

    /**
     * In a micro-batch that a user's function gets, or in a root that had ended before: a statement, or a part of the one
     * that was running when it began.
     */
    private void endedWithin(SparkListenerSQLExecutionEnd end, TrackedExecution known) {
        TrackedExecution outer = known.outer;
        boolean isPart = outer != null && !outer.isOver && (outer.isComposite || !StatementWriter.isCommand(end.qe()));
        if (end.qe() == null || known.isOwn) {
            running.close(known);
        } else if (isPart) {
            running.merge(known, outer);
            outer.isPartial |= known.isPartial || !offer(end, outer, known.statement);
        } else if (!matters(end, known.statement)) {
            running.close(known);
        } else if (known.isPartial || !offer(end, known, null)) {
            if (known.batch == null) drop(known);
            else known.batch.isPartial = true;
        }
    }

    /** The one kind of end that has no start: a start is posted when the plan is there. */
    private static boolean isFailedPlanning(SparkListenerSQLExecutionEnd end) {
        try {
            return end.qe() != null && LazyFields.value(end.qe(), "executedPlan") == null;
        } catch (Exception e) {
            return false;
        }
    }

    /** What began before we listened, or whose start was lost: nobody knows whose it is, or what it is part of. */
    private void unknown(SparkListenerSQLExecutionEnd end, TrackedExecution known) {
        TrackedExecution lost = known == null ? new TrackedExecution(new Statement(end.executionId()), false) : known;
        running.close(lost);
        if (matters(end, lost.statement))
            texts.add(StatementWriter.unreadable(lost.statement, end, "its start wasn't seen"));
    }

    private boolean matters(SparkListenerSQLExecutionEnd end, Statement statement) {
        return end.qe() != null && StatementWriter.matters(end, statement, reads, ignored);
    }

    private void drop(TrackedExecution known) {
        hasLostText = true;
        texts.dropped();
        running.close(known);
    }

    /** `part` is what the plan was thought to be until it ended: a statement in a micro-batch. */
    private boolean offer(SparkListenerSQLExecutionEnd end, TrackedExecution known, Statement part) {
        long itsWeight = PlanWeight.of(end.qe());
        boolean fits = weight.addAndGet(itsWeight) <= mostWeight || weight.get() == itsWeight;
        if (fits && plans.incrementAndGet() <= mostPlans) {
            waiting.add(new Object[] {end, known, part, Long.valueOf(itsWeight)});
            offered.incrementAndGet();
            return true;
        }
        if (fits) plans.decrementAndGet();
        weight.addAndGet(-itsWeight);
        return false;
    }

    private void readLoop() {
        while (!stopped) {
            Object entry;
            try {
                entry = waiting.poll(1, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                continue;
            }
            if (entry == null) {
                outsideExecution();
                continue;
            }
            if (entry instanceof Object[]) plans.decrementAndGet();
            try {
                if (entry instanceof String) texts.add((String) entry);
                else if (entry instanceof Runnable) ((Runnable) entry).run();
                else read((Object[]) entry);
            } catch (Throwable e) {
                CaughtErrors.report("SqlExecutionListener.readLoop", e);
            } finally {
                CaughtErrors.readsNothing();
                if (entry instanceof Object[]) weight.addAndGet(-((Long) ((Object[]) entry)[3]).longValue());
                finished.incrementAndGet();
            }
        }
    }

    private void read(Object[] entry) {
        SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) entry[0];
        TrackedExecution known = (TrackedExecution) entry[1];
        CaughtErrors.reads(known.statement);
        if (entry[2] != null) known.statement.take((Statement) entry[2]);
        if (known.statement.id != end.executionId()) writer.nested(known.statement, end);
        else if (known.batch != null) within(end, known);
        else if (texts.isFull()) drop(known);
        else finish(end, known);
    }

    private void within(SparkListenerSQLExecutionEnd end, TrackedExecution known) {
        String text = text(end, known.statement);
        running.close(known);
        if (text == null) return;
        known.batch.statement.parts.add(text);
        known.batch.statement.shapes.putAll(known.statement.shapes);
    }

    private void finish(SparkListenerSQLExecutionEnd end, TrackedExecution known) {
        String text = text(end, known.statement);
        running.close(known);
        if (text != null) add(text, known.statement);
    }

    private void finish(ProcedureCall called) {
        String text;
        CaughtErrors.reads(called.statement);
        try {
            forgetLost();
            text = writer.write(called.statement, called);
        } catch (Throwable e) {
            hasLostText = true;
            text = StatementWriter.unreadable(called.statement, null, CaughtErrors.text("SqlExecutionListener.finish", e));
        }
        CommitRecorder.take(Long.toString(called.statement.id));
        add(text, called.statement);
    }

    private void add(String text, Statement statement) {
        if (!texts.add(text, statement.shapes)) hasLostText = true;
    }

    private String text(SparkListenerSQLExecutionEnd end, Statement statement) {
        try {
            forgetLost();
            return writer.write(statement, end, reads, ignored);
        } catch (Throwable e) {
            boolean isLarge = e instanceof PlanWriter.TooLarge;
            if (!isLarge) hasLostText = true;
            return StatementWriter.unreadable(statement, end, isLarge ? "its plan is too large" : CaughtErrors.text("SqlExecutionListener.text", e));
        }
    }

    private void forgetLost() {
        if (!hasLostText) return;
        hasLostText = false;
        writer.forget();
    }

    /** Commits that were made outside of any execution. */
    private void outsideExecution() {
        List facts = CommitRecorder.take("");
        for (int i = 0; i < facts.size(); i++) texts.add("{\"kind\":\"outsideStatement\",\"fact\":" + facts.get(i) + "}");
    }

    private static long failures() { return CaughtErrors.count() + CommitRecorder.DROPPED.get(); }
}
