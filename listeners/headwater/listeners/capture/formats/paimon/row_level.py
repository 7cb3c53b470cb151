"""MERGE, UPDATE and DELETE, and overwrites of whatever partitions the rows are in: commands of Paimon's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.paimon import tables
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_NO_TABLES: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef", "CommandResult"})


def _find_relation(node: PlanNode, plan: Plan, argument: str, context: CaptureContext) -> WriteTarget | None:
    """The table that an argument is, below the aliases around it."""
    index = node.plan_of(argument)
    while index is not None and plan.nodes[index].name == "SubqueryAlias":
        index = plan.nodes[index].inputs[0]
    return None if index is None else tables.relation(plan.nodes[index], plan, context)


def _tables_read(node: PlanNode, plan: Plan) -> tuple[int, ...]:
    """Whatever table stands in the command: its target, its source, and those that conditions ask."""
    return tuple(
        relation.index
        for relation in plan.nodes
        if not relation.inputs and relation.output and relation.index != node.index and relation.name not in _NO_TABLES
    )


def _merge(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    return _row_level_write(_find_relation(node, plan, "targetTable", context), CommitKind.MERGE, node, plan)


def _update(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    return _row_level_write(_find_relation(node, plan, "relation", context), CommitKind.UPDATE, node, plan)


def _delete(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """Without a condition all is truncated, and nothing read. Whole partitions are dropped unread as well, but that
    shows only when it is done."""
    target = _find_relation(node, plan, "relation", context)
    if target is None:
        return None
    surely = replace(target, hints={**target.hints, "certain": True})
    if not _deletes_all(node, plan):
        return _row_level_write(surely, CommitKind.DELETE, node, plan)
    return StatementWrites((SinkWrite(replace(surely, kind=CommitKind.DELETE, replaced=OverwriteScope.ALL)),))


def _deletes_all(node: PlanNode, plan: Plan) -> bool:
    references = node.expressions_of("condition")
    if not references:
        return True
    if references[0] < 0:
        return False
    condition = plan.expressions[references[0]]
    return condition.name == "Literal" and condition.details.get("value") is True


def _row_level_write(
    target: WriteTarget | None, kind: CommitKind, node: PlanNode, plan: Plan
) -> StatementWrites | None:
    if target is None:
        return None
    changed = replace(target, kind=kind, replaced=OverwriteScope.PART)
    return StatementWrites((SinkWrite(changed, row_level=True),), _tables_read(node, plan))


def _dynamic_overwrite(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """INSERT OVERWRITE in Spark's dynamic mode. A table without partitions is replaced as a whole."""
    index = node.plan_of("table")
    target = None if index is None else tables.relation(plan.nodes[index], plan, context)
    if target is None or index is None:
        return None
    extent = OverwriteScope.PART if target.sink.partitioning else OverwriteScope.ALL
    names = tuple((plan.attribute(number).name,) for number in plan.nodes[index].output)
    return StatementWrites(
        (SinkWrite(replace(target, kind=CommitKind.OVERWRITE, replaced=extent), node.plan_of("query"), names),)
    )


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "MergeIntoPaimonTable": CommandRule(_merge),
    "UpdatePaimonTableCommand": CommandRule(_update),
    "DeleteFromPaimonTableCommand": CommandRule(_delete),
    "PaimonDynamicPartitionOverwriteCommand": CommandRule(_dynamic_overwrite),
}
