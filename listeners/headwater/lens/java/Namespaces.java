package headwater.lens;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;

/** Whether a namespace is there which a command would make. */
final class Namespaces {
    private Namespaces() { }

    static boolean isThere(LogicalPlan command) {
        Object name = Leaves.call(command, "name");
        try {
            if (name instanceof ResolvedNamespace) {
                Object catalog = ((ResolvedNamespace) name).catalog();
                String[] parts = (String[]) list(((ResolvedNamespace) name).namespace()).toArray(new String[0]);
                return catalog instanceof SupportsNamespaces && ((SupportsNamespaces) catalog).namespaceExists(parts);
            }
            Object database = Leaves.call(command, "databaseName");
            return database != null && SparkSession.active().catalog().databaseExists("spark_catalog." + database);
        } catch (Throwable unknown) {
            return false;
        }
    }

    private static java.util.List list(scala.collection.Seq items) {
        java.util.List found = new java.util.ArrayList();
        for (scala.collection.Iterator all = items.iterator(); all.hasNext();) found.add(all.next());
        return found;
    }
}
