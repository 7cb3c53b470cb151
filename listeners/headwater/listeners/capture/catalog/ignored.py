"""Commands of Spark's own of which nothing is told, and why; and those that nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.listeners.capture.commands import Command

_LOOKS: Final = "it only looks"
_SESSION: Final = "it changes the session only"
_STATISTICS: Final = "statistics don't change what a table is"
_CACHE: Final = "what is cached stays the same data"
_FUNCTIONS: Final = "functions are no datasets"
_TEMPORARY: Final = "temporary views are seen through"
_RESOURCES: Final = "files and jars of the session are no datasets"
_WRAPS: Final = "what it runs is seen by itself"
_VARIABLES: Final = "variables of the session are no datasets"
_INDEXES: Final = "an index doesn't change what a table is"

_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    _LOOKS: (
        "DescribeColumn",
        "DescribeColumnCommand",
        "DescribeDatabaseCommand",
        "DescribeFunction",
        "DescribeFunctionCommand",
        "DescribeNamespace",
        "DescribeQueryCommand",
        "DescribeRelation",
        "DescribeRelationJsonCommand",
        "DescribeTableCommand",
        "ExplainCommand",
        "ListArchivesCommand",
        "ListFilesCommand",
        "ListJarsCommand",
        "ShowCatalogsCommand",
        "ShowColumns",
        "ShowColumnsCommand",
        "ShowCreateTable",
        "ShowCreateTableAsSerdeCommand",
        "ShowCreateTableCommand",
        "ShowCurrentNamespaceCommand",
        "ShowFunctions",
        "ShowFunctionsCommand",
        "ShowNamespaces",
        "ShowPartitions",
        "ShowPartitionsCommand",
        "ShowTableExtended",
        "ShowTablePartition",
        "ShowTableProperties",
        "ShowTablePropertiesCommand",
        "ShowTables",
        "ShowTablesCommand",
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
    _WRAPS: ("CompoundBody",),
    _VARIABLES: ("CreateVariable", "DropVariable", "SetVariable"),
    _INDEXES: ("CreateIndex", "DropIndex"),
}

COMMANDS: Final[Mapping[str, Command]] = {
    name: Command(ignored=reason) for reason, names in _REASONS.items() for name in names
}

_PUT_AWAY: Final = "Spark puts another command in its place before it runs"

GAPS: Final[Mapping[str, str]] = {
    "AlterViewAs": _PUT_AWAY,
    "AlterViewSchemaBinding": _PUT_AWAY,
    "CreateView": _PUT_AWAY,
    "LoadData": _PUT_AWAY,
    "MergeIntoTable": _PUT_AWAY,
    "SetTableSerDeProperties": _PUT_AWAY,
    "SetViewProperties": _PUT_AWAY,
    "UnsetViewProperties": _PUT_AWAY,
    "UpdateTable": _PUT_AWAY,
    "ExternalCommandExecutor": "what it does is a data source's own business",
}
"""Commands of Spark's that aren't in the register: each that runs is told as a Gap. Why they can't be told."""
