package headwater.capture;

/** Fields are found by name wherever they are declared, and never computed; one that isn't there is no answer. */
public final class LazyFieldsTest {
    public void testFields() throws Exception {
        Tests.equal("base", LazyFields.value(new Derived(), "inBase"));
        Tests.equal("own", LazyFields.value(new Derived(), "shadow"));
        Tests.equal(null, LazyFields.value(new Derived(), "uncomputed"));
        Tests.equal(null, LazyFields.optional(new Derived(), "absent"));
        Tests.isTrue("a field is there", LazyFields.has(Derived.class, "inBase"));
        Tests.isTrue("a field isn't there", !LazyFields.has(Derived.class, "absent"));
    }

    public void testAbsent() throws Exception {
        try {
            LazyFields.value(new Derived(), "absent");
        } catch (NoSuchFieldException e) {
            Tests.equal(Derived.class.getName() + ".absent", e.getMessage());
            return;
        }
        throw new AssertionError("a field that isn't there passed for one without a value");
    }

    /** As Spark 4 keeps them: `lazyX` holds a value that was tried, or an error, or nothing yet. */
    public void testTried() throws Exception {
        Derived owner = new Derived();
        Tests.equal(null, LazyFields.value(owner, "plan"));
        owner.lazyPlan = new Tried(null);
        Tests.equal(null, LazyFields.value(owner, "plan"));
        owner.lazyPlan = new Tried(new scala.util.Failure(new IllegalStateException()));
        Tests.equal(null, LazyFields.value(owner, "plan"));
        owner.lazyPlan = new Tried(new scala.util.Success("planned"));
        Tests.equal("planned", LazyFields.value(owner, "plan"));
    }

    static class Base {
        private final String inBase = "base";
        private final String shadow = "base's";
    }

    static final class Derived extends Base {
        private final String shadow = "own";
        private String uncomputed;
        private Tried lazyPlan;
    }

    static final class Tried {
        private final Object tryT;

        Tried(Object tryT) { this.tryT = tryT; }
    }
}
