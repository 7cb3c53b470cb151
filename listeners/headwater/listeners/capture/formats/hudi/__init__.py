"""Hudi: each commit is an instant of a table's timeline; a table is where its timeline is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, Format, ShapedSource, StartReason
from headwater.listeners.capture.formats.hudi import procedures, streams
from headwater.listeners.capture.formats.hudi.commands import COMMANDS
from headwater.listeners.capture.formats.hudi.ddl import evolved
from headwater.listeners.capture.formats.hudi.places import OF_HUDI, place_of, placed
from headwater.listeners.capture.formats.hudi.reads import versions_of
from headwater.listeners.capture.formats.hudi.sinks import sink_of
from headwater.listeners.capture.formats.hudi.timelines import timeline
from headwater.listeners.capture.formats.hudi.written import loose_commit, outcome_of
from headwater.listeners.capture.formats.protocol import Begins, Described, Loose, Outcome, Target, Version
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took

__all__ = ["COMMANDS", "FORMAT", "Hudi"]

_AS_OF: Final = "as.of.instant"


class Hudi:
    @property
    def format(self) -> Format:
        return Format.HUDI

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        place = place_of(node, plan)
        if place is None:
            return None
        source = ShapedSource(
            dataset=placed(place.path, scene.site),
            table=place.table,
            format=Format.HUDI,
            columns=place.columns,
            partitioning=place.partitioning,
        )
        hints = {
            "path": place.path,
            "changes": place.changes,
            "empty": place.empty,
            "asked": node.args.get("relation", {}).get("options", {}).get(_AS_OF),
            "site": scene.site,
        }
        return Described(node.index, source, versioned=True, hints=hints, hidden=OF_HUDI)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        return sink_of(node, plan, scene)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return versions_of(source, plan, facts)

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        line = timeline(facts, source.hints["path"]) or ()
        found = None if took.end is None else streams.range_of(took.start, took.end, line)
        return () if found is None else (found,)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return Begins(reason=StartReason.EARLIEST)

    def written(self, target: Target, statement: Statement) -> Outcome:
        if "procedure" in target.hints:
            return procedures.outcome_of(target, statement)
        return outcome_of(target, statement)

    def loose(self, fact: Mapping[str, Any], scene: Scene) -> Loose | None:
        return loose_commit(fact, scene)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return evolved(target, statement, scene)


FORMAT: Final = Hudi()
