package headwater.capture;

import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogDatabase;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.CalendarInterval;

/** Whatever stands in a plan beside plans and expressions: tables, identifiers, catalogs, changes, plain values. */
public final class ValueWriter {
    private static final int DEEPEST = 12;
    private static final java.util.regex.Pattern VOLATILE = java.util.regex.Pattern.compile(
        "current-snapshot-id|transient_lastDdlTime|spark\\.sql\\.statistics\\..*|spark\\.sql\\.sources\\.schema.*"
        + "|numFiles|totalSize|rawDataSize|numRows|last_modified_.*");

    private final CatalogWriter catalogs;
    private final FormatExtractor[] extractors;

    public ValueWriter(CatalogWriter catalogs, FormatExtractor[] extractors) {
        this.catalogs = catalogs;
        this.extractors = extractors;
    }

    public FormatExtractor[] extractors() { return extractors; }

    /** The number of Spark's own catalog in the session that the plan is of. */
    int sessionCatalog() { return catalogs.sessionCatalog(); }

    /** Nodes whose literals say what is to be done, not what data is: a procedure's arguments, partitions, versions. */
    public boolean showsLiterals(QueryPlan plan) {
        String name = plan.getClass().getSimpleName();
        if (name.equals("Call") || name.endsWith("Partitions") || name.endsWith("Partition") || name.equals("RelationTimeTravel")) return true;
        for (int i = 0; i < extractors.length; i++) {
            if (extractors[i] instanceof FormatCommands && ((FormatCommands) extractors[i]).showsLiterals(plan)) return true;
        }
        return false;
    }

    public boolean isNoise(String name, Object value) {
        return name.equals("sparkSession") || name.equals("session") || value instanceof org.apache.spark.sql.SparkSession
            || value instanceof org.apache.spark.sql.SQLContext;
    }

    /** Expressions whose children have roles: what merges do, what windows are. */
    public boolean isSpelledOut(Expression expression) {
        String name = expression.getClass().getName();
        return expression instanceof scala.Product
            && (!name.startsWith("org.apache.spark.sql.catalyst.expressions.") || name.endsWith(".WindowSpecDefinition"));
    }

    /** The name a user gave a function of his own. */
    public Object nameOfFunction(Expression expression) {
        String type = expression.getClass().getSimpleName();
        if (!type.contains("UDF") && !type.contains("UDAF") && !type.contains("UDTF")) return null;
        try {
            return ScalaOptions.get(type.startsWith("Scala") ? LazyFields.optional(expression, "udfName") : LazyFields.optional(expression, "name"));
        } catch (Exception e) {
            CaughtErrors.report("ValueWriter.nameOfFunction", e);
            return null;
        }
    }

    public String literal(Literal literal) { return shortened(literal.toString()); }

    public String shortened(String text) { return text.length() > 4096 ? text.substring(0, 4096) : text; }

    public void write(Object value, PlanWriter plan, Json json, int depth) throws Exception {
        if (value == null) json.nothing();
        else if (value instanceof String) json.value((String) value);
        else if (value instanceof Boolean) json.value(((Boolean) value).booleanValue());
        else if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte)
            json.value(((Number) value).longValue());
        else if (value instanceof Number || value instanceof Character || value instanceof Enum) json.value(value.toString());
        else if (value instanceof QueryPlan) json.open().entry("p", plan.node((QueryPlan) value)).close();
        else if (value instanceof Expression && plan.skipsExpressions()) json.nothing();
        else if (value instanceof Expression) json.open().entry("x", plan.expression((Expression) value)).close();
        else if (depth > DEEPEST) json.open().entry("class", value.getClass().getName()).close();
        else compound(value, plan, json, depth + 1);
    }

    private void compound(Object value, PlanWriter plan, Json json, int depth) throws Exception {
        if (value instanceof scala.Option) write(ScalaOptions.get(value), plan, json, depth);
        else if (value instanceof scala.util.Either) either((scala.util.Either) value, plan, json, depth);
        else if (value instanceof scala.collection.Map) entries((scala.collection.Map) value, plan, json, depth);
        else if (value instanceof StructType) json.open().entry("schema", plan.type((StructType) value)).close();
        else if (value instanceof scala.collection.Iterable) sequence(PlanWriter.list(value), plan, json, depth);
        else if (value instanceof Object[]) sequence(java.util.Arrays.asList((Object[]) value), plan, json, depth);
        else if (value instanceof java.util.List) sequence((List) value, plan, json, depth);
        else if (value instanceof java.util.Map) javaEntries((Map) value, plan, json, depth);
        else if (value instanceof DataType) json.open().entry("type", plan.type((DataType) value)).close();
        else connector(value, plan, json, depth);
    }

    private void connector(Object value, PlanWriter plan, Json json, int depth) throws Exception {
        if (value instanceof CatalogTable) catalogTable((CatalogTable) value, plan, json);
        else if (value instanceof CatalogDatabase) product((scala.Product) value, plan, json, depth);
        else if (value instanceof CatalogStorageFormat) storage((CatalogStorageFormat) value, json);
        else if (value instanceof CatalogPlugin) json.open().entry("catalog", catalogs.number((CatalogPlugin) value)).close();
        else if (value instanceof Sink) sink(value, json);
        else if (value instanceof Table) table((Table) value, plan, json);
        else if (value instanceof Identifier) identifier((Identifier) value, json);
        else if (value instanceof TableChange) change(value, plan, json, depth);
        else if (value instanceof Transform) transform((Transform) value, json);
        else if (value instanceof BaseRelation) relation((BaseRelation) value, plan, json);
        else if (value instanceof InternalRow) row((InternalRow) value, json);
        else if (value instanceof org.apache.spark.sql.types.Metadata) json.value(((org.apache.spark.sql.types.Metadata) value).json());
        else if (value instanceof java.net.URI || value instanceof org.apache.hadoop.fs.Path) json.value(value.toString());
        else if (value instanceof scala.Enumeration.Value || value instanceof CalendarInterval) json.value(value.toString());
        else if (value instanceof scala.Product && !(value instanceof scala.Function1)) product((scala.Product) value, plan, json, depth);
        else other(value, json);
    }

    /** The formats' procedures, say, which belong to a catalog. */
    private void other(Object value, Json json) throws Exception {
        json.open().entry("class", value.getClass().getName());
        Object catalog = value.getClass().getName().startsWith("java.") ? null : LazyFields.optional(value, "tableCatalog");
        if (catalog instanceof CatalogPlugin) json.entry("catalog", catalogs.number((CatalogPlugin) catalog));
        ofFormat(value, extractors, json);
        json.close();
    }

    /** What streams are written to in Spark's first way. It calls itself a table, and isn't. */
    private void sink(Object sink, Json json) throws Exception {
        json.open().entry("class", sink.getClass().getName());
        if (sink.getClass().getSimpleName().equals("FileStreamSink")) {
            json.entry("path", String.valueOf(LazyFields.value(sink, "path")));
            json.entry("fileFormat", LazyFields.value(sink, "fileFormat").getClass().getName());
            names("partitions", PlanWriter.list(LazyFields.value(sink, "partitionColumnNames")), json);
        }
        ofFormat(sink, extractors, json);
        json.close();
    }

    private void product(scala.Product value, PlanWriter plan, Json json, int depth) throws Exception {
        String name = value.getClass().getSimpleName();
        if (value.productArity() == 0) {
            json.value(name.endsWith("$") ? name.substring(0, name.length() - 1) : name);
            return;
        }
        json.open().entry("c", name);
        if (depth < DEEPEST) plan.arguments(value, json);
        if (value instanceof DataSource) ofFormat(value, extractors, json);
        json.close();
    }

    private void either(scala.util.Either value, PlanWriter plan, Json json, int depth) throws Exception {
        write(value.isLeft() ? value.left().get() : value.right().get(), plan, json, depth);
    }

    /** Only expressions: `{"x": [refs]}`; only plans: `{"p": […]}`; else a list. */
    private void sequence(List items, PlanWriter plan, Json json, int depth) throws Exception {
        boolean expressions = !items.isEmpty();
        for (int i = 0; i < items.size(); i++) expressions &= items.get(i) instanceof Expression;
        if (expressions && plan.skipsExpressions()) {
            json.open().key("x").openList().closeList().close();
            return;
        }
        if (expressions) {
            json.open().key("x").openList();
            int[] found = new int[items.size()];
            for (int i = 0; i < found.length; i++) found[i] = plan.expression((Expression) items.get(i));
            for (int i = 0; i < found.length; i++) json.value(found[i]);
            json.closeList().close();
            return;
        }
        json.openList();
        for (int i = 0; i < items.size(); i++) write(items.get(i), plan, json, depth);
        json.closeList();
    }

    private void entries(scala.collection.Map map, PlanWriter plan, Json json, int depth) throws Exception {
        json.open();
        java.util.TreeMap sorted = new java.util.TreeMap();
        scala.collection.Iterator each = map.iterator();
        while (each.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) each.next();
            sorted.put(String.valueOf(entry._1()), entry._2());
        }
        for (Iterator i = sorted.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            json.key((String) entry.getKey());
            write(entry.getValue(), plan, json, depth);
        }
        json.close();
    }

    private void javaEntries(Map map, PlanWriter plan, Json json, int depth) throws Exception {
        json.open();
        java.util.TreeMap sorted = new java.util.TreeMap();
        for (Iterator i = map.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            sorted.put(String.valueOf(entry.getKey()), entry.getValue());
        }
        for (Iterator i = sorted.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            json.key((String) entry.getKey());
            write(entry.getValue(), plan, json, depth);
        }
        json.close();
    }

    public static void properties(Map map, Json json) {
        json.open();
        java.util.TreeMap sorted = new java.util.TreeMap(map);
        for (Iterator i = sorted.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            if (!VOLATILE.matcher((String) entry.getKey()).matches() && entry.getValue() != null)
                json.entry((String) entry.getKey(), (String) entry.getValue());
        }
        json.close();
    }

    public static Map javaMap(scala.collection.Map map) {
        Map found = new java.util.HashMap();
        scala.collection.Iterator each = map.iterator();
        while (each.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) each.next();
            found.put(entry._1(), entry._2());
        }
        return found;
    }

    public void identifier(Identifier identifier, Json json) {
        json.open().key("namespace").openList();
        String[] parts = identifier.namespace();
        for (int i = 0; i < parts.length; i++) json.value(parts[i]);
        json.closeList().entry("name", identifier.name()).close();
    }

    public static void transform(Transform transform, Json json) {
        json.open().entry("transform", transform.name()).key("arguments").openList();
        org.apache.spark.sql.connector.expressions.Expression[] arguments = transform.arguments();
        for (int i = 0; i < arguments.length; i++) argument(arguments[i], json);
        json.closeList().close();
    }

    private static void argument(Object argument, Json json) {
        json.open();
        if (argument instanceof org.apache.spark.sql.connector.expressions.NamedReference) {
            json.key("column").openList();
            String[] parts = ((org.apache.spark.sql.connector.expressions.NamedReference) argument).fieldNames();
            for (int i = 0; i < parts.length; i++) json.value(parts[i]);
            json.closeList();
        } else {
            json.entry("text", argument.toString());
        }
        json.close();
    }

    /** A change's own getters: fieldNames, dataType, property, value … */
    private void change(Object change, PlanWriter plan, Json json, int depth) throws Exception {
        json.open().entry("change", change.getClass().getSimpleName());
        java.lang.reflect.Field[] fields = change.getClass().getDeclaredFields();
        for (int i = 0; i < fields.length; i++) {
            if (java.lang.reflect.Modifier.isStatic(fields[i].getModifiers())) continue;
            fields[i].setAccessible(true);
            Object value = fields[i].get(change);
            if (value == null) continue;
            json.key(fields[i].getName());
            if (value instanceof TableChange.ColumnPosition) json.value(value.toString());
            else if (value instanceof org.apache.spark.sql.connector.catalog.ColumnDefaultValue)
                json.value((String) LazyFields.value(value, "sql"));  // of a class that isn't public since 4.2
            else write(value, plan, json, depth);
        }
        json.close();
    }

    private void table(Table table, PlanWriter plan, Json json) throws Exception {
        json.open().entry("table", table.name()).entry("class", table.getClass().getName());
        layout(table, json);
        if (table instanceof RowLevelOperationTable) json.entry("command", ((RowLevelOperationTable) table).operation().command().name());
        if (table instanceof org.apache.spark.sql.connector.catalog.V1Table) {
            json.key("v1");
            catalogTable(((org.apache.spark.sql.connector.catalog.V1Table) table).v1Table(), plan, json);
        }
        ofFormat(table, extractors, json);
        json.close();
    }

    /** What a format says of a table or relation, into an open object: all of it, or nothing where it can't be read. */
    static void ofFormat(Object described, FormatExtractor[] extractors, Json json) {
        try {
            for (int i = 0; i < extractors.length; i++) {
                Json found = new Json().open();
                boolean isOwn = described instanceof BaseRelation ? extractors[i].relation(described, found) : extractors[i].table(described, found);
                if (!isOwn) continue;
                String text = found.close().toString();
                if (text.length() > 2) json.raw(text.substring(1, text.length() - 1));
                return;
            }
        } catch (Throwable e) {
            CaughtErrors.report("ValueWriter.ofFormat", e);
        }
    }

    /** Partitioning and properties, into an open object. */
    public static void layout(Table table, Json json) {
        json.key("partitioning").openList();
        Transform[] transforms = table.partitioning();
        for (int i = 0; i < transforms.length; i++) transform(transforms[i], json);
        json.closeList();
        if (table.properties() == null) return;
        json.key("properties");
        properties(table.properties(), json);
    }

    private void relation(BaseRelation relation, PlanWriter plan, Json json) throws Exception {
        json.open().entry("relation", relation.getClass().getName());
        if (relation instanceof HadoopFsRelation) {
            HadoopFsRelation files = (HadoopFsRelation) relation;
            json.entry("fileFormat", files.fileFormat().getClass().getName());
            json.entry("location", files.location().getClass().getName());
            json.entry("partitionSchema", plan.type(files.partitionSchema()));
            FilePaths.write(files, json);
            json.key("options");
            properties(javaMap(files.options()), json);
        }
        ofFormat(relation, extractors, json);
        json.close();
    }

    /** Values of a partition, as the catalog has them. */
    private void row(InternalRow row, Json json) throws Exception {
        json.openList();
        if (row instanceof org.apache.spark.sql.catalyst.expressions.GenericInternalRow) {
            Object[] cells = ((org.apache.spark.sql.catalyst.expressions.GenericInternalRow) row).values();
            for (int i = 0; i < cells.length; i++) json.value(cells[i] == null ? null : cells[i].toString());
        }
        json.closeList();
    }

    private void catalogTable(CatalogTable table, PlanWriter plan, Json json) {
        json.open().entry("schema", plan.type(table.schema()));
        catalogTable(table, json);
        json.close();
    }

    /** All but the schema, into an open object. */
    public static void catalogTable(CatalogTable table, Json json) {
        json.entry("type", table.tableType().name());
        json.entry("catalog", (String) ScalaOptions.get(table.identifier().catalog()));
        json.entry("database", (String) ScalaOptions.get(table.identifier().database())).entry("name", table.identifier().table());
        json.entry("provider", (String) ScalaOptions.get(table.provider())).entry("owner", table.owner());
        json.entry("comment", (String) ScalaOptions.get(table.comment())).entry("created", table.createTime());
        json.entry("viewText", (String) ScalaOptions.get(table.viewText()));
        names("partitions", PlanWriter.list(table.partitionColumnNames()), json);
        if (table.bucketSpec().isDefined()) bucket((org.apache.spark.sql.catalyst.catalog.BucketSpec) table.bucketSpec().get(), json);
        json.key("properties");
        properties(javaMap(table.properties()), json);
        json.key("storage");
        storage(table.storage(), json);
    }

    private static void bucket(org.apache.spark.sql.catalyst.catalog.BucketSpec spec, Json json) {
        json.key("bucket").open().entry("number", spec.numBuckets());
        names("columns", PlanWriter.list(spec.bucketColumnNames()), json);
        names("sorted", PlanWriter.list(spec.sortColumnNames()), json);
        json.close();
    }

    private static void names(String key, List names, Json json) {
        json.key(key).openList();
        for (int i = 0; i < names.size(); i++) json.value((String) names.get(i));
        json.closeList();
    }

    private static void storage(CatalogStorageFormat storage, Json json) {
        json.open();
        Object location = ScalaOptions.get(storage.locationUri());
        if (location != null) json.entry("location", location.toString());
        json.entry("serde", (String) ScalaOptions.get(storage.serde())).entry("input", (String) ScalaOptions.get(storage.inputFormat()));
        json.key("options");
        properties(javaMap(storage.properties()), json);
        json.close();
    }
}
