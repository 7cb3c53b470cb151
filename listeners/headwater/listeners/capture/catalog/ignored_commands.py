"""Commands of Spark's own of which nothing is recorded, and why; and those that can't be recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.listeners.capture.commands import CommandRule

_ONLY_READS: Final = "it only looks"
_SESSION: Final = "it changes the session only"
_STATISTICS: Final = "statistics don't change what a table is"
_CACHE: Final = "what is cached stays the same data"
_FUNCTIONS: Final = "functions are no datasets"
_TEMPORARY: Final = "temporary views are seen through"
_RESOURCES: Final = "files and jars of the session are no datasets"
_WRAPS_ANOTHER: Final = "what it runs is seen by itself"
_VARIABLES: Final = "variables of the session are no datasets"
_INDEXES: Final = "an index doesn't change what a table is"

_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    _ONLY_READS: (
        "DescribeColumn",
        "DescribeColumnCommand",
        "DescribeDatabaseCommand",
        "DescribeFunction",
        "DescribeFunctionCommand",
        "DescribeNamespace",
        "DescribeQueryCommand",
        "DescribeRelation",
        "DescribeRelationJsonCommand",
        "DescribeProcedureCommand",
        "DescribeTableCommand",
        "ExplainCommand",
        "ListArchivesCommand",
        "ListFilesCommand",
        "ListJarsCommand",
        "ShowCatalogsCommand",
        "ShowCollationsCommand",
        "ShowColumns",
        "ShowColumnsCommand",
        "ShowCreateTable",
        "ShowCreateTableAsSerdeCommand",
        "ShowCreateTableCommand",
        "ShowCurrentNamespaceCommand",
        "ShowFunctions",
        "ShowFunctionsCommand",
        "ShowNamespaces",
        "ShowNamespacesCommand",
        "ShowPartitions",
        "ShowPartitionsCommand",
        "ShowPartitionsJsonCommand",
        "ShowProceduresCommand",
        "ShowTableExtended",
        "ShowTablePartition",
        "ShowTableProperties",
        "ShowTablePropertiesCommand",
        "ShowTables",
        "ShowTablesCommand",
        "ShowTablesJsonCommand",
        "ShowTablesExtended",
        "ShowViews",
        "ShowViewsCommand",
        "StreamingExplainCommand",
    ),
    _SESSION: (
        "NoopCommand",
        "ResetCommand",
        "SetCatalogAndNamespace",
        "SetCatalogCommand",
        "SetCommand",
        "SetNamespaceCommand",
        "SetPathCommand",
    ),
    _STATISTICS: (
        "AnalyzeColumn",
        "AnalyzeColumnCommand",
        "AnalyzePartitionCommand",
        "AnalyzeTable",
        "AnalyzeTableCommand",
        "AnalyzeTables",
        "AnalyzeTablesCommand",
    ),
    _CACHE: (
        "CacheTable",
        "CacheTableAsSelect",
        "ClearCacheCommand",
        "ClearCacheCommand$",
        "RefreshResource",
        "RefreshTable",
        "RefreshTableCommand",
        "UncacheTable",
    ),
    _FUNCTIONS: (
        "CreateFunction",
        "CreateFunctionCommand",
        "CreateSQLFunctionCommand",
        "CreateUserDefinedFunction",
        "DropFunction",
        "DropFunctionCommand",
        "RefreshFunction",
        "RefreshFunctionCommand",
    ),
    _TEMPORARY: ("CreateTempViewUsing", "DropTempViewCommand"),
    _RESOURCES: ("AddArchivesCommand", "AddFilesCommand", "AddJarsCommand"),
    _WRAPS_ANOTHER: ("CompoundBody",),
    _VARIABLES: ("CreateVariable", "DropVariable", "SetVariable"),
    _INDEXES: ("CreateIndex", "DropIndex"),
}

COMMANDS: Final[Mapping[str, CommandRule]] = {
    name: CommandRule(ignored=reason) for reason, names in _REASONS.items() for name in names
}

_REPLACED_BY_SPARK: Final = "Spark puts another command in its place before it runs"

GAPS: Final[Mapping[str, str]] = {
    "AlterViewAs": _REPLACED_BY_SPARK,
    "AlterViewSchemaBinding": _REPLACED_BY_SPARK,
    "CreateView": _REPLACED_BY_SPARK,
    "LoadData": _REPLACED_BY_SPARK,
    "MergeIntoTable": _REPLACED_BY_SPARK,
    "SetTableSerDeProperties": _REPLACED_BY_SPARK,
    "SetViewProperties": _REPLACED_BY_SPARK,
    "UnsetViewProperties": _REPLACED_BY_SPARK,
    "UpdateTable": _REPLACED_BY_SPARK,
    "ExternalCommandExecutor": "what it does is a data source's own business",
}
"""Commands of Spark's that aren't in the register: each that runs is reported as a Gap. Why they can't be recorded."""
