package headwater.lens;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Which nodes of plans may run while a lens redirects writes: an allow-list, by the names of their classes. A node that
 * isn't on it, such as a command that a later Spark or format brings, is refused by its name.
 */
final class PlanNodes {
    private static final String[] PACKAGES = {"org.apache.spark.sql.", "org.apache.paimon.spark."};

    /** They only read, and what they read is a leaf of the plan, or are names that aren't looked up yet. */
    static final String QUERIES = "Aggregate,AppendColumns,AppendColumnsWithObject,ArrowEvalPython,ArrowEvalPythonUDTF,"
        + "AsOfJoin,AttachDistributedSequence,BatchEvalPython,BatchEvalPythonUDTF,CDCNameBased,CDCPathBased,CTERelationDef,"
        + "CTERelationRef,CoGroup,CollectMetrics,CommandResult,CompoundBody,CurrentNamespace,DataFrameDropColumns,"
        + "DataSourceV2Relation,DataSourceV2ScanRelation,Deduplicate,DeduplicateWithinWatermark,DeltaInvariantChecker,"
        + "DescribeDeltaHistory,DeserializeToObject,Distinct,DomainJoin,DummyExpressionHolder,DummyRelation,EmptyRelation,"
        + "ErrorCondition,EventTimeWatermark,Except,ExceptionHandler,ExecuteImmediateQuery,Expand,"
        + "ExpressionLogicalPlanWrapper,ExternalRDD,"
        + "FakeLogicalPlan,FakePlanWithStats,Filter,FlatMapCoGroupsInArrow,FlatMapCoGroupsInPandas,FlatMapGroupsInArrow,"
        + "FlatMapGroupsInPandas,FlatMapGroupsInPandasWithState,FlatMapGroupsInR,FlatMapGroupsInRWithArrow,"
        + "FlatMapGroupsWithState,ForStatement,GeneralParameterizedQuery,Generate,GlobalLimit,HiveTableRelation,HoodieQuery,"
        + "HoodieFileSystemViewTableValuedFunction,HoodieFileSystemViewTableValuedFunctionByPath,"
        + "HoodieMetadataTableValuedFunction,HoodieTableChanges,HoodieTableChangesByPath,HoodieTimelineTableValuedFunction,"
        + "HoodieTimelineTableValuedFunctionByPath,IfElseStatement,InMemoryRelation,IncrementalQuery,Intersect,"
        + "IterateStatement,Join,LateralJoin,LeaveStatement,LimitAll,LocalLimit,LocalRelation,LogicalQueryStage,LogicalRDD,"
        + "LogicalRelation,LoopStatement,MapElements,MapGroups,MapInArrow,MapInPandas,MapPartitions,MapPartitionsInR,"
        + "MapPartitionsInRWithArrow,MemoryPlan,MergeRows,MultiResult,NameParameterizedQuery,Offset,OffsetHolder,"
        + "OneRowRelation,OrderAwareCoalesce,OrderedJoin,PipeOperator,Pivot,PlanWithUnresolvedIdentifier,"
        + "PosParameterizedQuery,Project,PythonMapInArrow,PythonWorkerLogs,Range,RebalancePartitions,RelationTimeTravel,"
        + "Repartition,RepartitionByExpression,RepeatStatement,ResolvedHint,ResolvedIdentifier,ResolvedInlineTable,"
        + "ResolvedNamespace,ResolvedNonPersistentFunc,ResolvedPathBasedNonDeltaTable,ResolvedPersistentFunc,"
        + "ResolvedPersistentView,ResolvedTable,ResolvedTempView,ResolvedV2View,ReturnAnswer,SQLFunctionNode,"
        + "SQLTableFunction,Sample,ScanBuilderHolder,SearchedCaseStatement,SerializeFromObject,SimpleCaseStatement,"
        + "SingleStatement,Sort,StreamingDataSourceV2Relation,StreamingDataSourceV2ScanRelation,StreamingExecutionRelation,"
        + "StreamingRelation,StreamingRelationV2,Subquery,SubqueryAlias,TableChanges,Tail,TemporaryViewRelation,TimeTravel,"
        + "TimeTravelRelation,TransformWithState,TransformWithStateInPandas,TransformWithStateInPySpark,Transpose,TypedFilter,Union,UnionLoop,"
        + "UnionLoopRef,Unpivot,UnresolvedCatalogRelation,UnresolvedCteRelationRef,UnresolvedDataSource,"
        + "UnresolvedEventTimeWatermark,UnresolvedExecuteImmediate,UnresolvedFunctionName,UnresolvedHaving,UnresolvedHint,"
        + "UnresolvedIdentifier,UnresolvedInlineTable,UnresolvedNamespace,UnresolvedPathBasedDeltaTable,"
        + "UnresolvedPathBasedDeltaTableRelation,UnresolvedPathBasedTable,UnresolvedRelation,"
        + "UnresolvedSubqueryColumnAliases,UnresolvedTVFAliases,UnresolvedTable,UnresolvedTableOrView,"
        + "UnresolvedTableValuedFunction,UnresolvedTranspose,UnresolvedView,UnresolvedWith,UpdateEventTimeWatermarkColumn,"
        + "V2TableReference,View,WhileStatement,Window,WindowGroupLimit,With,WithCTE,WithWindowDefinition";

    /** Commands that change nothing, or nothing but the session. */
    static final String OF_SESSION = "AddArchivesCommand,AddFilesCommand,AddJarsCommand,CacheTable,CacheTableAsSelect,"
        + "ClearCacheCommand,CreateTempViewUsing,CreateVariable,DescribeColumn,DescribeColumnCommand,"
        + "DescribeDatabaseCommand,DescribeDeltaDetailCommand,DescribeDeltaHistoryCommand,DescribeFunction,"
        + "DescribeFunctionCommand,DescribeNamespace,DescribeProcedureCommand,DescribeQueryCommand,DescribeRelation,"
        + "DescribeRelationJsonCommand,DescribeTableCommand,DropTempViewCommand,DropVariable,ExplainCommand,"
        + "ListArchivesCommand,ListFilesCommand,ListJarsCommand,NoopCommand,PaimonShowColumnsCommand,RefreshFunction,"
        + "RefreshFunctionCommand,RefreshResource,RefreshTable,RefreshTableCommand,ResetCommand,SetCatalogAndNamespace,"
        + "SetCatalogCommand,SetCommand,SetNamespaceCommand,SetVariable,ShowCatalogsCommand,ShowColumns,ShowColumnsCommand,"
        + "ShowCreateTable,ShowCreateTableAsSerdeCommand,ShowCreateTableCommand,ShowCurrentNamespaceCommand,"
        + "ShowDeltaPartitionsCommand,ShowDeltaTableColumnsCommand,ShowFunctions,ShowFunctionsCommand,ShowHoodieCreateTableCommand,"
        + "ShowHoodieTablePartitionsCommand,ShowIcebergViews,ShowIndexes,ShowIndexesCommand,ShowNamespaces,"
        + "ShowNamespacesCommand,ShowPartitions,ShowPartitionsCommand,ShowProceduresCommand,ShowTableExtended,"
        + "ShowTablePartition,ShowTableProperties,ShowTablePropertiesCommand,ShowTables,ShowTablesCommand,"
        + "ShowTablesExtended,ShowViews,ShowViewsCommand,StreamingExplainCommand,UncacheTable";

    /** They change the session if they say that they are temporary, and else a catalog. */
    static final String MAYBE_TEMPORARY = "CreateFunctionCommand,CreateSQLFunctionCommand,DropFunctionCommand";

    /** They change nothing where the namespace is there already. */
    static final String NAMESPACES = "CreateDatabaseCommand,CreateNamespace";

    /** What starts a stream, whose sink is looked at, and what its batches are. */
    static final String STREAMS = "WriteToMicroBatchDataSource,WriteToMicroBatchDataSourceV1,WriteToStream,WriteToStreamStatement";

    /** They write one table or path, and in them stands which one. */
    static final String WRITES = "AddColumns:table,AlterColumn:table,AlterColumns:table,AlterHoodieTableAddColumnsCommand:tableId,"
        + "AlterHoodieTableChangeColumnCommand:tableIdentifier,AlterTableAddColumnsCommand:table,"
        + "AlterTableAddConstraint:table,AlterTableChangeColumnCommand:tableName,AlterTableCommand:table,"
        + "AlterTableDropConstraint:table,AlterTableDropPartitionCommand:tableName,"
        + "AlterTableSetPropertiesCommand:tableName,AlterTableUnsetPropertiesCommand:tableName,AlterViewAs:child,"
        + "AlterViewAsCommand:name,AnalyzeColumn:child,AnalyzeColumnCommand:tableIdent,AnalyzeTable:child,"
        + "AnalyzeTableCommand:tableIdent,AppendData:table,CommentOnTable:table,"
        + "CreateDataSourceTableAsSelectCommand:table,CreateDataSourceTableCommand:table,CreateDeltaTableCommand:table,"
        + "CreateHiveTableAsSelectCommand:tableDesc,CreateHoodieTableAsSelectCommand:table,CreateHoodieTableCommand:table,"
        + "CreateHoodieTableLikeCommand:targetTable,CreateTable:name|tableDesc,CreateTableAsSelect:name,"
        + "CreateTableCommand:table,CreateTableLikeCommand:targetTable,CreateView:child,CreateViewCommand:name,"
        + "DeleteCommand:target,DeleteFromPaimonTableCommand:relation,DeleteFromTable:table,"
        + "DeleteFromTableWithFilters:table,DeleteHoodieTableCommand:catalogTable,DeltaDelete:child,"
        + "DeltaDynamicPartitionOverwriteCommand:table,DeltaMergeInto:target,DeltaUpdateTable:child,DropColumns:table,"
        + "DropHoodieTableCommand:tableIdentifier,DropPartitions:table,DropTable:child,DropTableCommand:tableName,"
        + "DropView:child,InsertIntoDataSourceCommand:logicalRelation,InsertIntoHadoopFsRelationCommand:catalogTable|outputPath,"
        + "InsertIntoHiveTable:table,InsertIntoHoodieTableCommand:logicalRelation,InsertIntoStatement:table,"
        + "MergeIntoCommand:target,MergeIntoHoodieTableCommand:mergeInto.targetTable,MergeIntoPaimonTable:targetTable,"
        + "MergeIntoTable:targetTable,OptimizeTableCommand:child,OverwriteByExpression:table,"
        + "OverwritePartitionsDynamic:table,PaimonDynamicPartitionOverwriteCommand:table,RenameColumn:table,"
        + "ReplaceColumns:table,ReplaceData:table,ReplaceTable:name,ReplaceTableAsSelect:name,"
        + "SaveAsV1TableCommand:tableDesc,SaveIntoDataSourceCommand:options,SetTableProperties:table,TruncatePartition:table,"
        + "TruncateTable:table,TruncateTableCommand:tableName,UnsetTableProperties:table,UpdateCommand:target,"
        + "UpdateHoodieTableCommand:ut.table,UpdatePaimonTableCommand:relation,UpdateTable:table,WriteDelta:table";

    /** Streams that write no table: what `foreachBatch` does is checked when it does it. */
    static final String SINKS = "ConsoleTable,ForeachBatchSink,MemorySink,NoopTable";

    private static final String[] CHANGES = {"Delete", "Update", "MergeInto", "DeltaDelete", "DeltaUpdate", "DeltaMerge", "ReplaceData", "WriteDelta"};

    private static final Set QUERY_NODES = setOf(QUERIES);
    private static final Set SESSION_COMMANDS = setOf(OF_SESSION);
    private static final Set TEMPORARY_COMMANDS = setOf(MAYBE_TEMPORARY);
    private static final Set NAMESPACE_COMMANDS = setOf(NAMESPACES);
    private static final Set STREAM_NODES = setOf(STREAMS);
    private static final Set HARMLESS_SINKS = setOf(SINKS);
    private static final Map TARGETS = targets();

    private PlanNodes() { }

    /** Whether it is on the list at all, as anything. */
    static boolean isListed(LogicalPlan plan) {
        if (!isTrusted(plan)) return false;
        String name = name(plan);
        return QUERY_NODES.contains(name) || SESSION_COMMANDS.contains(name) || TARGETS.containsKey(name) || STREAM_NODES.contains(name)
            || TEMPORARY_COMMANDS.contains(name) || NAMESPACE_COMMANDS.contains(name);
    }

    static boolean isQuery(LogicalPlan plan) {
        return isTrusted(plan) && QUERY_NODES.contains(name(plan));
    }

    /** Whether a command changes nothing but the session; a namespace that is there isn't made. */
    static boolean isOfSession(LogicalPlan plan) {
        String name = name(plan);
        if (!isTrusted(plan)) return false;
        if (TEMPORARY_COMMANDS.contains(name)) return Boolean.TRUE.equals(Leaves.call(plan, "isTemp"));
        if (name.equals("CreateViewCommand")) return isTemporaryView(plan);
        if (NAMESPACE_COMMANDS.contains(name)) return Boolean.TRUE.equals(Leaves.call(plan, "ifNotExists")) && Namespaces.isThere(plan);
        return SESSION_COMMANDS.contains(name);
    }

    static boolean startsStream(LogicalPlan plan) {
        return isTrusted(plan) && name(plan).startsWith("WriteToStream");
    }

    static boolean isHarmlessSink(Object sink) {
        return sink.getClass().getName().startsWith("org.apache.spark.sql.execution.") && HARMLESS_SINKS.contains(name(sink));
    }

    /** Whether it writes a table or path that stands in it. */
    static boolean isWrite(LogicalPlan plan) {
        return isTrusted(plan) && TARGETS.containsKey(name(plan));
    }

    /** Whether it reads the rows of what it writes, as they are now: the rewrite has refused other reads of them. */
    static boolean changesRows(LogicalPlan plan) {
        String name = name(plan);
        for (int i = 0; i < CHANGES.length; i++) if (name.startsWith(CHANGES[i])) return true;
        return false;
    }

    /** What a command writes: a plan, an identifier, a table or a path; null if it says none. */
    static Object target(LogicalPlan plan) {
        String[] others = ((String) TARGETS.get(name(plan))).split("\\|");
        for (int i = 0; i < others.length; i++) {
            Object found = plan;
            String[] steps = others[i].split("\\.");
            for (int step = 0; step < steps.length && found != null; step++) found = Leaves.call(found, steps[step]);
            if (found instanceof scala.Option) found = ((scala.Option) found).isDefined() ? ((scala.Option) found).get() : null;
            if (found != null) return found;
        }
        return null;
    }

    static String name(Object node) {
        String name = node.getClass().getSimpleName();
        return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
    }

    private static boolean isTemporaryView(LogicalPlan plan) {
        Object type = Leaves.call(plan, "viewType");
        return type != null && !type.toString().startsWith("PersistedView");
    }

    private static boolean isTrusted(Object node) {
        String name = node.getClass().getName();
        for (int i = 0; i < PACKAGES.length; i++) if (name.startsWith(PACKAGES[i])) return true;
        return false;
    }

    private static Map targets() {
        Map found = new HashMap();
        String[] all = WRITES.split(",");
        for (int i = 0; i < all.length; i++) found.put(all[i].substring(0, all[i].indexOf(':')), all[i].substring(all[i].indexOf(':') + 1));
        return found;
    }

    private static Set setOf(String names) {
        return new HashSet(java.util.Arrays.asList(names.split(",")));
    }
}
