"""Delta Lake: every commit is a version of a table's log, DDL too; a table is where its log is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, Format, ShapedSource
from headwater.listeners.capture.formats.delta import streams
from headwater.listeners.capture.formats.delta.commands import COMMANDS
from headwater.listeners.capture.formats.delta.evolution import evolved
from headwater.listeners.capture.formats.delta.loose import loose_commit
from headwater.listeners.capture.formats.delta.places import place_of
from headwater.listeners.capture.formats.delta.reads import versions_of
from headwater.listeners.capture.formats.delta.sinks import sink_of
from headwater.listeners.capture.formats.delta.written import outcome_of
from headwater.listeners.capture.formats.protocol import Begins, Described, Loose, Outcome, Target, Version
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took

__all__ = ["COMMANDS", "FORMAT", "Delta"]

_MADE_FROM: Final = frozenset({"RestoreTableCommand", "CloneTableCommand"})
_WRITES: Final[Mapping[str, str]] = {
    "MergeIntoCommand": "target",
    "UpdateCommand": "target",
    "DeleteCommand": "target",
}
"""Commands that read what they write, and the argument that it is."""


class Delta:
    @property
    def format(self) -> Format:
        return Format.DELTA

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        place = place_of(node, plan)
        if place is None:
            return None
        source = ShapedSource(
            dataset=place.dataset(scene),
            table=place.table,
            life=place.life,
            format=Format.DELTA,
            columns=place.columns,
            partitioning=place.partitioning,
        )
        hints = {
            "path": place.path,
            "changes": place.changes,
            "command": node.name if node.name in _MADE_FROM else None,
            "target": _is_target(node, plan),
        }
        return Described(node.index, source, versioned=True, hints=hints)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        return sink_of(node, plan, scene)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return versions_of(source, plan, facts)

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        return streams.versions_of(node, took)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return streams.beginning_of(node, took)

    def written(self, target: Target, statement: Statement) -> Outcome:
        return outcome_of(target, statement)

    def loose(self, fact: Mapping[str, Any], scene: Scene) -> Loose | None:
        return loose_commit(fact, scene)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return evolved(target, statement, scene)


FORMAT: Final = Delta()


def _is_target(node: Node, plan: Plan) -> bool:
    """Whether a command writes this relation; a table that is only looked up (ResolvedTable) is one that it writes."""
    if node.name == "ResolvedTable":
        return True
    return any(
        command.name in _WRITES and node.index in {each.index for each in plan.below(target)}
        for command in plan.nodes
        if (target := command.plan_of(_WRITES.get(command.name, ""))) is not None
    )
