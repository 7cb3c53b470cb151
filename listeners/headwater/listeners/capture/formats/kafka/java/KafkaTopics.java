package headwater.capture;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Which topics a query's rows say they go to, where it says so with words of its own rather than with data. */
final class KafkaTopics {
    private static final String PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider";
    private static final String COLUMN = "topic";
    private static final int MOST = 1000;

    private final PlanWriter plan;
    private final Json json;
    private int found;

    private KafkaTopics(PlanWriter plan, Json json) {
        this.plan = plan;
        this.json = json;
    }

    static boolean isWrite(QueryPlan command) throws Exception {
        Object target = LazyFields.optional(command, "dataSource");
        if (target == null) target = LazyFields.optional(command, "table");
        if (target instanceof DataSourceV2Relation) target = ((DataSourceV2Relation) target).table();
        return target != null && target.getClass().getName().startsWith(PROVIDER);
    }

    /** `{"topics": [{"topic": "t", "branches": [[node of the UNION, which of its children], …]}, …]}`; no topic: data says it. */
    static void written(QueryPlan command, PlanWriter plan, Json json) throws Exception {
        Object query = LazyFields.optional(command, "query");
        if (!(query instanceof QueryPlan)) return;
        json.key("kafka").open().key("topics").openList();
        List output = PlanWriter.list(((QueryPlan) query).output());
        KafkaTopics topics = new KafkaTopics(plan, json);
        for (int i = 0; i < output.size(); i++)
            if (((Attribute) output.get(i)).name().equals(COLUMN)) topics.of((QueryPlan) query, id(output.get(i)), new ArrayList());
        json.closeList().close();
    }

    private void of(QueryPlan start, long column, List branches) throws Exception {
        QueryPlan at = start;
        long wanted = column;
        while (at != null && !(at instanceof Union)) {
            Object named = at instanceof Project ? named(((Project) at).projectList(), wanted)
                : at instanceof Aggregate ? named(((Aggregate) at).aggregateExpressions(), wanted) : null;
            Object value = named instanceof Alias ? ((Alias) named).child() : named;
            if (value instanceof Literal && ((Literal) value).value() instanceof org.apache.spark.unsafe.types.UTF8String) {
                addTopic(((Literal) value).value().toString(), branches);
                return;
            }
            if (value instanceof Attribute) wanted = id(value);
            else if (value != null) break;
            at = giving(at, wanted);
        }
        if (at instanceof Union) united((Union) at, wanted, branches);
        else addTopic(null, branches);
    }

    private void united(Union union, long wanted, List branches) throws Exception {
        List output = PlanWriter.list(union.output());
        int place = -1;
        for (int i = 0; i < output.size(); i++) if (id(output.get(i)) == wanted) place = i;
        List children = PlanWriter.list(union.children());
        for (int i = 0; i < children.size() && place >= 0 && found < MOST; i++) {
            QueryPlan child = (QueryPlan) children.get(i);
            List deeper = new ArrayList(branches);
            deeper.add(new int[] {plan.node(union), i});
            of(child, id(PlanWriter.list(child.output()).get(place)), deeper);
        }
        if (place < 0 || found >= MOST) addTopic(null, branches);
    }

    private void addTopic(String topic, List branches) {
        found++;
        json.open().entry("topic", topic).key("branches").openList();
        for (int i = 0; i < branches.size(); i++) {
            int[] branch = (int[]) branches.get(i);
            json.openList().value(branch[0]).value(branch[1]).closeList();
        }
        json.closeList().close();
    }

    private static Object named(Object expressions, long wanted) {
        List each = PlanWriter.list(expressions);
        for (int i = 0; i < each.size(); i++)
            if (each.get(i) instanceof NamedExpression && ((NamedExpression) each.get(i)).exprId().id() == wanted) return each.get(i);
        return null;
    }

    /** The one child that has this column. */
    private static QueryPlan giving(QueryPlan plan, long wanted) {
        QueryPlan giver = null;
        List children = PlanWriter.list(plan.children());
        for (int c = 0; c < children.size(); c++) {
            List output = PlanWriter.list(((QueryPlan) children.get(c)).output());
            for (int i = 0; i < output.size(); i++) {
                if (id(output.get(i)) != wanted) continue;
                if (giver != null) return null;
                giver = (QueryPlan) children.get(c);
                break;
            }
        }
        return giver;
    }

    private static long id(Object attribute) { return ((Attribute) attribute).exprId().id(); }
}
