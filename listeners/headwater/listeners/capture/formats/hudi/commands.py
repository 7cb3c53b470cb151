"""Hudi's own commands: what each writes and reads, and what it does to a catalog. All of the jar's are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import TableName
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.hudi import ddl, procedures
from headwater.listeners.capture.formats.hudi.sinks import (
    columns_by_own_name,
    created_table_target,
    named_table_target,
    session_hints,
    sink_of,
)
from headwater.listeners.capture.formats.hudi.table_refs import HUDI_COLUMNS
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

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
    "CreateHoodieTableCommand": CommandRule(catalog=ddl.create_table),
    "CreateHoodieTableAsSelectCommand": CommandRule(_create_write, ddl.create_table),
    "CreateHoodieTableLikeCommand": CommandRule(catalog=ddl.create_table_like),
    "AlterHoodieTableAddColumnsCommand": CommandRule(catalog=ddl.add_columns),
    "AlterHoodieTableChangeColumnCommand": CommandRule(catalog=ddl.change_column),
    "AlterHoodieTableRenameCommand": CommandRule(catalog=ddl.rename_table),
    "AlterHoodieTableAddPartitionCommand": CommandRule(catalog=ddl.add_partitions),
    "AlterHoodieTableDropPartitionCommand": CommandRule(
        _named_table_write("tableIdentifier", CommitKind.DELETE), ddl.drop_partitions
    ),
    "AlterTableCommand": CommandRule(catalog=ddl.alter_table),
    "DropHoodieTableCommand": CommandRule(catalog=ddl.drop_table),
    "TruncateHoodieTableCommand": CommandRule(_truncate_events, ddl.truncate_table),
    "RepairHoodieTableCommand": CommandRule(catalog=ddl.repair_table),
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
