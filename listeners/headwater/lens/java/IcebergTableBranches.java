package headwater.lens;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Branches and tags of Iceberg are names of snapshots, whose numbers are the table's: a branch is a line of them. */
final class IcebergTableBranches extends TableBranches {
    private final Object table;

    IcebergTableBranches(String name, Object table) {
        super(name);
        this.table = table;
    }

    /** Whether a table that was looked up by such a name is a branch of the one whose name stands before it. */
    static boolean isBranch(org.apache.spark.sql.connector.catalog.Table table, String lastName) {
        if (!lastName.startsWith("branch_") || !table.getClass().getName().startsWith("org.apache.iceberg.")) return false;
        return lastName.substring("branch_".length()).equals(Leaves.call(table, "branch"));
    }

    boolean hasVersion(String version) {
        return refs().containsKey(version);
    }

    BranchVersion find(String branch, String part) {
        if (!isOnBranch(branch, part)) Leaves.call(table, "refresh");  // another program has made it, and the catalog keeps tables
        Object head = refs().get(branch);
        if (!is(head, "isBranch")) throw noBranch(branch, names("isBranch", null));
        Object tag = refs().get(part);
        if (!is(tag, "isTag") && !isNumber(part)) throw noTag(branch, part, names("isTag", head));
        Long snapshot = is(tag, "isTag") ? id(tag) : Long.valueOf(part);
        if (!isOn(head, snapshot)) throw elsewhere(branch, part, snapshot, head);
        return new BranchVersion("", snapshot.toString());
    }

    private boolean isOnBranch(String branch, String part) {
        Object head = refs().get(branch);
        Object tag = refs().get(part);
        if (!is(head, "isBranch") || !is(tag, "isTag") && !isNumber(part)) return false;
        return isOn(head, is(tag, "isTag") ? id(tag) : Long.valueOf(part));
    }

    private LensError elsewhere(String branch, String part, Long snapshot, Object head) {
        String what = snapshot.toString().equals(part) ? "the snapshot " + part : "the tag '" + part + "' (" + snapshot + ")";
        List tags = names("isTag", head);
        return new LensError(what + " of " + name + " isn't on the branch " + branch + (tags.isEmpty() ? ", which has no tags" : ", whose tags are " + String.join(", ", tags)));
    }

    private Map refs() {
        return (Map) Leaves.call(table, "refs");
    }

    /** The names of branches but main, or of the tags that are on a branch. */
    private List names(String kind, Object head) {
        List found = new ArrayList();
        for (Iterator all = refs().entrySet().iterator(); all.hasNext();) {
            Map.Entry each = (Map.Entry) all.next();
            if (!is(each.getValue(), kind) || each.getKey().equals(BranchVersions.MAIN)) continue;
            if (head == null || isOn(head, id(each.getValue()))) found.add(each.getKey());
        }
        return found;
    }

    /** Whether a snapshot is a branch's newest, or one that this was made from, as far as they haven't expired. */
    private boolean isOn(Object head, Long asked) {
        for (Object id = id(head); id != null;) {
            if (id.equals(asked)) return true;
            Object snapshot = snapshot((Long) id);
            id = snapshot == null ? null : Leaves.call(snapshot, "parentId");
        }
        return false;
    }

    private Object snapshot(Long id) {
        return call(table, "snapshot", Long.TYPE, id);
    }

    private static Long id(Object ref) {
        return (Long) Leaves.call(ref, "snapshotId");
    }

    private static boolean is(Object ref, String kind) {
        return ref != null && Boolean.TRUE.equals(Leaves.call(ref, kind));
    }
}
