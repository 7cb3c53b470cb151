package headwater.lens;

/** How Spark reads a snapshot of a branch. */
final class BranchVersion {
    /** What the branch's name has behind the table's; empty if the snapshot is found by the table's own name. */
    final String suffix;
    /** What VERSION AS OF takes. */
    final String version;

    BranchVersion(String suffix, String version) {
        this.suffix = suffix;
        this.version = version;
    }
}
