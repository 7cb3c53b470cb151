package headwater.capture;

import java.lang.reflect.Method;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CachingCatalog;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.FileIO;

/**
 * What a session has in memory of a table, and how large the rest is: a metadata file can be hundreds of megabytes, and
 * each reading of one takes as many of the driver's.
 *
 * Only looked at: a table that is asked for its metadata may read it anew, in a race with the user's own thread, and one
 * that is taken from the session's cache stays there for longer.
 */
final class IcebergMemory {
    /** Metadata files that are larger aren't read. A test has fewer bytes. */
    public static volatile long most = 16L << 20;

    private IcebergMemory() { }

    /** The table in the session's cache, which doesn't notice; null where it isn't there. */
    static Table cached(Object catalog, TableIdentifier name) {
        try {
            if (!(catalog instanceof CachingCatalog)) return null;
            Object cache = LazyFields.value(catalog, "tableCache");
            boolean isExact = Boolean.TRUE.equals(LazyFields.value(catalog, "caseSensitive"));
            Object policy = call(cache, "policy", new Class[0], new Object[0]);
            Object key = isExact ? name : name.toLowerCase();
            return (Table) call(policy, "getIfPresentQuietly", new Class[] {Object.class}, new Object[] {key});
        } catch (Throwable e) {
            CaughtErrors.log("IcebergMemory.cached", e);
            return null;
        }
    }

    private static Object call(Object owner, String name, Class[] kinds, Object[] arguments) throws Exception {
        for (Class at = owner.getClass(); at != null; at = at.getSuperclass())
            for (int i = 0; i < at.getInterfaces().length; i++) {
                try {
                    Method found = at.getInterfaces()[i].getMethod(name, kinds);
                    found.setAccessible(true);
                    return found.invoke(owner, arguments);
                } catch (NoSuchMethodException e) {
                    // further up
                }
            }
        throw new NoSuchMethodException(name);
    }

    /** The metadata that a table has read last; null where it has none. */
    static TableMetadata of(Table table) {
        try {
            if (!(table instanceof HasTableOperations)) return null;
            TableOperations operations = ((HasTableOperations) table).operations();
            Object found = LazyFields.optional(operations, "currentMetadata");
            return (TableMetadata) (found == null ? LazyFields.optional(operations, "current") : found);
        } catch (Throwable e) {
            CaughtErrors.report("IcebergMemory.of", e);
            return null;
        }
    }

    /** The table as it is in memory, if that is what the statement, which began at this moment, has left. */
    static Table changedSince(Table table, long moment) throws Exception {
        TableMetadata found = of(table);
        if (found == null || found.lastUpdatedMillis() < moment) return null;
        TableOperations operations = ((HasTableOperations) table).operations();
        if (Boolean.TRUE.equals(LazyFields.optional(operations, "shouldRefresh"))) return null;
        return new BaseTable(new StaticTableOperations(found, operations.io()), table.name());
    }

    /** Whether a table's metadata was too large when it was read last. */
    static boolean isLarge(Table table) {
        TableMetadata found = of(table);
        return found != null && isLarge(((HasTableOperations) table).operations().io(), found.metadataFileLocation());
    }

    static boolean isLarge(FileIO io, String file) {
        return file != null && io.newInputFile(file).getLength() > (file.contains(".gz") ? most / 8 : most);
    }
}
