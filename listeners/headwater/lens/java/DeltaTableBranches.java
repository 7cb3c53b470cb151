package headwater.lens;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** A branch of Delta is a clone beside the table, `t__fix`, with versions of its own, and with what it is of in its properties. */
final class DeltaTableBranches extends TableBranches {
    private static final String BETWEEN = "__";
    private static final String PROPERTY = "headwater.branch";
    private final TableCatalog catalog;
    private final Identifier identifier;
    private final Object id;

    DeltaTableBranches(String name, TableCatalog catalog, Identifier identifier, Table table) {
        super(name);
        this.catalog = catalog;
        this.identifier = identifier;
        Object snapshot = Leaves.call(table, "initialSnapshot");
        Object metadata = snapshot == null ? null : Leaves.call(snapshot, "metadata");
        this.id = metadata == null ? null : Leaves.call(metadata, "id");
    }

    /** Delta's versions are numbers. */
    boolean hasVersion(String version) {
        return false;
    }

    BranchVersion find(String branch, String part) {
        boolean isMain = branch.equals(BranchVersions.MAIN);
        if (!isMain && !branch.equalsIgnoreCase(branchOf(identifier.name() + BETWEEN + branch))) throw noBranch(branch, branches());
        if (!isNumber(part)) throw new LensError("Delta has no tags, and '" + part + "' is no version of the branch " + branch + " of " + name + ": name one by its number");
        return new BranchVersion(isMain ? "" : BETWEEN + branch, part);  // Delta says which versions there are
    }

    private List branches() {
        List found = new ArrayList();
        try {
            Identifier[] all = catalog.listTables(identifier.namespace());
            for (int i = 0; i < all.length; i++) {
                String branch = all[i].name().startsWith(identifier.name() + BETWEEN) ? branchOf(all[i].name()) : null;
                if (branch != null) found.add(branch);
            }
        } catch (Exception e) {
            return found;
        }
        return found;
    }

    /** Which branch of this table another one is; null if it is none. */
    private String branchOf(String other) {
        try {
            java.util.Map properties = catalog.loadTable(UnreadablePin.identifier(identifier.namespace(), other)).properties();
            return id != null && id.equals(properties.get(PROPERTY + ".of")) ? (String) properties.get(PROPERTY) : null;
        } catch (Exception notThere) {
            return null;
        }
    }
}
