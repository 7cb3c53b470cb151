package headwater.lens;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What Python says of some tables: versions that belong together, and why some or all have none. */
final class ConsistentAnswer {
    /** By full name. */
    final Map pins = new LinkedHashMap();
    /** Why tables are left out, or why there are no versions; empty if all are pinned. */
    final List reasons = new ArrayList();
    /** What isn't known of the lineage behind them, for people. */
    final List notes = new ArrayList();
    /** The versions of the tables that these share, for people. */
    String cut = "";

    /** Lines of which each has its kind first, and tabs between its words. */
    static ConsistentAnswer parse(String text) {
        ConsistentAnswer answer = new ConsistentAnswer();
        String[] lines = text.split("\n");
        for (int i = 0; i < lines.length; i++) {
            String[] words = lines[i].split("\t", -1);
            if (words[0].equals("pin")) answer.pins.put(words[1], new Pin(words));
            else if (words[0].equals("cut")) answer.cut = words[1];
            else if (words[0].equals("why")) answer.reasons.add(words[1]);
            else if (words[0].equals("note")) answer.notes.add(words[1]);
        }
        return answer;
    }

    static ConsistentAnswer none(String why) {
        ConsistentAnswer answer = new ConsistentAnswer();
        answer.reasons.add(why);
        return answer;
    }

    /** None of these versions is read. */
    void refuse(List why) {
        reasons.addAll(why);
        pins.clear();
    }

    String why() {
        return String.join("; ", reasons);
    }

    static final class Pin {
        final String name;
        final String version;
        /** Which table has these versions: one that was dropped and made again is another. Empty if it isn't known. */
        final String generation;
        /** When the version was made, in microseconds; negative if it isn't known. */
        final long madeAt;
        /** How many versions there are after it. */
        final String behind;

        Pin(String[] words) {
            name = words[1];
            version = words[2];
            generation = words[3];
            madeAt = Long.parseLong(words[4]);
            behind = words[5];
        }

        /** Whether a table would go back in time, if this was read after the other one. */
        boolean isBefore(Pin other) {
            if (!generation.equals(other.generation) || version.equals(other.version)) return false;
            return madeAt >= 0 && other.madeAt >= 0 && madeAt < other.madeAt;
        }

        /** Whether a table with this id has other versions. Where either isn't known, nobody can say. */
        boolean isOfAnother(String table) {
            return !table.isEmpty() && !generation.isEmpty() && !table.equals(generation);
        }

        String describe() {
            return name + " VERSION AS OF " + version + (behind.equals("0") ? " (newest)" : " (" + behind + " behind its newest)");
        }
    }
}
