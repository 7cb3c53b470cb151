package headwater.lens;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.internal.SessionState;

/**
 * Consistent reads of an application: which versions belong together is asked by the thread that analyses a statement, and
 * answered by threads of Python, which come for the questions. Nobody calls into Python, and no lock is held while
 * somebody waits.
 */
public final class ConsistentReads {
    /** As many threads may wait for questions. */
    private static final int MOST_THREADS = 16;

    final SparkContext context;
    private final LinkedBlockingQueue waiting = new LinkedBlockingQueue();
    private final Map open = new ConcurrentHashMap();
    private final AtomicLong count = new AtomicLong();
    /** The extensions that sessions share of which one was made from another. */
    private final Map extended = Collections.synchronizedMap(new WeakHashMap());
    private final RecentAnswers recent = new RecentAnswers();
    private volatile boolean isClosed;

    public ConsistentReads(SparkContext context) {
        this.context = context;
    }

    /** Put the rule into a session, and have sessions that are made from it get theirs with their first statement. */
    public void install(Object session) throws Exception {
        ConsistentRelations.install(this, (SessionState) Leaves.call(session, "sessionState"));
        SparkSessionExtensions extensions = (SparkSessionExtensions) Leaves.call(session, "extensions");
        if (extended.put(extensions, Boolean.TRUE) == null) extensions.injectParser(new ConsistentParsers(this));
    }

    /** The next question, as lines: its number, and the tables. Null if there was none for so long. */
    public String take(int millis) throws InterruptedException {
        Question question = (Question) waiting.poll(millis, TimeUnit.MILLISECONDS);
        return question == null || !open.containsKey(question.id) ? null : question.id + "\n" + question.tables;
    }

    /** An answer to a question of which somebody may still wait for it. */
    public void answer(String id, String text) {
        Question question = (Question) open.remove(id);
        if (question == null) return;
        question.answer = text;
        question.answered.countDown();
    }

    /** Sessions read as if this had never been, and nobody waits for a question any more. */
    public void close() {
        isClosed = true;
        for (int i = 0; i < MOST_THREADS; i++) waiting.add(new Question("", ""));
    }

    boolean isClosed() {
        return isClosed;
    }

    /** What was answered to these tables, unless that is older than this; null if it is. */
    ConsistentAnswer recent(String tables, long maxAgeMillis) {
        return recent.get(tables, maxAgeMillis);
    }

    /** What Python answers to these tables, a line each; null if it doesn't in this time. */
    ConsistentAnswer ask(String tables, long millis) throws InterruptedException {
        long asked = System.nanoTime();
        String text = askPython(tables, millis);
        if (text == null) return null;
        ConsistentAnswer answer = ConsistentAnswer.parse(text);
        if (answer.reasons.isEmpty()) recent.put(tables, text, asked);
        return answer;
    }

    private String askPython(String tables, long millis) throws InterruptedException {
        Question question = new Question(Long.toString(count.incrementAndGet()), tables);
        open.put(question.id, question);
        try {
            waiting.add(question);
            return question.answered.await(millis, TimeUnit.MILLISECONDS) ? question.answer : null;
        } finally {
            open.remove(question.id);
        }
    }

    private static final class Question {
        final String id;
        final String tables;
        final CountDownLatch answered = new CountDownLatch(1);
        volatile String answer;

        Question(String id, String tables) {
            this.id = id;
            this.tables = tables;
        }
    }
}
