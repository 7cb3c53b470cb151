"""Iceberg: each commit of data is a snapshot; branches and tags name them, and metadata tells their history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, Format, ShapedSource
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.formats.iceberg import streams
from headwater.listeners.capture.formats.iceberg.evolution import evolved
from headwater.listeners.capture.formats.iceberg.layout import COMMANDS as LAYOUT
from headwater.listeners.capture.formats.iceberg.loose import loose_commit
from headwater.listeners.capture.formats.iceberg.places import place_of
from headwater.listeners.capture.formats.iceberg.procedures import COMMANDS as PROCEDURES
from headwater.listeners.capture.formats.iceberg.reads import versions_of
from headwater.listeners.capture.formats.iceberg.refs import COMMANDS as REFS
from headwater.listeners.capture.formats.iceberg.sinks import sink_of, truncates
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of
from headwater.listeners.capture.formats.iceberg.views import COMMANDS as VIEWS
from headwater.listeners.capture.formats.iceberg.written import outcome_of
from headwater.listeners.capture.formats.protocol import Begins, Described, Loose, Outcome, Target, Version
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took

__all__ = ["COMMANDS", "FORMAT", "Iceberg"]


class Iceberg:
    @property
    def format(self) -> Format:
        return Format.ICEBERG

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        """A table about a table (`t.snapshots`) isn't the table's data: it is known by its name only."""
        place = place_of(node, scene)
        if place is None:
            return None
        data = not place.metadata
        source = ShapedSource(
            dataset=place.dataset if data else None,
            table=place.table,
            life=place.life,
            format=Format.ICEBERG,
            branch=place.branch,
            main=place.branch is None,
            tag=place.asked.tag,
            columns=columns_of(plan, node.output),
            partitioning=partitioning_of(place.told),
            primary_key=primary_key_of(place.told),
        )
        hints = {
            "location": place.told["location"],
            "name": place.told["name"],
            "asked": place.asked,
            "metadata": place.metadata,
        }
        return Described(node.index, source, versioned=data, asked=place.asked.snapshot, hints=hints)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        return sink_of(node, plan, scene)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return versions_of(source, plan, facts)

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        return streams.versions_of(took, facts)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return streams.beginning_of(node, took)

    def written(self, target: Target, statement: Statement) -> Outcome:
        written = target.hints.get("written", outcome_of)
        outcome: Outcome = written(target, statement)
        return outcome

    def loose(self, fact: Mapping[str, Any], scene: Scene) -> Loose | None:
        return loose_commit(fact, scene)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return evolved(target, statement, scene)


FORMAT: Final = Iceberg()
COMMANDS: Final = {**LAYOUT, **REFS, **PROCEDURES, **VIEWS, "TruncateTable": Command(write=truncates)}
