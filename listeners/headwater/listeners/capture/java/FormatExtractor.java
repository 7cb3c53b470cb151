package headwater.capture;

/**
 * What is known of one table format. Each is compiled by itself, where the format's classes are there.
 *
 * `table` and `relation` describe: only what stays the same while data comes and goes, since it becomes part of a
 * statement's plan; never reading anything but memory. `read` and `ended` tell facts, on the reader's thread, which
 * may wait for a disk.
 */
public interface FormatExtractor {
    /** The name of the format's plug-in. */
    String format();
    /** Entries of a V2 table of this format, written into an object that is open; false if it is none of it. */
    boolean table(Object table, Json json) throws Exception;
    /** The same of a relation as data v1 sources have it. */
    boolean relation(Object relation, Json json) throws Exception;
    /** Entries that say which version this leaf of an optimized or physical plan reads; false if it isn't this format's. */
    boolean read(Object leaf, Json json) throws Exception;
    /** Whatever has to be looked up when a statement has ended: entries of the statement, written into an open object. */
    void ended(Statement statement, Json json) throws Exception;
}
