"""Paimon's tables: in its catalogs and by path, on branches, at snapshots and tags, and the views it has of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.events import AlterTable, Format
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.formats.paimon import (
    evolved,
    procedures,
    row_level,
    streams,
    tables,
    unheard,
    versions,
    written,
)
from headwater.listeners.capture.formats.protocol import Begins, Described, Outcome, Target, Version
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took


class Paimon:
    @property
    def format(self) -> Format:
        return Format.PAIMON

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        return tables.source(node, plan, scene)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        return tables.sink(node, plan, scene)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return versions.reads(source, plan, facts)

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        return streams.versions_of(node, took)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return streams.beginning_of(node, took)

    def written(self, target: Target, statement: Statement) -> Outcome:
        if "procedure" in target.hints:
            return procedures.written(target, statement)
        return written.written(target, statement)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return evolved.evolved(target, statement)


FORMAT: Final = Paimon()

COMMANDS: Final[Mapping[str, Command]] = {
    **row_level.COMMANDS,
    **unheard.COMMANDS,
    **procedures.COMMANDS,
    "PaimonShowColumnsCommand": Command(ignored="it only looks"),
    "WriteIntoPaimonTable": Command(ignored="it runs within the command that is told"),
}
