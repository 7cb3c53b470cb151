package headwater.capture;

public final class JsonTest {
    /** Commas stand between values and entries, at each level, and nowhere else. */
    public void testCommas() throws Exception {
        Json json = new Json().open().entry("a", 1L).key("b").openList().value(true).open().close().nothing().closeList().entry("c", "d").close();
        Tests.equal("{\"a\":1,\"b\":[true,{},null],\"c\":\"d\"}", json.toString());
    }

    /** An entry without a value isn't written, and leaves no comma. */
    public void testAbsentEntries() throws Exception {
        Json json = new Json().open().entry("a", (String) null).entry("b", (Number) null).entry("c", Integer.valueOf(3)).close();
        Tests.equal("{\"c\":3}", json.toString());
    }

    /** A record is one line of UTF-8, whatever a user put into a comment. */
    public void testCharacters() throws Exception {
        String text = "\"\\\n\t" + (char) 127 + (char) 0x2028 + (char) 0xd800 + "x" + (char) 0x85 + "\u00e9";
        String expected = "\"\\\"\\\\\\u000a\\u0009\\u007f\\u2028\\ud800x" + (char) 0x85 + "\u00e9\"";
        Tests.equal(expected, new Json().value(text).toString());
    }
}
