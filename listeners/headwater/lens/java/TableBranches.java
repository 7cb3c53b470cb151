package headwater.lens;

import java.util.Collection;
import java.util.TreeSet;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** The branches of one table, and what `VERSION AS OF 'branch.tag'` means there. Formats are asked by reflection: none has to be there. */
abstract class TableBranches {
    private static final int SHOWN = 10;
    final String name;

    TableBranches(String name) {
        this.name = name;
    }

    /** Null for a table of a format that has no branches, and for a part of a table. */
    static TableBranches of(TableCatalog catalog, Identifier identifier, Table table, String name) {
        String type = table.getClass().getName();
        if (identifier.name().indexOf('$') >= 0) return null;
        if (type.startsWith("org.apache.iceberg.")) return new IcebergTableBranches(name, Leaves.call(table, "table"));
        if (type.startsWith("org.apache.paimon.")) return new PaimonTableBranches(name, Leaves.call(table, "getTable"));
        if (type.indexOf(".delta.") > 0) return new DeltaTableBranches(name, catalog, identifier, table);
        return null;
    }

    /** Whether the format itself reads this version of the table. */
    abstract boolean hasVersion(String version);

    /** The snapshot of a tag of a branch, or of a number; a LensError if there is none. */
    abstract BranchVersion find(String branch, String part);

    final LensError noBranch(String branch, Collection branches) {
        return new LensError(name + " has no branch '" + branch + "': " + (branches.isEmpty() ? "it has none but main" : "its branches are main, " + shown(branches)));
    }

    final LensError noTag(String branch, String part, Collection tags) {
        return new LensError("the branch " + branch + " of " + name + " has no tag '" + part + "': " + (tags.isEmpty() ? "it has no tags, name a snapshot by its number" : "its tags are " + shown(tags)));
    }

    static boolean isNumber(String text) {
        try {
            return text.matches("\\d+") && Long.parseLong(text) >= 0L;
        } catch (NumberFormatException tooLarge) {
            return false;
        }
    }

    private static String shown(Collection names) {
        Object[] all = new TreeSet(names).toArray();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < Math.min(SHOWN, all.length); i++) text.append(i == 0 ? "" : ", ").append(all[i]);
        return text + (all.length > SHOWN ? " and " + (all.length - SHOWN) + " more" : "");
    }

    /** What a method of one argument answers. */
    static Object call(Object of, String method, Class type, Object argument) {
        try {
            java.lang.reflect.Method found = of.getClass().getMethod(method, new Class[] {type});
            found.setAccessible(true);
            return found.invoke(of, new Object[] {argument});
        } catch (Exception e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new LensError("this release's " + of.getClass().getName() + " isn't read by VERSION AS OF 'branch.tag' (" + cause + ")", cause);
        }
    }
}
