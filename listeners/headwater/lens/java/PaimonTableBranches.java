package headwater.lens;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;

/** Branches of Paimon have snapshots and tags of their own. Paimon takes a branch's tag for main's, so it is read by its number. */
final class PaimonTableBranches extends TableBranches {
    private final Object table;

    PaimonTableBranches(String name, Object table) {
        super(name);
        this.table = table;
    }

    boolean hasVersion(String version) {
        return hasTag(table, version);
    }

    BranchVersion find(String branch, String part) {
        boolean isMain = branch.equals(BranchVersions.MAIN);
        List branches = (List) Leaves.call(Leaves.call(table, "branchManager"), "branches");
        if (!isMain && !branches.contains(branch)) throw noBranch(branch, branches);
        Object on = isMain ? table : call(table, "switchToBranch", String.class, branch);
        boolean isTag = hasTag(on, part);
        if (!isTag && !isNumber(part)) throw noTag(branch, part, tags(on));
        if (isMain && isTag) return new BranchVersion("", part);  // also where the snapshot itself has expired
        Object snapshots = Leaves.call(on, "snapshotManager");
        Long snapshot = isTag ? (Long) Leaves.call(call(Leaves.call(on, "tagManager"), "taggedSnapshot", String.class, part), "id") : Long.valueOf(part);
        if (!Boolean.TRUE.equals(call(snapshots, "snapshotExists", Long.TYPE, snapshot))) throw expired(branch, part, snapshot, snapshots);
        return new BranchVersion(isMain ? "" : "$branch_" + branch, snapshot.toString());
    }

    private LensError expired(String branch, String part, Long snapshot, Object snapshots) {
        String range = "it has the snapshots from " + Leaves.call(snapshots, "earliestSnapshotId") + " to " + Leaves.call(snapshots, "latestSnapshotId");
        if (snapshot.toString().equals(part)) return new LensError("the branch " + branch + " of " + name + " has no snapshot " + part + ": " + range);
        return new LensError("the snapshot " + snapshot + " of the tag '" + part + "' has expired from the branch " + branch + " of " + name + ", and Paimon reads no tags of branches: " + range);
    }

    private static boolean hasTag(Object table, String tag) {
        return Boolean.TRUE.equals(call(Leaves.call(table, "tagManager"), "tagExists", String.class, tag));
    }

    private static Collection tags(Object table) {
        List found = new ArrayList();
        Collection lists = ((java.util.Map) Leaves.call(Leaves.call(table, "tagManager"), "tags")).values();
        for (Iterator all = lists.iterator(); all.hasNext();) found.addAll((Collection) all.next());
        return found;
    }
}
