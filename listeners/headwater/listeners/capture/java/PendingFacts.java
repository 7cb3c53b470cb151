package headwater.capture;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a hook keeps, under the execution that did it, until the statement has ended and an extractor looks it up.
 *
 * Statements that the SQL listener drops leave theirs behind: of more than so many executions the eldest is forgotten, so that new
 * ones always find room.
 */
final class PendingFacts {
    private final Map byExecution;

    PendingFacts(final int most) {
        this.byExecution = new LinkedHashMap() {
            protected boolean removeEldestEntry(Map.Entry eldest) { return size() > most; }
        };
    }

    synchronized void add(String execution, Object what) {
        if (execution == null) return;
        List known = (List) byExecution.get(execution);
        if (known == null) {
            known = new ArrayList();
            byExecution.put(execution, known);
        }
        known.add(what);
    }

    /** Takes what these executions left. */
    synchronized List take(List executions) {
        List found = new ArrayList();
        for (int i = 0; i < executions.size() && !byExecution.isEmpty(); i++) {
            List known = (List) byExecution.remove(executions.get(i).toString());
            if (known != null) found.addAll(known);
        }
        return found;
    }

    synchronized void clear() { byExecution.clear(); }
}
