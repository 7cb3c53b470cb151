package headwater.capture;

/** Writes JSON. Commas are its business: values and keys follow each other as they are said. */
public final class Json {
    private static final char[] HEX = "0123456789abcdef".toCharArray();
    private final StringBuilder text = new StringBuilder(512);
    private boolean comma;

    public Json open() { before(); text.append('{'); comma = false; return this; }
    public Json close() { text.append('}'); comma = true; return this; }
    public Json openList() { before(); text.append('['); comma = false; return this; }
    public Json closeList() { text.append(']'); comma = true; return this; }

    public Json key(String name) { before(); quote(name); text.append(':'); comma = false; return this; }

    public Json value(String value) {
        before();
        if (value == null) text.append("null"); else quote(value);
        return this;
    }
    public Json value(long value) { before(); text.append(value); return this; }
    public Json value(boolean value) { before(); text.append(value); return this; }
    public Json nothing() { before(); text.append("null"); return this; }
    /** What is JSON already. */
    public Json raw(String json) { before(); text.append(json); return this; }

    public Json entry(String name, String value) { return value == null ? this : key(name).value(value); }
    public Json entry(String name, long value) { return key(name).value(value); }
    public Json entry(String name, boolean value) { return key(name).value(value); }
    /** A boxed number, or nothing where it is absent. */
    public Json entry(String name, Number value) { return value == null ? this : key(name).value(value.longValue()); }

    public int length() { return text.length(); }
    public String toString() { return text.toString(); }

    private void before() {
        if (comma) text.append(',');
        comma = true;
    }

    private void quote(String value) {
        text.append('"');
        for (int i = 0; i < value.length(); i++) character(value.charAt(i));
        text.append('"');
    }

    /** Control characters, and half of a pair that stands alone, are escaped: the text has one line and is UTF-8. */
    private void character(char c) {
        if (c == '"' || c == '\\') {
            text.append('\\').append(c);
        } else if (c < ' ' || c == 127 || c >= 0xd800 && c <= 0xdfff || c == 0x2028 || c == 0x2029) {
            text.append("\\u").append(HEX[c >> 12]).append(HEX[c >> 8 & 15]).append(HEX[c >> 4 & 15]).append(HEX[c & 15]);
        } else {
            text.append(c);
        }
    }
}
