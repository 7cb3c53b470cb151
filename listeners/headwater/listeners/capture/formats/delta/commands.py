"""Delta's own commands: what each writes and reads, and what it does to a catalog. All of the jar's are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.ddl import alter_events, convert_events, create_events
from headwater.listeners.capture.formats.delta.sinks import (
    converted_table_target,
    created_table_target,
    sink_of,
    target_of_ref,
)
from headwater.listeners.capture.formats.delta.table_refs import DeltaTableRef, find_table_ref, relation_below
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_NO_TABLE: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CommandResult", "CTERelationRef"})


def _row_level_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """MERGE, UPDATE and DELETE read what they write."""
    relation = relation_below(plan, node.plan_of("target"))
    target = None if relation is None else sink_of(relation, plan, context)
    if relation is None or target is None:
        return None
    source = node.plan_of("source")
    read = [] if source is None else [relation.index for relation in plan.subtree(source) if _is_table(relation)]
    return StatementWrites((SinkWrite(target, row_level=True),), (*read, relation.index))


def _is_table(node: PlanNode) -> bool:
    return not node.inputs and node.name not in _NO_TABLE


def _table_write(*, reads: bool) -> Callable[[PlanNode, Plan, CaptureContext], StatementWrites | None]:
    """Commands about a table as a whole, which is their child or an argument."""

    def read(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
        found = table_of_command(node, plan)
        if found is None:
            return None
        relation, ref = found
        return StatementWrites((SinkWrite(target_of_ref(ref, relation, context)),), (relation.index,) if reads else ())

    return read


def table_of_command(node: PlanNode, plan: Plan) -> tuple[PlanNode, DeltaTableRef] | None:
    for argument in ("child", "table", "target"):
        relation = relation_below(plan, node.plan_of(argument))
        ref = None if relation is None else find_table_ref(relation, plan)
        if relation is not None and ref is not None:
            return relation, ref
    ref = find_table_ref(node, plan)
    return None if ref is None else (node, ref)


def _dynamic_overwrite(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """INSERT OVERWRITE where the session overwrites dynamically: the rows say which partitions are replaced."""
    relation, query = relation_below(plan, node.plan_of("table")), node.plan_of("query")
    target = None if relation is None else sink_of(relation, plan, context)
    if relation is None or target is None or query is None:
        return None
    more = plan.nodes[query].output[len(relation.output) :]
    names = tuple((plan.attribute(number).name,) for number in (*relation.output, *more))
    return StatementWrites(
        (SinkWrite(replace(target, kind=CommitKind.OVERWRITE, replaced=OverwriteScope.PART), query, names),)
    )


def _create_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """CREATE TABLE … CLONE, … LIKE, and what the older way of writing a table makes."""
    query = node.plan_of("query")
    clone = None if query is None else plan.nodes[query]
    path = None if clone is None else clone.args.get("targetPath")
    target = created_table_target(node.args["table"], path, plan, context, has_rows=query is not None)
    if clone is None or query is None:
        return StatementWrites((SinkWrite(target),))
    if clone.name == "CloneTableCommand":
        return StatementWrites((SinkWrite(target),), (query,))
    names = tuple((plan.attribute(number).name,) for number in clone.output)
    return StatementWrites((SinkWrite(target, query, names),))


def _clone_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """A clone into a path."""
    return StatementWrites((SinkWrite(converted_table_target(node.args["targetPath"], None, context)),), (node.index,))


def _convert_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    identifier = node.args["tableIdentifier"]
    is_path = "/" in identifier["table"]
    path = node.args.get("deltaPath") or (identifier["table"] if is_path else None)
    target: WriteTarget = converted_table_target(path, None if is_path else identifier, context)
    return StatementWrites((SinkWrite(target),))


def _restore_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """What a table is restored to is read, and nothing else of it."""
    ref = find_table_ref(node, plan)
    return None if ref is None else StatementWrites((SinkWrite(target_of_ref(ref, node, context)),), (node.index,))


_ROW_LEVEL: Final = CommandRule(_row_level_write)
_REWRITES: Final = CommandRule(_table_write(reads=True))
_READS_NOTHING: Final = CommandRule(_table_write(reads=False))
_ALTERS: Final = CommandRule(catalog=alter_events, proven=True)
_ONLY_READS: Final = CommandRule(ignored="it only looks")
_REPLACED_BY_ANALYSIS: Final = CommandRule(ignored="analysis puts another command in its place")
_RUNS_INSIDE: Final = CommandRule(ignored="it runs within another command, which is recorded")

COMMANDS: Final[Mapping[str, CommandRule]] = {
    "MergeIntoCommand": _ROW_LEVEL,
    "UpdateCommand": _ROW_LEVEL,
    "DeleteCommand": _ROW_LEVEL,
    "DeltaDynamicPartitionOverwriteCommand": CommandRule(_dynamic_overwrite),
    "OptimizeTableCommand": _REWRITES,
    "DeltaReorgTableCommand": _REWRITES,
    "TruncateDeltaTableCommand": _READS_NOTHING,
    "VacuumTableCommand": _READS_NOTHING,
    "RestoreTableCommand": CommandRule(_restore_write),
    "CloneTableCommand": CommandRule(_clone_write),
    "CreateDeltaTableCommand": CommandRule(_create_write, create_events),
    "ConvertToDeltaCommand": CommandRule(_convert_write, convert_events),
    "AlterTableAddConstraint": _ALTERS,
    "AlterTableDropConstraint": _ALTERS,
    "AlterTableDropFeature": _ALTERS,
    "AlterTableClusterBy": _ALTERS,
    "AlterColumnSyncIdentity": _ALTERS,
    "AlterTableAddColumnsDeltaCommand": _ALTERS,
    "AlterTableAddConstraintDeltaCommand": _ALTERS,
    "AlterTableChangeColumnDeltaCommand": _ALTERS,
    "AlterTableClusterByDeltaCommand": _ALTERS,
    "AlterTableDropColumnsDeltaCommand": _ALTERS,
    "AlterTableDropConstraintDeltaCommand": _ALTERS,
    "AlterTableDropFeatureDeltaCommand": _ALTERS,
    "AlterTableReplaceColumnsDeltaCommand": _ALTERS,
    "AlterTableSetLocationDeltaCommand": _ALTERS,
    "AlterTableSetPropertiesDeltaCommand": _ALTERS,
    "AlterTableUnsetPropertiesDeltaCommand": _ALTERS,
    "DeltaGenerateCommand": CommandRule(ignored="the manifest it writes beside the table is nobody's version"),
    "DescribeDeltaDetailCommand": _ONLY_READS,
    "DescribeDeltaHistory": _ONLY_READS,
    "DescribeDeltaHistoryCommand": _ONLY_READS,
    "ShowDeltaTableColumnsCommand": _ONLY_READS,
    "ShowTableColumnsCommand": _ONLY_READS,
    "CloneTableStatement": _REPLACED_BY_ANALYSIS,
    "RestoreTableStatement": _REPLACED_BY_ANALYSIS,
    "DeltaReorgTable": _REPLACED_BY_ANALYSIS,
    "DeltaMergeInto": _REPLACED_BY_ANALYSIS,
    "DeltaUpdateTable": _REPLACED_BY_ANALYSIS,
    "DeltaDelete": _REPLACED_BY_ANALYSIS,
    "WriteIntoDelta": _RUNS_INSIDE,
    "RowTrackingBackfillCommand": _RUNS_INSIDE,
    "RowTrackingUnBackfillCommand": _RUNS_INSIDE,
    "ShowDeltaPartitionsCommand": _ONLY_READS,
    "RemoveColumnMappingCommand": _RUNS_INSIDE,
}
