package headwater.lens;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.regex.Matcher;
import org.apache.spark.sql.internal.SQLConf;

/** What a session says of consistent reads: each key may be SET. */
final class ConsistentSettings {
    static final String KEY = "spark.headwater.read.consistent";
    static final String OTHERWISE = KEY + ".otherwise";
    static final String ALLOWED = KEY + ".allowed";
    private static final String TIMEOUT = KEY + ".timeout";
    private static final String MAX_AGE = KEY + ".max.age";
    private static final Pattern DURATION = Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*(ms|s|m|min|h)?");
    private static final long SECOND = 1000L;
    private static final List TRUE = Arrays.asList("true", "on", "yes", "1");
    private static final List FALSE = Arrays.asList("false", "off", "no", "0", "");

    /** Whether tables that can't be aligned are read as they are now. */
    final boolean readsLatest;
    /** For how long a statement waits for versions that belong together. */
    final long waitMillis;
    /** For how long it waits for an answer. */
    final long timeoutMillis;
    /** How old an answer may be that another statement got. */
    final long maxAgeMillis;
    private final String[] allowed;

    private ConsistentSettings(boolean readsLatest, long waitMillis, long timeoutMillis, long maxAgeMillis, String[] allowed) {
        this.readsLatest = readsLatest;
        this.waitMillis = waitMillis;
        this.timeoutMillis = timeoutMillis;
        this.maxAgeMillis = maxAgeMillis;
        this.allowed = allowed;
    }

    /** A word that is neither true nor false is refused where tables are read: the SET that mends it reads none. */
    static boolean isOn(SQLConf conf) {
        String text = conf.getConfString(KEY, null);
        return text != null && isWanted(text);
    }

    static boolean isWanted(String text) {
        return !isOneOf(FALSE, text);
    }

    static boolean isTrue(String text) {
        return isOneOf(TRUE, text);
    }

    private static boolean isOneOf(List words, String text) {
        return words.contains(text.trim().toLowerCase(Locale.ROOT));
    }

    static ConsistentSettings of(SQLConf conf) {
        String key = conf.getConfString(KEY, "");
        if (!isTrue(key) && isWanted(key)) throw new LensError(KEY + " = " + key + " is neither true nor false");
        String otherwise = conf.getConfString(OTHERWISE, "fail").trim().toLowerCase(Locale.ROOT);
        long wait = 0;
        if (otherwise.startsWith("wait ")) wait = millis(OTHERWISE, otherwise.substring(5).trim());
        else if (!otherwise.equals("fail") && !otherwise.equals("latest")) {
            throw new LensError(OTHERWISE + " = " + otherwise + " is none of fail, latest, and wait with a time, as in wait 60s");
        }
        long timeout = millis(TIMEOUT, conf.getConfString(TIMEOUT, "5s").trim());
        long maxAge = millis(MAX_AGE, conf.getConfString(MAX_AGE, "1s").trim());
        return new ConsistentSettings(otherwise.equals("latest"), wait, timeout, maxAge, conf.getConfString(ALLOWED, "").split(","));
    }

    /** Whether a table is read as it is now, whatever belongs together. */
    boolean isAllowed(String table) {
        for (int i = 0; i < allowed.length; i++) {
            String pattern = allowed[i].trim();
            if (!pattern.isEmpty() && table.matches("\\Q" + pattern.replace("*", "\\E.*\\Q") + "\\E")) return true;
        }
        return false;
    }

    private static long millis(String key, String text) {
        Matcher matcher = DURATION.matcher(text);
        if (!matcher.matches()) throw new LensError(key + " has no time in it that can be read: " + text + "; write 60s, 500ms or 2m");
        String unit = matcher.group(2) == null ? "s" : matcher.group(2);
        long factor = unit.equals("ms") ? 1L : unit.equals("s") ? SECOND : unit.equals("h") ? 3600L * SECOND : 60L * SECOND;
        return (long) (Double.parseDouble(matcher.group(1)) * (double) factor);
    }
}
