"""Tables in databases, by their own names: read and written through a JDBC url, or as tables of a catalog that is one.

They have no versions: neither a read nor a write names one, and that is no gap.
"""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Format
from headwater.listeners.capture.formats.jdbc import sinks, sources
from headwater.listeners.capture.formats.protocol import Described, Outcome, Target, Version
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement


class Jdbc:
    @property
    def format(self) -> Format:
        return Format.JDBC

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        return sources.source(node, plan, scene)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        return sinks.sink(node, plan, scene)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return (Version(),)

    def written(self, target: Target, statement: Statement) -> Outcome:
        return sinks.written(target, statement)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return ()


FORMAT: Final = Jdbc()
