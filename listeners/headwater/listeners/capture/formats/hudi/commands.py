"""Hudi's own commands: what each writes and reads, and what it does to a catalog. All of the jar's are here.

Those of DDL stand in the place of Spark's, with the same arguments under other names. They change a catalog as Spark's
do, and make instants beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import AlterTable, CreateTable, Event, TableName
from headwater.events.catalog import ModificationCause, TableModification
from headwater.events.changes import TableChange
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.scalars import FieldPath
from headwater.events.tables import Table
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture import catalog
from headwater.listeners.capture.catalog.named_tables import name_v1_table
from headwater.listeners.capture.catalog.occurrence import StatementContext
from headwater.listeners.capture.catalog.table_changes import parse_changes
from headwater.listeners.capture.catalog.table_modification import alter_events_by_name, table_after
from headwater.listeners.capture.commands import CatalogTranslator, CommandRule
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext
from headwater.listeners.capture.formats.hudi import procedures
from headwater.listeners.capture.formats.hudi.sinks import (
    columns_by_own_name,
    created_table_target,
    named_table_target,
    session_hints,
    sink_of,
)
from headwater.listeners.capture.formats.hudi.table_refs import HUDI_COLUMNS, place_path, without_internal_columns
from headwater.listeners.capture.formats.hudi.timelines import (
    produced_by,
    recorded_commits,
    timeline_facts,
)
from headwater.listeners.capture.formats.hudi.write_results import commits_to
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.formats.schema_diff import SchemaDiff, fields_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_RENAMED_ARGUMENT: Final = "tableIdentifier"


def _as_spark_command(sparks: str, **arguments: str) -> CatalogTranslator:
    """Reported as Spark's own command is, whose arguments have these names here."""

    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
        read = catalog.COMMANDS[sparks].catalog
        assert read is not None  # noqa: S101 - it is one that modifies a catalog
        own = {name: node.args[here] for name, here in arguments.items() if here in node.args}
        for event in read(replace(node, args={**node.args, **own}), statement, context):
            yield _with_instant(event, statement)

    return translate


def _with_instant(event: Event, statement: Statement) -> Event:
    """With the instant that it made, where it made one, and without what Hudi keeps for itself."""
    if not isinstance(event, TableModification):
        return event
    update: dict[str, Any] = {}
    commits = recorded_commits(statement.facts)
    if commits and not isinstance(event, CreateTable):
        update |= produced_by(commits[-1], statement.facts)
    for name in ("table", "new_table"):
        table = getattr(event, name, None)
        if isinstance(table, Table):
            update[name] = table.model_copy(update={"columns": without_internal_columns(table.columns)})
    return event.model_copy(update=update) if update else event


create_table: Final = _as_spark_command("CreateDataSourceTableCommand")
create_table_like: Final = _as_spark_command("CreateTableLikeCommand", ifNotExists="ignoreIfExists")
add_columns: Final = _as_spark_command("AlterTableAddColumnsCommand", tableName="tableId")
change_column: Final = _as_spark_command("AlterTableChangeColumnCommand", tableName=_RENAMED_ARGUMENT)
rename_table: Final = _as_spark_command("AlterTableRenameCommand")
add_partitions: Final = _as_spark_command("AlterTableAddPartitionCommand", tableName=_RENAMED_ARGUMENT)
drop_partitions: Final = _as_spark_command(
    "AlterTableDropPartitionCommand", tableName=_RENAMED_ARGUMENT, specs="partitionSpecs"
)
drop_table: Final = _as_spark_command("DropTableCommand", tableName=_RENAMED_ARGUMENT)
truncate_table: Final = _as_spark_command("TruncateTableCommand", tableName=_RENAMED_ARGUMENT)
repair_table: Final = _as_spark_command("RepairTableCommand")


def alter_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """ALTER TABLE where Hudi evolves schemas on read: the changes that Spark asks a catalog for."""
    named = name_v1_table(node.args["table"], context)
    asked: list[TableChange] = list(parse_changes(node.args.get("changes", ()), statement.plan))
    new = table_after(named, statement)
    for event in alter_events_by_name(named, asked, new, StatementContext(statement, context)):
        yield _with_instant(event, statement)


def schema_changes(target: WriteTarget, statement: Statement, context: CaptureContext) -> tuple[AlterTable, ...]:
    """How a write changed the schema: that of its commit beside that of the commit before it."""
    changed = [change for change in timeline_facts(statement.facts).get("evolved", ()) if _is_of(change, target)]
    return tuple(_schema_changes_of(change, target, statement, context) for change in changed)


def _is_of(fields: Mapping[str, Any], target: WriteTarget) -> bool:
    return target.sink.dataset is None or place_path(fields["path"], target.hints["environment"]) == target.sink.dataset


def _schema_changes_of(
    fields: Mapping[str, Any], target: WriteTarget, statement: Statement, context: CaptureContext
) -> AlterTable:
    columns, new = columns_from_schema_json(fields["before"]), columns_from_schema_json(fields["after"])
    table = Table(
        columns=columns,
        partitioning=target.sink.partitioning,
        primary_key=target.sink.primary_key,
        location=fields["path"],
        provider="hudi",
    )
    commits = commits_to(target, statement.facts)
    return AlterTable(
        context=(target.catalog or context.session_catalog()).context,
        cause=ModificationCause.WRITE,
        identifier=target.sink.table or TableName(catalog=SESSION_CATALOG, database="hudi", table=fields["path"]),
        dataset=place_path(fields["path"], context.environment),
        format=target.sink.format,
        **(produced_by(commits[-1], statement.facts) if commits else {}),
        changes=tuple(SchemaDiff().of(fields_of(columns), fields_of(new))),
        table=table,
        new_table=table.model_copy(update={"columns": new}),
    )


_NO_TABLE: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CommandResult", "CTERelationRef"})


def _insert_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    relation, query = node.plan_of("logicalRelation"), node.plan_of("query")
    target = None if relation is None else sink_of(plan.nodes[relation], plan, context)
    if relation is None or query is None or target is None:
        return None
    overwrite = bool(node.args.get("overwrite"))
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = OverwriteScope.UNKNOWN if overwrite else OverwriteScope.NOTHING
    target = replace(target, kind=kind, replaced=extent)
    return StatementWrites((SinkWrite(target, query, _columns(node, plan, plan.nodes[relation], query)),))


def _columns(node: PlanNode, plan: Plan, relation: PlanNode, query: int) -> tuple[FieldPath | None, ...]:
    """By their names, where the query has those of the table; else by position, without partitions that are given."""
    given = {key.lower() for key, text in (node.args.get("partitionSpec") or {}).items() if text is not None}
    names = [plan.attribute(attribute).name for attribute in relation.output]
    names = [name for name in names if name not in HUDI_COLUMNS and name.lower() not in given]
    own = columns_by_own_name(plan, query)
    columns = {path[0].lower() for path in own if path is not None}
    if {name.lower() for name in names} <= columns or len(names) != len(own):
        return own
    return tuple((name,) for name in names)


def _row_level_write(
    argument: str, kind: CommitKind
) -> Callable[[PlanNode, Plan, CaptureContext], StatementWrites | None]:
    """MERGE, UPDATE and DELETE read what they write."""

    def read(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
        top = node.plan_of(argument)
        if top is None:
            return None
        sides = [plan.nodes[top].plan_of(side) for side in ("targetTable", "table", "sourceTable")]
        target_side, *others = [side for side in sides if side is not None] or [top]
        leaves = [leaf for leaf in plan.subtree(target_side) if not leaf.inputs]
        target = sink_of(leaves[0], plan, context) if leaves else None
        if target is None:
            return None
        target = replace(target, kind=kind, replaced=OverwriteScope.PART)
        read = [relation.index for side in others for relation in plan.subtree(side) if _is_table(relation)]
        return StatementWrites((SinkWrite(target, row_level=True),), (*read, leaves[0].index))

    return read


def _is_table(node: PlanNode) -> bool:
    return not node.inputs and node.name not in _NO_TABLE


def _create_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """CREATE TABLE AS SELECT, and `saveAsTable`."""
    query = node.plan_of("query")
    if query is None:
        return None
    target = created_table_target(node.args["table"], node.args.get("mode"), query, plan, context)
    return StatementWrites((SinkWrite(target, query, columns_by_own_name(plan, query)),))


def _named_table_write(
    argument: str, kind: CommitKind
) -> Callable[[PlanNode, Plan, CaptureContext], StatementWrites | None]:
    """Commands that have no more than a table's name. What they commit, the timeline tells."""

    def read(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
        name = _name(node.args.get(argument))
        if name is None:
            return None
        target: WriteTarget = replace(
            named_table_target(name, None, context),
            kind=kind,
            replaced=OverwriteScope.PART,
            hints=session_hints(context),
        )
        return StatementWrites((SinkWrite(target),))

    return read


def _name(fields: Any) -> TableName | None:
    return table_name({**fields, "name": fields["table"]}) if isinstance(fields, Mapping) else None


def _truncate_events(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """Of all partitions: Hudi removes the files and makes the table anew, without any instant."""
    if not node.args.get("partitionSpec"):
        return StatementWrites(())
    return _named_table_write("tableIdentifier", CommitKind.TRUNCATE)(node, plan, context)


_PARSER_COMMANDS: Final = (
    "CallCommand",
    "CompactionPath",
    "CompactionShowOnPath",
    "CompactionShowOnTable",
    "CompactionTable",
    "CreateIndex",
    "DropIndex",
    "RefreshIndex",
    "ShowIndexes",
)
"""Nodes that Hudi's own parser makes."""
_ONLY_READS: Final = CommandRule(ignored="it only looks")
_INDEX: Final = CommandRule(ignored="an index doesn't change what a table is")

COMMANDS: Final[Mapping[str, CommandRule]] = {
    "InsertIntoHoodieTableCommand": CommandRule(_insert_write),
    "MergeIntoHoodieTableCommand": CommandRule(_row_level_write("mergeInto", CommitKind.MERGE)),
    "UpdateHoodieTableCommand": CommandRule(_row_level_write("ut", CommitKind.UPDATE)),
    "DeleteHoodieTableCommand": CommandRule(_row_level_write("query", CommitKind.DELETE)),
    "CreateHoodieTableCommand": CommandRule(catalog=create_table),
    "CreateHoodieTableAsSelectCommand": CommandRule(_create_write, create_table),
    "CreateHoodieTableLikeCommand": CommandRule(catalog=create_table_like),
    "AlterHoodieTableAddColumnsCommand": CommandRule(catalog=add_columns),
    "AlterHoodieTableChangeColumnCommand": CommandRule(catalog=change_column),
    "AlterHoodieTableRenameCommand": CommandRule(catalog=rename_table),
    "AlterHoodieTableAddPartitionCommand": CommandRule(catalog=add_partitions),
    "AlterHoodieTableDropPartitionCommand": CommandRule(
        _named_table_write("tableIdentifier", CommitKind.DELETE), drop_partitions
    ),
    "AlterTableCommand": CommandRule(catalog=alter_table),
    "DropHoodieTableCommand": CommandRule(catalog=drop_table),
    "TruncateHoodieTableCommand": CommandRule(_truncate_events, truncate_table),
    "RepairHoodieTableCommand": CommandRule(catalog=repair_table),
    "CallProcedureHoodieCommand": procedures.COMMAND,
    "CompactionHoodiePathCommand": procedures.COMPACTION,
    "CompactionHoodieTableCommand": procedures.COMPACTION,
    "CompactionShowHoodiePathCommand": _ONLY_READS,
    "CompactionShowHoodieTableCommand": _ONLY_READS,
    "ShowHoodieCreateTableCommand": _ONLY_READS,
    "ShowHoodieTablePartitionsCommand": _ONLY_READS,
    "ShowIndexesCommand": _ONLY_READS,
    "CreateIndexCommand": _INDEX,
    "DropIndexCommand": _INDEX,
    "RefreshIndexCommand": _INDEX,
    **dict.fromkeys(_PARSER_COMMANDS, CommandRule(ignored="analysis puts another command in its place")),
}
