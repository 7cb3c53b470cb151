"""Kafka's topics: each is a dataset of its own, and its version is how far it was read, partition by partition."""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Format
from headwater.listeners.capture.commands import Part
from headwater.listeners.capture.formats.kafka import reads, sinks, sources, streams
from headwater.listeners.capture.formats.protocol import Begins, Described, Outcome, Target, Version
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took


class Kafka:
    @property
    def format(self) -> Format:
        return Format.KAFKA

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        return sources.source(node, plan, scene)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        found = sinks.parts(node, plan, scene)
        return found[0].target if len(found) == 1 else None

    def parts(self, node: Node, plan: Plan, scene: Scene) -> tuple[Part, ...]:
        return sinks.parts(node, plan, scene)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return reads.versions_of(source, facts)

    def later(self, source: Described, statement: Statement) -> tuple[Described, ...]:
        return reads.topics_of(source, statement)

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        return streams.versions_of(source, took)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return streams.beginning_of(source, node, took)

    def written(self, target: Target, statement: Statement) -> Outcome:
        return sinks.outcome(target)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return ()


FORMAT: Final = Kafka()
