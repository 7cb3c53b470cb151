package headwater.capture;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.hudi.HoodieCDCFileIndex;
import org.apache.hudi.HoodieFileIndex;
import org.apache.hudi.HoodieIncrementalFileIndex;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.HoodieCatalogTable;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.RowDataSourceScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.hudi.command.MergeIntoHoodieTableCommand;

/** What is known of Hudi's tables, of what was read of them, and of what became of their timelines. */
public final class HudiExtractor implements FormatExtractor, FormatCommands {
    public String format() { return "hudi"; }

    public boolean showsLiterals(QueryPlan command) { return false; }

    public boolean namesSessionTables(QueryPlan command) { return command.getClass().getName().startsWith("org.apache.spark.sql.hudi.command."); }

    /** A table as Hudi's commands hold it. */
    public boolean table(Object table, Json json) throws Exception {
        if (HudiTargets.isSink(table)) {
            json.key("hudi").open().entry("path", HudiTargets.path(table)).close();
            return true;
        }
        if (!(table instanceof HoodieCatalogTable)) return false;
        HoodieCatalogTable hudi = (HoodieCatalogTable) table;
        json.key("hudi").open().entry("path", hudi.tableLocation());
        json.entry("database", (String) ScalaOptions.get(hudi.table().identifier().database())).entry("name", hudi.table().identifier().table());
        json.close();
        return true;
    }

    public boolean relation(Object relation, Json json) throws Exception {
        if (relation.getClass().getName().equals("org.apache.hudi.EmptyRelation")) {
            json.key("hudi").open().entry("empty", true).close();
            return true;
        }
        HoodieTableMetaClient client = client(relation);
        if (client == null) return false;
        json.key("hudi").open().entry("path", client.getBasePath().toString());
        if (isOfChanges(relation)) json.entry("changes", true);
        json.close();
        return true;
    }

    /** Of the relations that read a table's rows. */
    static HoodieTableMetaClient client(Object relation) throws Exception {
        HoodieFileIndex index = index(relation);
        if (index != null) return index.metaClient();
        String name = relation == null ? "" : relation.getClass().getName();
        boolean isOthers = !name.startsWith("org.apache.hudi.") || !name.contains("Relation")
            || name.endsWith(".TimelineRelation") || name.endsWith(".FileSystemRelation");
        Object client = isOthers ? null : LazyFields.optional(relation, "metaClient");
        return client instanceof HoodieTableMetaClient ? (HoodieTableMetaClient) client : null;
    }

    private static HoodieFileIndex index(Object relation) {
        if (!(relation instanceof HadoopFsRelation)) return null;
        Object location = ((HadoopFsRelation) relation).location();
        return location instanceof HoodieFileIndex ? (HoodieFileIndex) location : null;
    }

    private static boolean isOfChanges(Object relation) {
        Object index = index(relation);
        if (index != null) return index instanceof HoodieIncrementalFileIndex || index instanceof HoodieCDCFileIndex;
        return relation.getClass().getName().contains("Incremental") || relation.getClass().getName().contains("CDC");
    }

    public boolean read(Object leaf, Json json) throws Exception {
        Object relation = leaf instanceof LogicalRelation ? ((LogicalRelation) leaf).relation()
            : leaf instanceof FileSourceScanExec ? ((FileSourceScanExec) leaf).relation()
            : leaf instanceof RowDataSourceScanExec ? ((RowDataSourceScanExec) leaf).relation() : null;
        HoodieTableMetaClient client = client(relation);
        if (client == null) return false;
        json.entry("path", client.getBasePath().toString());
        describe(relation, client, json);
        if (leaf instanceof FileSourceScanExec) HudiTimeline.onScan((FileSourceScanExec) leaf, json);
        return true;
    }

    private static void describe(Object relation, HoodieTableMetaClient client, Json json) throws Exception {
        if (isOfChanges(relation)) changes(relation, client.getBasePath().toString(), json);
        else asked(relation, json);
        json.key("seen");
        HudiTimeline.list(client.getBasePath().toString(), HudiTimeline.commits(client), json);
    }

    /** Which instants the changes are of, as they were found when the relation was made. */
    private static void changes(Object relation, String path, Json json) throws Exception {
        json.entry("changes", true);
        Object index = index(relation);
        Object included = null;
        if (index instanceof HoodieIncrementalFileIndex)
            included = LazyFields.value(LazyFields.value(index, "mergeOnReadIncrementalRelation"), "includedCommits");
        else if (index instanceof HoodieCDCFileIndex)
            included = ((Map) LazyFields.value(((HoodieCDCFileIndex) index).cdcRelation().cdcExtractor(), "commits")).keySet();
        else included = LazyFields.optional(relation, "commitsToReturn");
        if (included == null && index == null) included = LazyFields.optional(relation, "includedCommits");
        if (included == null) return;
        List instants = included instanceof java.util.Collection ? new java.util.ArrayList((java.util.Collection) included) : PlanWriter.list(included);
        json.key("of");
        HudiTimeline.list(path, instants, json);
    }

    /** The instant that was asked for; and the last one when the relation was made, which may have been refreshed since. */
    private static void asked(Object relation, Json json) throws Exception {
        if (!(relation instanceof HadoopFsRelation)) return;
        Object asked = LazyFields.value(((HadoopFsRelation) relation).location(), "specifiedQueryInstant");
        if (asked instanceof Option && ((Option) asked).isPresent()) json.entry("asked", (String) ((Option) asked).get());
        json.entry("created", (String) LazyFields.optional(((HadoopFsRelation) relation).fileFormat(), "queryTimestamp"));
        HoodieFileIndex index = index(relation);
        if (index != null && !index.includeLogFiles() && index.metaClient().getTableType() == HoodieTableType.MERGE_ON_READ) json.entry("compacted", true);
    }

    /** All of it or nothing: what fails in the middle leaves no half of an object behind. */
    public void ended(Statement statement, Json json) throws Exception {
        Json found = new Json().open();
        lookedUp(statement, found);
        String text = found.close().toString();
        if (text.length() > 2) json.raw(text.substring(1, text.length() - 1));
    }

    private static void lookedUp(Statement statement, Json json) throws Exception {
        SparkSession session = statement.query.sparkSession();
        json.entry("began", statement.started).entry("ended", statement.ended);
        TreeSet paths = new TreeSet(HudiState.HOOK.take(statement.executions));
        if (statement.plan instanceof MergeIntoHoodieTableCommand) merged(((MergeIntoHoodieTableCommand) statement.plan).mergeInto(), json);
        if (HudiTargets.isHudis(statement.plan)) {
            LinkedHashSet wanted = new LinkedHashSet();
            boolean covered = HudiTargets.isCovered(statement, session, HudiTargets.options(statement.plan));
            json.entry("covered", covered && HudiTargets.callsBack(statement.plan));
            HudiTargets.collect(statement.plan, session, wanted);
            if (!wanted.isEmpty()) json.entry("target", (String) wanted.iterator().next());
            TableIdentifier name = HudiTargets.name(statement.plan, session);
            if (name != null) json.key("table").open().entry("database", (String) ScalaOptions.get(name.database())).entry("name", name.table()).close();
            if (!covered || !HudiTargets.callsBack(statement.plan)) paths.addAll(wanted);
        }
        if (statement.stream != null) HudiTargets.streamed(statement, session, paths, json);
        if (paths.isEmpty()) return;
        Json evolved = new Json().openList();
        json.key("timelines").open();
        for (Iterator i = paths.iterator(); i.hasNext();) {
            String path = (String) i.next();
            HoodieTableMetaClient client = HudiTimeline.opened(session, path);
            if (client == null) continue;
            HudiTimeline.write(client, path, statement.started, json);
            HudiTimeline.evolved(client, path, statement.started, evolved);
        }
        json.close().key("evolved").raw(evolved.closeList().toString());
    }

    /** A MERGE runs its plan where nobody sees it: what its relations are is all there is. */
    private static void merged(LogicalPlan plan, Json json) throws Exception {
        json.key("relations").openList();
        relations(plan, json);
        json.closeList();
    }

    private static void relations(LogicalPlan plan, Json json) throws Exception {
        Object relation = plan instanceof LogicalRelation ? ((LogicalRelation) plan).relation() : null;
        HoodieTableMetaClient client = client(relation);
        if (client != null) {
            json.open().entry("format", "hudi").entry("path", client.getBasePath().toString());
            describe(relation, client, json);
            json.close();
        }
        List children = PlanWriter.list(plan.children());
        for (int i = 0; i < children.size(); i++) relations((LogicalPlan) children.get(i), json);
    }
}
