package headwater.capture;

import org.apache.spark.sql.delta.DeltaLog;

/** A version that was committed outside of any execution and that no hook reported: looked for in the log, by its transaction. */
final class DeltaOutsideCommit implements DeferredFact {
    private final String fact;
    private final DeltaLog log;
    private final long readVersion;
    private final String transaction;

    /** `fact` is an object without its end. */
    DeltaOutsideCommit(String fact, DeltaLog log, long readVersion, String transaction) {
        this.fact = fact;
        this.log = log;
        this.readVersion = readVersion;
        this.transaction = transaction;
    }

    public String resolve(boolean isLast) {
        Json found = new Json();
        try {
            DeltaCommitFiles.byTransaction(log, readVersion, transaction, found);
        } catch (Throwable e) {
            CaughtErrors.report("DeltaOutsideCommit.resolve", e);
        }
        return fact + (found.length() == 0 ? "" : ",\"found\":" + found) + "}";
    }
}
