package headwater.capture;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

public final class RecordQueueTest {
    private final RecordQueue queue = new RecordQueue(3, 1000);

    public void testOrder() throws Exception {
        Tests.isTrue("there is room", queue.add("{1}") && queue.add("{2}"));
        Tests.equal("{1}\n", queue.take(1, 0));
        Tests.equal("{2}\n", queue.take(9, 0));
        Tests.equal(null, queue.take(9, 0));
    }

    /** What finds no room is counted, and stands where it would have stood. */
    public void testTooMany() throws Exception {
        for (int i = 0; i < 3; i++) queue.add("{" + i + "}");
        Tests.isTrue("it is full", queue.isFull());
        Tests.isTrue("there is no room", !queue.add("{3}") && !queue.add("{4}"));
        Tests.equal("{0}\n{1}\n", queue.take(2, 0));
        queue.add("{5}");
        String[] lines = queue.take(9, 0).split("\n");
        Tests.equal("{2}", lines[0]);
        Tests.isTrue(lines[1], lines[1].startsWith("{\"kind\":\"dropped\",\"count\":2,"));
        Tests.equal("{5}", lines[2]);
    }

    /** If nothing comes any more, it is reported all the same. */
    public void testMissingIsReportedInTheEnd() throws Exception {
        queue.dropped();
        String line = queue.take(9, 0);
        Tests.isTrue(line, line.startsWith("{\"kind\":\"dropped\",\"count\":1,"));
        Tests.equal(null, queue.take(9, 0));
    }

    public void testTooLong() throws Exception {
        queue.add(text(300));
        Tests.isTrue("two of 300 characters have more than 1,000 bytes", !queue.add(text(300)));
        queue.clear();
        Tests.isTrue("one by itself may be longer than all that is allowed", queue.add(text(2000)));
    }

    /** What Spark's stop waits for arrives however full it is. */
    public void testMark() throws Exception {
        for (int i = 0; i < 3; i++) queue.add("{" + i + "}");
        queue.mark("{m}");
        Tests.isTrue("it is the last", queue.take(9, 0).endsWith("{m}\n"));
    }

    /** A plan comes with the first text that needs it, and again when whoever takes forgot it. */
    public void testPlans() throws Exception {
        queue.add("{\"n\":1}", plans("d", "{}"));
        queue.add("{\"n\":2}", plans("d", "{}"));
        Tests.equal("{\"n\":1,\"plans\":{\"d\":{}}}\n{\"n\":2}\n", queue.take(9, 0));
        queue.add("{\"n\":3}", plans("d", "{}"));
        queue.forget("c,d");
        Tests.equal("{\"n\":3,\"plans\":{\"d\":{}}}\n", queue.take(9, 0));
        queue.add("{\"n\":4}", plans("d", "{}"));
        Tests.equal("{\"n\":4}\n", queue.take(9, 0));
        queue.forget("*");
        queue.add("{\"n\":5}", plans("d", "{}"));
        Tests.equal("{\"n\":5,\"plans\":{\"d\":{}}}\n", queue.take(9, 0));
    }

    /** A plan that several texts need counts once, for as long as one of them waits. */
    public void testRoomOfPlans() throws Exception {
        queue.add("{1}", plans("d", text(400)));
        Tests.isTrue("its plan is there already", queue.add("{2}", plans("d", text(400))));
        Tests.isTrue("another plan is too long", !queue.add("{3}", plans("e", text(400))));
        queue.take(1, 0);
        Tests.isTrue("the first plan is still needed", !queue.add("{3}", plans("e", text(400))));
        queue.take(1, 0);
        Tests.isTrue("nobody needs the first plan", queue.add("{3}", plans("e", text(400))) && queue.add("{4}"));
    }

    /** Who waits for a text gets it when it comes, not when the time is over. */
    public void testWaiting() throws Exception {
        final AtomicReference taken = new AtomicReference();
        final CountDownLatch began = new CountDownLatch(1);
        Thread taker = new Thread() {
            public void run() {
                began.countDown();
                try {
                    taken.set(queue.take(9, 60000));
                } catch (InterruptedException e) {
                    taken.set(e);
                }
            }
        };
        taker.start();
        began.await();
        queue.add("{1}");
        taker.join(30000);
        Tests.equal("{1}\n", taken.get());
    }

    private static Map plans(String digest, String text) {
        Map plans = new HashMap();
        plans.put(digest, text);
        return plans;
    }

    private static String text(int length) {
        StringBuilder text = new StringBuilder();
        while (text.length() < length) text.append('x');
        return text.toString();
    }
}
