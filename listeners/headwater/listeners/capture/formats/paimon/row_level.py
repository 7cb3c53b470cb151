"""MERGE, UPDATE and DELETE, and overwrites of whatever partitions the rows are in: commands of Paimon's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headwater.events import CommitKind, Extent
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.paimon import tables
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_NO_TABLES: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef", "CommandResult"})


def _relation(node: Node, plan: Plan, argument: str, scene: Scene) -> Target | None:
    """The table that an argument is, below the aliases around it."""
    index = node.plan_of(argument)
    while index is not None and plan.nodes[index].name == "SubqueryAlias":
        index = plan.nodes[index].inputs[0]
    return None if index is None else tables.relation(plan.nodes[index], plan, scene)


def _read(node: Node, plan: Plan) -> tuple[int, ...]:
    """Whatever table stands in the command: its target, its source, and those that conditions ask."""
    return tuple(
        each.index
        for each in plan.nodes
        if not each.inputs and each.output and each.index != node.index and each.name not in _NO_TABLES
    )


def _merge(node: Node, plan: Plan, scene: Scene) -> Write | None:
    return _changed(_relation(node, plan, "targetTable", scene), CommitKind.MERGE, node, plan)


def _update(node: Node, plan: Plan, scene: Scene) -> Write | None:
    return _changed(_relation(node, plan, "relation", scene), CommitKind.UPDATE, node, plan)


def _delete(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """Without a condition all is truncated, and nothing read. Whole partitions are dropped unread as well, but that
    shows only when it is done."""
    target = _relation(node, plan, "relation", scene)
    if target is None:
        return None
    surely = replace(target, hints={**target.hints, "certain": True})
    if not _takes_all(node, plan):
        return _changed(surely, CommitKind.DELETE, node, plan)
    return Write((Part(replace(surely, kind=CommitKind.DELETE, replaced=Extent.ALL)),))


def _takes_all(node: Node, plan: Plan) -> bool:
    references = node.expressions_of("condition")
    if not references:
        return True
    if references[0] < 0:
        return False
    condition = plan.expressions[references[0]]
    return condition.name == "Literal" and condition.details.get("value") is True


def _changed(target: Target | None, kind: CommitKind, node: Node, plan: Plan) -> Write | None:
    if target is None:
        return None
    changed = replace(target, kind=kind, replaced=Extent.PART)
    return Write((Part(changed, row_level=True),), _read(node, plan))


def _partitions_of_rows(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """INSERT OVERWRITE in Spark's dynamic mode. A table without partitions is replaced as a whole."""
    index = node.plan_of("table")
    target = None if index is None else tables.relation(plan.nodes[index], plan, scene)
    if target is None or index is None:
        return None
    extent = Extent.PART if target.sink.partitioning else Extent.ALL
    names = tuple((plan.attribute(number).name,) for number in plan.nodes[index].output)
    return Write((Part(replace(target, kind=CommitKind.OVERWRITE, replaced=extent), node.plan_of("query"), names),))


COMMANDS: Final[Mapping[str, Command]] = {
    "MergeIntoPaimonTable": Command(_merge),
    "UpdatePaimonTableCommand": Command(_update),
    "DeleteFromPaimonTableCommand": Command(_delete),
    "PaimonDynamicPartitionOverwriteCommand": Command(_partitions_of_rows),
}
