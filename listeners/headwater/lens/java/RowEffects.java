package headwater.lens;

import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** What a command does to the rows of the table that it writes. A command that isn't known may change rows. */
final class RowEffects {
    static final String ADDS = "ADDS";
    static final String REPLACES_ALL = "REPLACES_ALL";
    static final String CHANGES = "CHANGES";
    static final String KEEPS = "KEEPS";
    private static final String[] KEEPING = {"Create", "Alter", "Set", "Unset", "Add", "Rename", "Comment", "Analyze", "Repair", "Optimize"};

    private RowEffects() { }

    static String of(LogicalPlan plan) {
        String type = plan.getClass().getSimpleName();
        if (type.indexOf("Hoodie") >= 0) return ofHudi(plan, type);
        if (type.equals("AppendData")) return ADDS;
        if (plan instanceof OverwriteByExpression) return isTrue(((OverwriteByExpression) plan).deleteExpr()) && !isNarrowed(plan) ? REPLACES_ALL : CHANGES;
        if (plan instanceof OverwritePartitionsDynamic || type.endsWith("DynamicPartitionOverwriteCommand")) return isPartitioned(plan) ? CHANGES : REPLACES_ALL;
        if (type.startsWith("ReplaceTable")) return isNarrowed(plan) ? CHANGES : REPLACES_ALL;
        if (type.startsWith("DropTable")) return REPLACES_ALL;
        if (type.startsWith("TruncateTable")) return isEmpty(Leaves.call(plan, "partitionSpec")) ? REPLACES_ALL : CHANGES;
        if (type.startsWith("Delete")) return isTrue(Leaves.call(plan, "condition")) ? REPLACES_ALL : CHANGES;
        for (int i = 0; i < KEEPING.length; i++) if (type.startsWith(KEEPING[i])) return KEEPS;
        return CHANGES;
    }

    /** An insert may replace rows of its keys: whoever asks has to know whether the table has keys. */
    private static String ofHudi(LogicalPlan plan, String type) {
        if (type.equals("InsertIntoHoodieTableCommand")) {
            if (!Boolean.TRUE.equals(Leaves.call(plan, "overwrite"))) return ADDS;
            return replacesAllOfHudi(plan) ? REPLACES_ALL : CHANGES;
        }
        if (type.equals("CreateHoodieTableAsSelectCommand")) {
            String mode = String.valueOf(Leaves.call(plan, "mode"));
            return mode.equals("Append") ? ADDS : mode.equals("Overwrite") ? REPLACES_ALL : KEEPS;
        }
        return type.startsWith("CreateHoodieTable") ? KEEPS : CHANGES;
    }

    /** Of a table with partitions an overwrite replaces all, unless it names some or the session's mode is dynamic. */
    private static boolean replacesAllOfHudi(LogicalPlan plan) {
        Object relation = Leaves.call(plan, "logicalRelation");
        if (!(relation instanceof org.apache.spark.sql.execution.datasources.LogicalRelation)) return false;
        scala.Option table = ((org.apache.spark.sql.execution.datasources.LogicalRelation) relation).catalogTable();
        if (table.isEmpty()) return false;
        if (((org.apache.spark.sql.catalyst.catalog.CatalogTable) table.get()).partitionColumnNames().isEmpty()) return true;
        Object named = Leaves.call(plan, "partitionSpec");
        if (!(named instanceof scala.collection.Map) || !((scala.collection.Map) named).isEmpty()) return false;
        org.apache.spark.sql.internal.SQLConf conf = org.apache.spark.sql.internal.SQLConf.get();
        String mode = conf.getConfString("spark.sql.sources.partitionOverwriteMode", "static");
        return conf.getConfString("hoodie.datasource.overwrite.mode", mode).equalsIgnoreCase("static") && mode.equalsIgnoreCase("static");
    }

    /** Whether an overwrite of all rows may be one of some partitions: by an option, or by the session's mode. */
    private static boolean isNarrowed(LogicalPlan plan) {
        Object options = Leaves.call(plan, "writeOptions");
        if (options instanceof scala.collection.Map) {
            for (scala.collection.Iterator all = ((scala.collection.Map) options).keysIterator(); all.hasNext();) {
                String name = all.next().toString().toLowerCase(java.util.Locale.ROOT);
                if (name.equals("replacewhere") || name.equals("partitionoverwritemode")) return true;
            }
        }
        boolean isDynamic = org.apache.spark.sql.internal.SQLConf.get().getConfString("spark.sql.sources.partitionOverwriteMode", "static").equalsIgnoreCase("dynamic");
        return isDynamic && isPartitioned(plan);
    }

    private static boolean isPartitioned(LogicalPlan plan) {
        Object table = Leaves.call(plan, "table");
        if (table instanceof DataSourceV2Relation) return ((DataSourceV2Relation) table).table().partitioning().length > 0;
        return !isEmpty(Leaves.call(plan, "partitioning"));
    }

    private static boolean isTrue(Object condition) {
        if (condition == null) return true;
        if (condition instanceof scala.Option) return ((scala.Option) condition).isEmpty() || isTrue(((scala.Option) condition).get());
        return condition instanceof Literal && Boolean.TRUE.equals(((Literal) condition).value());
    }

    private static boolean isEmpty(Object found) {
        if (found instanceof scala.Option) return ((scala.Option) found).isEmpty();
        return found == null || found instanceof scala.collection.Seq && ((scala.collection.Seq) found).isEmpty();
    }
}
