package headwater.capture;

/** What is declared is looked for, and reading what isn't there is an error from then on. */
public final class SelfTestTest {
    private static final String OWNER = "headwater.capture.LazyFieldsTest$Derived";
    private static final String ABSENT = "headwater.capture.Nowhere";

    public void testMembers() throws Exception {
        Tests.equal("", missing(OWNER + "\tshadow\t-\n" + OWNER + "\tinBase\t-\n" + OWNER + "\tplan\t-"));
        Tests.equal("0\t\n", missing(OWNER + "\tabsent\t-\n" + OWNER + "\tshadow\t-"));
    }

    public void testMethods() throws Exception {
        Tests.equal("", missing("java.lang.String\tindexOf(java.lang.String,int)\t-\njava.lang.ClassLoader\tfindClass(java.lang.String)\t-"));
        Tests.equal("0\t\n1\t\n", missing("java.lang.String\tindexOf(java.lang.String,long)\t-\njava.lang.String\tindexOf()\t-"));
        Tests.equal("1\t\n", missing("java.lang.String\tnew(char[])\t-\njava.lang.String\tnew(long)\t-"));
    }

    public void testAlternatives() throws Exception {
        Tests.equal("1\t?\n", missing(ABSENT + "|" + OWNER + "\tabsent|shadow\t-\n" + ABSENT + "\tshadow\t?"));
        Tests.equal("0\t\n1\t\n", missing(ABSENT + "\tshadow\t-\n" + ABSENT + "|" + OWNER + "\tabsent|away\t?"));
    }

    /** Before it is over, whoever asks for what may be absent waits. */
    public void testWaits() throws Exception {
        final SelfTest test = new SelfTest(OWNER + "\tabsent\t-", "");
        final Object[] said = {null};
        LazyFields.use(test);
        Thread asking = new Thread(new Runnable() {
            public void run() {
                try {
                    said[0] = LazyFields.optional(new LazyFieldsTest.Derived(), "absent");
                } catch (Exception e) {
                    said[0] = e;
                }
            }
        });
        asking.start();
        while (asking.getState() != Thread.State.TIMED_WAITING) Thread.yield();
        test.run();
        asking.join();
        LazyFields.use(null);
        Tests.isTrue("it failed: " + said[0], said[0] instanceof NoSuchFieldException);
    }

    /** What is known already isn't looked for, and nobody waits for it. */
    public void testKnown() throws Exception {
        SelfTest test = new SelfTest("", OWNER + ".absent\n" + OWNER + ".away");
        test.start();
        LazyFields.use(null);
        Tests.equal("", test.missing(0));
        Tests.isTrue("it isn't known", test.misses(LazyFieldsTest.Derived.class, "absent"));
        Tests.isTrue("it is there", !test.misses(LazyFieldsTest.Derived.class, "shadow"));
    }

    private static String missing(String declared) throws Exception {
        SelfTest test = new SelfTest(declared, "");
        test.run();
        return test.missing(0);
    }
}
