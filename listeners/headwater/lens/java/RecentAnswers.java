package headwater.lens;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The newest answers to questions of all sessions, with the time at which each was asked. Versions that belong together
 * go on belonging together: only that they are the newest gets old.
 */
final class RecentAnswers {
    private static final int MOST = 256;

    private final Map answers = new LinkedHashMap();

    synchronized ConsistentAnswer get(String tables, long maxAgeMillis) {
        Recent found = (Recent) answers.get(tables);
        if (found == null || System.nanoTime() - found.asked >= maxAgeMillis * 1000000L) return null;
        return ConsistentAnswer.parse(found.text);  // each statement changes its own
    }

    synchronized void put(String tables, String text, long asked) {
        Recent known = (Recent) answers.get(tables);
        if (known != null && known.asked - asked > 0) return;
        answers.remove(tables);
        answers.put(tables, new Recent(text, asked));
        if (answers.size() > MOST) answers.remove(answers.keySet().iterator().next());
    }

    private static final class Recent {
        final String text;
        final long asked;

        Recent(String text, long asked) {
            this.text = text;
            this.asked = asked;
        }
    }
}
