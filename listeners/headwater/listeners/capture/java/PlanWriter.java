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
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;

/**
 * Writes a plan as flat lists: types, attributes, expressions, nodes, each referring to what stands before it.
 *
 * Flat, because neither side may recurse over what a user's query nests. Ids of attributes are counted anew in the
 * order they are met, so that a statement told twice is the same text twice. No literal's value is in it, but for true,
 * false and the arguments of procedures and partitions (`literal` true), unless the application captures SQL.
 */
public final class PlanWriter {
    private static final int MOST = 400000;
    private static final Map FIELDS = new java.util.concurrent.ConcurrentHashMap();

    private final Values values;
    private final boolean literals;
    private final Json types = new Json().openList();
    private final Json attributes = new Json().openList();
    private final Json expressions = new Json().openList();
    private final Json nodes = new Json().openList();
    private final Map typeIds = new HashMap();
    private final Map attributeIds = new HashMap();
    private final Map cteIds = new HashMap();
    private final IdentityHashMap expressionIds = new IdentityHashMap();
    private final IdentityHashMap nodeIds = new IdentityHashMap();
    private final IdentityHashMap outputs = new IdentityHashMap();
    private final List rdds = new ArrayList();
    private final MadeUp madeUp = new MadeUp();
    private boolean showLiterals;

    public PlanWriter(Values values, boolean literals) {
        this.values = values;
        this.literals = literals;
        this.showLiterals = literals;
    }

    /** The number that an attribute of the plan has in the text, or -1 where it isn't in it. */
    public int known(long exprId) {
        Integer id = (Integer) attributeIds.get(Long.valueOf(exprId));
        return id == null ? -1 : id.intValue();
    }

    /** The number of a node that was written. */
    public Integer numberOf(QueryPlan plan) { return (Integer) nodeIds.get(plan); }

    /** The whole as one object. */
    public String finish(int root) {
        Json whole = new Json().open().entry("root", root);
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
            facts.add(json.closeList().close().toString());
        }
        return facts;
    }

    public int node(QueryPlan plan) throws Exception {
        Integer known = (Integer) nodeIds.get(plan);
        if (known != null) return known.intValue();
        boolean before = showLiterals;
        showLiterals = literals || values.tellsLiterals(plan);
        Json json = new Json().open().entry("c", plan.getClass().getSimpleName());
        if (!plan.getClass().getName().startsWith("org.apache.spark.sql.")) json.entry("class", plan.getClass().getName());
        List children = list(plan.children());
        json.key("in").openList();
        int[] inputs = new int[children.size()];
        for (int i = 0; i < inputs.length; i++) inputs[i] = node((QueryPlan) children.get(i));
        for (int i = 0; i < inputs.length; i++) json.value(inputs[i]);
        json.closeList();
        output(plan, children, json);
        json.key("args").open();
        arguments((scala.Product) plan, json);
        json.close().close();
        showLiterals = before;
        int id = nodeIds.size();
        if (id + expressionIds.size() > MOST) throw new TooLarge();
        nodeIds.put(plan, Integer.valueOf(id));
        nodes.raw(json.toString());
        return id;
    }

    /** A call of a procedure as the one node that it is in a plan. */
    public int call(Called called) throws Exception {
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
            return;
        }
        String[] names = names(product);
        for (int i = 0; i < names.length; i++) {
            Object value = product.productElement(i);
            if (value == null || value instanceof QueryPlanningTracker || values.isNoise(names[i], value)) continue;
            if (MadeUp.is(product, names[i], value)) continue;
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
        Eye[] eyes = values.eyes();
        for (int i = 0; i < eyes.length; i++) if (eyes[i] instanceof CommandEye) ((CommandEye) eyes[i]).command(command, this, json);
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
        List children = list(expression.children());
        int[] inputs = new int[children.size()];
        for (int i = 0; i < inputs.length; i++) inputs[i] = expression((Expression) children.get(i));
        Json json = new Json().openList().value(expression.getClass().getSimpleName()).openList();
        for (int i = 0; i < inputs.length; i++) json.value(inputs[i]);
        json.closeList();
        Json more = new Json().open();
        details(expression, more);
        more.close();
        if (more.length() > 2) json.raw(more.toString());
        json.closeList();
        int id = expressionIds.size();
        if (id + nodeIds.size() > MOST) throw new TooLarge();
        expressionIds.put(expression, Integer.valueOf(id));
        expressions.raw(json.toString());
        return id;
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
            try {
                id = counted(expression.exprId().id());
            } catch (Throwable unresolved) {
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
            return String.valueOf(Options.get(get.name()));
        }
    }

    private int id(Attribute attribute) throws Exception { return attribute(attribute); }

    /** `[name, type, nullable, metadata?, qualifier?]`, once for each attribute. */
    public int attribute(Attribute attribute) throws Exception {
        Long exprId;
        try {
            exprId = Long.valueOf(attribute.exprId().id());
        } catch (Throwable unresolved) {
            exprId = Long.valueOf(-1L - attributeIds.size());
        }
        Integer known = (Integer) attributeIds.get(exprId);
        if (known != null) return known.intValue();
        int id = attributeIds.size();
        attributeIds.put(exprId, Integer.valueOf(id));
        String name = madeUp.stable(attribute.name(), attributeIds);
        madeUp.met(exprId, attribute.name());
        Json json = new Json().openList().value(name);
        try {
            json.value(type(attribute.dataType())).value(attribute.nullable());
            String metadata = attribute.metadata().json();
            if (metadata.length() > 2) json.value(metadata);
        } catch (Throwable unresolved) {
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
        int id = attributeIds.size();
        attributeIds.put(key, Integer.valueOf(id));
        attributes.nothing();
        return id;
    }

    public int type(DataType type) {
        String text = type.json();
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

    /** More than anybody would read: the statement is told as a gap. */
    public static final class TooLarge extends Exception { }
}
