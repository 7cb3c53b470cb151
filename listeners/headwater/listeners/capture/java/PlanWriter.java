package headwater.capture;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryOperator;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetArrayStructFields;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ExternalRDD;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Writes a plan as flat lists: types, attributes, expressions, nodes, each referring to what stands before it.
 *
 * Flat, because neither side may recurse over what a user's query nests. Ids of attributes are counted anew in the
 * order they are met, so that a statement reported twice is the same text twice. No literal's value is in it, but for true,
 * false and the arguments of procedures and partitions (`literal` true), unless the application captures SQL.
 *
 * A plan of more parts than anybody would follow is written without its columns: commands as they are, below them
 * operators that have no arguments, and leaves with one column in the place of all.
 */
public final class PlanWriter {
    /** So many columns, expressions and operators: what is above is written without columns. A test has fewer. */
    public static volatile int most = 100000;
    private static final int MOST_OF_ALL = 400000;
    private static final String NO_FIELDS = "{\"type\":\"struct\",\"fields\":[]}";
    private static final Map FIELDS = new java.util.concurrent.ConcurrentHashMap();

    private final ValueWriter values;
    private final boolean literals;
    private final Json types = new Json().openList();
    private final Json attributes = new Json().openList();
    private final Json expressions = new Json().openList();
    private final Json nodes = new Json().openList();
    private final Map typeIds = new HashMap();
    private final Map attributeIds = new HashMap();
    private final Map cteIds = new HashMap();
    /** By Spark's id of an expression that others name: its reference. */
    private final Map common = new HashMap();
    private final IdentityHashMap expressionIds = new IdentityHashMap();
    private final IdentityHashMap nodeIds = new IdentityHashMap();
    private final IdentityHashMap outputs = new IdentityHashMap();
    private final List rdds = new ArrayList();
    private final GeneratedNames madeUp = new GeneratedNames();
    /** Whether columns are left out, and whether that is so where we are. */
    private final boolean isBrief;
    private boolean inBrief;
    private int attributeCount;
    private boolean showLiterals;

    public PlanWriter(ValueWriter values, boolean literals) { this(values, literals, false); }

    private PlanWriter(ValueWriter values, boolean literals, boolean isBrief) {
        this.values = values;
        this.isBrief = isBrief;
        this.literals = literals;
        this.showLiterals = literals;
    }

    /** The writer of a plan that was written, without columns if they are too many; `finish` with its root gives the text. */
    public static PlanWriter of(LogicalPlan plan, ValueWriter values, boolean literals) throws Exception {
        PlanWriter writer = new PlanWriter(values, literals);
        try {
            writer.node(plan);
            return writer;
        } catch (TooLarge e) {
            writer = new PlanWriter(values, literals, true);
            writer.node(plan);
            return writer;
        }
    }

    /** Whether expressions are left out, where we are. */
    boolean skipsExpressions() { return inBrief; }

    /** The number that an attribute of the plan has in the text, or -1 where it isn't in it. */
    public int known(long exprId) {
        Integer id = (Integer) attributeIds.get(Long.valueOf(exprId));
        return id == null ? -1 : id.intValue();
    }

    /** The number of a node that was written. */
    public Integer numberOf(QueryPlan plan) { return (Integer) nodeIds.get(plan); }

    /** The whole as one object. */
    public String finish(int root) {
        Json whole = new Json().open().entry("root", root).entry("sessionCatalog", values.sessionCatalog());
        if (isBrief) whole.entry("brief", most);
        whole.key("types").raw(types.closeList().toString());
        whole.key("attributes").raw(attributes.closeList().toString());
        whole.key("expressions").raw(expressions.closeList().toString());
        whole.key("nodes").raw(nodes.closeList().toString());
        return whole.close().toString();
    }

    /**
     * Facts of the RDDs that the plan reads: Spark's own ids of their columns, by which a column is known again that
     * another statement kept (a checkpoint's have the ids of the plan that it was made of).
     */
    public List rdds() throws Exception {
        List facts = new ArrayList();
        for (int i = 0; i < rdds.size(); i++) {
            LogicalRDD rdd = (LogicalRDD) rdds.get(i);
            Json json = new Json().open().entry("node", (Number) nodeIds.get(rdd)).key("ids").openList();
            List output = list(rdd.output());
            for (int a = 0; a < output.size(); a++) json.value(((Attribute) output.get(a)).exprId().id());
            facts.add(json.closeList().entry("rdd", rdd.rdd().id()).close().toString());
        }
        return facts;
    }

    public int node(QueryPlan plan) throws Exception {
        Integer known = (Integer) nodeIds.get(plan);
        if (known != null) return known.intValue();
        boolean before = showLiterals;
        boolean wasBrief = inBrief;
        inBrief = isBrief && !isWrite(plan);
        showLiterals = literals || values.showsLiterals(plan);
        List children = list(plan.children());
        if (inBrief) children = withSubqueries(plan, children, !wasBrief);
        Json json = new Json().open().entry("c", plan.getClass().getSimpleName());
        if (!plan.getClass().getName().startsWith("org.apache.spark.sql.")) json.entry("class", plan.getClass().getName());
        json.key("in").openList();
        int[] inputs = new int[children.size()];
        for (int i = 0; i < inputs.length; i++) inputs[i] = node((QueryPlan) children.get(i));
        for (int i = 0; i < inputs.length; i++) json.value(inputs[i]);
        json.closeList();
        if (inBrief) briefOutput(plan, !wasBrief, json);
        else output(plan, children, json);
        json.key("args").open();
        if (!inBrief || plan.children().isEmpty()) arguments((scala.Product) plan, json);
        json.close().close();
        showLiterals = before;
        inBrief = wasBrief;
        int id = nodeIds.size();
        if (id + expressionIds.size() + attributeCount > (isBrief ? MOST_OF_ALL : most)) throw new TooLarge();
        nodeIds.put(plan, Integer.valueOf(id));
        nodes.raw(json.toString());
        return id;
    }

    /** A call of a procedure as the one node that it is in a plan. */
    public int call(ProcedureCall called) throws Exception {
        Object[] arguments = called.arguments;
        Json references = new Json().openList();
        for (int i = 0; i < arguments.length; i++) references.value(i);
        for (int i = 0; i < arguments.length; i++) {
            String text = arguments[i] == null ? null : values.shortened(arguments[i].toString());
            expressions.openList().value("Literal").openList().closeList().open().key("value").value(text).close().closeList();
        }
        Json json = new Json().open().entry("c", "Call").key("in").openList().closeList().key("out").openList().closeList();
        json.key("args").open().key("procedure");
        values.write(called.procedure, this, json, 0);
        json.key("args").open().key("x").raw(references.closeList().toString()).close().close().close();
        nodes.raw(json.toString());
        return 0;
    }

    /** "out" stays away where it is the first child's, and is "*" where it is all children's. */
    private void output(QueryPlan plan, List children, Json json) throws Exception {
        List own;
        try {
            own = list(plan.output());
        } catch (Throwable unresolved) {
            CaughtErrors.logUnforeseen("PlanWriter.output", unresolved);
            return;
        }
        long[] ids = new long[own.size()];
        for (int i = 0; i < ids.length; i++) ids[i] = ((Attribute) own.get(i)).exprId().id();
        outputs.put(plan, ids);
        if (!children.isEmpty() && same(ids, children.subList(0, 1))) return;
        json.key("out");
        if (children.size() > 1 && same(ids, children)) {
            json.value("*");
            return;
        }
        json.openList();
        for (int i = 0; i < ids.length; i++) json.value(attribute((Attribute) own.get(i)));
        json.closeList();
    }

    /** Plans in the expressions of an operator, which aren't written, beside its children. The columns of a topmost one count. */
    private List withSubqueries(QueryPlan plan, List children, boolean isTop) throws Exception {
        if (isTop) {
            List own = list(plan.output());
            for (int i = 0; i < own.size(); i++) attribute((Attribute) own.get(i));
        }
        List found = new ArrayList(children);
        IdentityHashMap seen = new IdentityHashMap();
        List waiting = list(plan.expressions());
        while (!waiting.isEmpty()) {
            Expression next = (Expression) waiting.remove(waiting.size() - 1);
            if (seen.put(next, next) != null) continue;
            if (next instanceof PlanExpression) found.add(((PlanExpression) next).plan());
            if (!next.children().isEmpty()) waiting.addAll(list(next.children()));
        }
        return found;
    }

    /** A leaf has one column in the place of all that nothing else names; only a topmost operator has its own. */
    private void briefOutput(QueryPlan plan, boolean isTop, Json json) throws Exception {
        json.key("out").openList();
        java.util.LinkedHashSet ids = new java.util.LinkedHashSet();
        List own = isTop || plan.children().isEmpty() ? list(plan.output()) : new ArrayList();
        Integer first = null;
        for (int i = 0; i < own.size(); i++) {
            Attribute column = (Attribute) own.get(i);
            Long exprId = Long.valueOf(column.exprId().id());
            Integer known = (Integer) attributeIds.get(exprId);
            if (known == null && first != null) attributeIds.put(exprId, known = first);
            else if (known == null) known = first = Integer.valueOf(attribute(column));
            ids.add(known);
        }
        for (java.util.Iterator each = ids.iterator(); each.hasNext();) json.value(((Integer) each.next()).longValue());
        json.closeList();
    }

    private boolean same(long[] ids, List children) {
        int at = 0;
        for (int c = 0; c < children.size(); c++) {
            long[] theirs = (long[]) outputs.get(children.get(c));
            if (theirs == null || at + theirs.length > ids.length) return false;
            for (int i = 0; i < theirs.length; i++) if (ids[at++] != theirs[i]) return false;
        }
        return at == ids.length;
    }

    /** What a case class was made of, by name. */
    public void arguments(scala.Product product, Json json) throws Exception {
        if (product instanceof LocalRelation) {
            json.entry("rows", ((LocalRelation) product).data().size());
            return;
        }
        if (product instanceof LogicalRDD) {
            rdds.add(product);
            RddSources.of(((LogicalRDD) product).rdd()).write(json);
            return;
        }
        if (product instanceof ExternalRDD) {
            RddSources.of(((ExternalRDD) product).rdd()).write(json);
            return;
        }
        String[] names = names(product);
        for (int i = 0; i < names.length; i++) {
            Object value = product.productElement(i);
            if (value == null || value instanceof QueryPlanningTracker || values.isNoise(names[i], value)) continue;
            if (GeneratedNames.is(product, names[i], value)) continue;
            json.key(names[i]);
            if (isOfCte(product, names[i])) json.value(cte((Long) value));
            else values.write(value, this, json, 0);
        }
        if (product instanceof AlterTableCommand) changes((AlterTableCommand) product, json);
        if (product instanceof QueryPlan && isWrite(product)) command((QueryPlan) product, json);
    }

    private static boolean isWrite(Object plan) {
        return plan instanceof Command || plan.getClass().getSimpleName().equals("WriteToMicroBatchDataSource");
    }

    private void command(QueryPlan command, Json json) throws Exception {
        FormatExtractor[] extractors = values.extractors();
        for (int i = 0; i < extractors.length; i++) if (extractors[i] instanceof CommandExtractor) ((CommandExtractor) extractors[i]).command(command, this, json);
    }

    private static boolean isOfCte(Object product, String name) {
        String type = product.getClass().getSimpleName();
        return name.equals("id") && type.equals("CTERelationDef") || name.equals("cteId") && type.equals("CTERelationRef");
    }

    /** Spark counts the parts of WITH over all statements; here they are counted within this one. */
    private int cte(Long id) {
        Integer known = (Integer) cteIds.get(id);
        if (known == null) {
            known = Integer.valueOf(cteIds.size());
            cteIds.put(id, known);
        }
        return known.intValue();
    }

    /** What ALTER TABLE asks its catalog for; where Spark can't say it here, the arguments are all there is. */
    private void changes(AlterTableCommand command, Json json) throws Exception {
        Object changes;
        try {
            changes = command.changes();
        } catch (Throwable e) {
            CaughtErrors.logUnforeseen("PlanWriter.changes", e);
            return;
        }
        json.key("changes");
        values.write(changes, this, json, 0);
    }

    /**
     * Names of a case class's arguments. Its final fields hold them in order, after those of lazy values and among those
     * of other values, so each is recognised by what is in it.
     */
    private static String[] names(scala.Product product) throws Exception {
        String[] known = (String[]) FIELDS.get(product.getClass());
        if (known != null) return known;
        String[] names = new String[product.productArity()];
        Field[] fields = product.getClass().getDeclaredFields();
        int at = 0;
        for (int i = 0; i < names.length; i++) {
            int found = at;
            while (found < fields.length && !holds(fields[found], product, product.productElement(i))) found++;
            names[i] = found < fields.length ? fields[found].getName() : "_" + i;
            if (found < fields.length) at = found + 1;
        }
        FIELDS.put(product.getClass(), names);
        return names;
    }

    private static boolean holds(Field field, Object owner, Object value) throws Exception {
        if (Modifier.isStatic(field.getModifiers()) || !Modifier.isFinal(field.getModifiers())) return false;
        field.setAccessible(true);
        Object there = field.get(owner);
        return there == value || field.getType().isPrimitive() && there.equals(value);
    }

    /** A reference: expressions by their place, attributes below zero, as -1 - id. */
    public int expression(Expression expression) throws Exception {
        if (expression instanceof Attribute) return -1 - attribute((Attribute) expression);
        Integer known = (Integer) expressionIds.get(expression);
        if (known != null) return known.intValue();
        String kind = expression.getClass().getSimpleName();
        if (kind.equals("With")) return inlined(expression);
        if (kind.equals("CommonExpressionRef") && common.containsKey(LazyFields.value(expression, "id")))
            return ((Integer) common.get(LazyFields.value(expression, "id"))).intValue();
        List children = list(expression.children());
        int[] inputs = new int[children.size()];
        for (int i = 0; i < inputs.length; i++) inputs[i] = expression((Expression) children.get(i));
        Json json = new Json().openList().value(kind).openList();
        for (int i = 0; i < inputs.length; i++) json.value(inputs[i]);
        json.closeList();
        Json more = new Json().open();
        details(expression, more);
        more.close();
        if (more.length() > 2) json.raw(more.toString());
        json.closeList();
        int id = expressionIds.size();
        if (id + nodeIds.size() + attributeCount > (isBrief ? MOST_OF_ALL : most)) throw new TooLarge();
        expressionIds.put(expression, Integer.valueOf(id));
        expressions.raw(json.toString());
        return id;
    }

    /** Spark 4 names what an expression uses several times, as `nullif` does: the name stands for what it names. */
    private int inlined(Expression with) throws Exception {
        List definitions = list(LazyFields.value(with, "defs"));
        for (int i = 0; i < definitions.size(); i++) {
            Object definition = definitions.get(i);
            common.put(LazyFields.value(definition, "id"), Integer.valueOf(expression((Expression) LazyFields.value(definition, "child"))));
        }
        return expression((Expression) LazyFields.value(with, "child"));
    }

    private void details(Expression expression, Json json) throws Exception {
        if (expression instanceof Alias) {
            json.entry("id", id(((Alias) expression).toAttribute())).entry("name", madeUp.stable(((Alias) expression).name(), attributeIds));
        } else if (expression instanceof Literal) {
            literal((Literal) expression, json);
        } else if (expression instanceof PlanExpression) {
            json.entry("plan", node(((PlanExpression) expression).plan()));
        } else if (expression instanceof GetStructField) {
            json.entry("field", field((GetStructField) expression));
        } else if (expression instanceof GetArrayStructFields) {
            json.entry("field", ((GetArrayStructFields) expression).field().name());
        } else if (expression instanceof CreateNamedStruct && expression.resolved()) {
            json.key("fields").openList();
            String[] fields = ((CreateNamedStruct) expression).dataType().fieldNames();
            for (int i = 0; i < fields.length; i++) json.value(fields[i]);
            json.closeList();
        } else if (expression instanceof Cast) {
            json.entry("type", type(((Cast) expression).dataType()));
        } else if (expression instanceof AggregateExpression) {
            if (((AggregateExpression) expression).isDistinct()) json.entry("distinct", true);
        } else if (expression instanceof StaticInvoke) {
            json.entry("function", ((StaticInvoke) expression).functionName());
        } else if (expression instanceof Invoke) {
            json.entry("function", ((Invoke) expression).functionName());
        } else if (expression instanceof BinaryOperator) {
            json.entry("symbol", ((BinaryOperator) expression).symbol());
        } else if (expression instanceof NamedExpression) {
            named((NamedExpression) expression, json);
        } else if (values.isSpelledOut(expression)) {
            json.key("args").open();
            arguments((scala.Product) expression, json);
            json.close();
        } else {
            String name = expression.prettyName();
            if (!name.equalsIgnoreCase(expression.getClass().getSimpleName())) json.entry("name", name);
            Object udf = values.nameOfFunction(expression);
            if (udf != null) json.entry("function", udf.toString());
        }
    }

    /** Variables of lambdas and the like: named, with an id, and no attributes. */
    private void named(NamedExpression expression, Json json) throws Exception {
        json.entry("name", madeUp.stable(expression.name(), attributeIds));
        int id;
        try {
            id = attribute(expression.toAttribute());
        } catch (Throwable none) {
            CaughtErrors.logUnforeseen("PlanWriter.named", none);
            try {
                id = counted(expression.exprId().id());
            } catch (Throwable unresolved) {
                CaughtErrors.logUnforeseen("PlanWriter.named.exprId", unresolved);
                return;
            }
        }
        json.entry("id", id);
    }

    private void literal(Literal literal, Json json) throws Exception {
        if (literal.value() == null) json.key("value").nothing();
        else if (literal.dataType() instanceof BooleanType) json.entry("value", ((Boolean) literal.value()).booleanValue());
        else if (showLiterals) json.entry("value", values.literal(literal));
        json.entry("type", type(literal.dataType()));
    }

    /** As the struct has it: a user's way of writing it may differ in case. */
    private static String field(GetStructField get) {
        try {
            return get.childSchema().apply(get.ordinal()).name();
        } catch (Throwable unresolved) {
            CaughtErrors.logUnforeseen("PlanWriter.field", unresolved);
            return String.valueOf(ScalaOptions.get(get.name()));
        }
    }

    private int id(Attribute attribute) throws Exception { return attribute(attribute); }

    /** `[name, type, nullable, metadata?, qualifier?]`, once for each attribute. */
    public int attribute(Attribute attribute) throws Exception {
        Long exprId;
        try {
            exprId = Long.valueOf(attribute.exprId().id());
        } catch (Throwable unresolved) {
            CaughtErrors.logUnforeseen("PlanWriter.attribute", unresolved);
            exprId = Long.valueOf(-1L - attributeIds.size());
        }
        Integer known = (Integer) attributeIds.get(exprId);
        if (known != null) return known.intValue();
        int id = attributeCount++;
        attributeIds.put(exprId, Integer.valueOf(id));
        String name = madeUp.stable(attribute.name(), attributeIds);
        madeUp.number(exprId, attribute.name());
        Json json = new Json().openList().value(name);
        try {
            json.value(type(attribute.dataType())).value(attribute.nullable());
            String metadata = attribute.metadata().json();
            if (metadata.length() > 2) json.value(metadata);
        } catch (Throwable unresolved) {
            CaughtErrors.logUnforeseen("PlanWriter.attribute.type", unresolved);
            // it has a name, and that is all
        }
        attributes.raw(json.closeList().toString());
        return id;
    }

    /** The dense number of an id of an expression that is no attribute of its own. */
    private int counted(long exprId) {
        Long key = Long.valueOf(exprId);
        Integer known = (Integer) attributeIds.get(key);
        if (known != null) return known.intValue();
        int id = attributeCount++;
        attributeIds.put(key, Integer.valueOf(id));
        attributes.nothing();
        return id;
    }

    public int type(DataType type) {
        String text = inBrief && type instanceof StructType ? NO_FIELDS : type.json();
        Integer known = (Integer) typeIds.get(text);
        if (known != null) return known.intValue();
        int id = typeIds.size();
        typeIds.put(text, Integer.valueOf(id));
        types.value(text);
        return id;
    }

    /** A Scala sequence as a list of Java's. */
    public static List list(Object sequence) {
        List found = new ArrayList();
        scala.collection.Iterator each = ((scala.collection.Iterable) sequence).iterator();
        while (each.hasNext()) found.add(each.next());
        return found;
    }

    /** More than anybody would read: it is written without columns, and reported as a gap if that is too large too. */
    public static final class TooLarge extends Exception { }
}
