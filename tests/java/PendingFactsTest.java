package headwater.capture;

import java.util.Arrays;

public final class PendingFactsTest {
    private final PendingFacts pending = new PendingFacts(2);

    /** Once, in the order of the executions that are asked for. */
    public void testTake() throws Exception {
        pending.add("1", "a");
        pending.add("2", "b");
        pending.add("1", "c");
        pending.add(null, "nobody's");
        Tests.equal(Arrays.asList(new Object[] {"b", "a", "c"}), pending.take(Arrays.asList(new Object[] {Long.valueOf(2), Long.valueOf(1)})));
        Tests.equal(0, pending.take(Arrays.asList(new Object[] {Long.valueOf(1)})).size());
    }

    /** What a statement left that was never reported makes room for those that come. */
    public void testEldest() throws Exception {
        for (int i = 1; i <= 3; i++) pending.add(Integer.toString(i), "of " + i);
        Tests.equal(Arrays.asList(new Object[] {"of 2", "of 3"}), pending.take(Arrays.asList(new Object[] {"1", "2", "3"})));
    }
}
