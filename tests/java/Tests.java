package headwater.capture;

/** What the tests of our Java assert with. */
final class Tests {
    private Tests() { }

    static void equal(Object expected, Object found) {
        if (expected == null ? found != null : !expected.equals(found)) throw new AssertionError("expected <" + expected + ">, found <" + found + ">");
    }

    static void isTrue(String what, boolean found) { if (!found) throw new AssertionError("it isn't so: " + what); }
}
