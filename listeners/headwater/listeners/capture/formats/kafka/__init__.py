"""Kafka's topics: each is a dataset of its own, and its version is how far it was read, partition by partition."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from headwater.events import AlterTable, Format
from headwater.listeners.capture.context import CaptureContext, ExternalRows
from headwater.listeners.capture.formats.kafka import read_versions, sinks, sources
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import (
    RddSource,
    ReadVersion,
    SinkWrite,
    SourceRelation,
    StreamStart,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact, OffsetRange, Statement, StatementFacts


class KafkaFormat:
    @property
    def format(self) -> Format:
        return Format.KAFKA

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        return sources.source(node, plan, context)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        found = sinks.find_sinks(node, plan, context)
        return found[0].target if len(found) == 1 else None

    def sinks(self, node: PlanNode, plan: Plan, context: CaptureContext) -> tuple[SinkWrite, ...]:
        return sinks.find_sinks(node, plan, context)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of(source, facts)

    def read_relations(self, source: SourceRelation, statement: Statement) -> tuple[SourceRelation, ...]:
        return read_versions.topics_read(source, statement)

    def rdd_sources(self, fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
        return read_versions.sources_of_rdd(fact, context)

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of_batch(source, offsets)

    def start_of_stream(self, source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
        return read_versions.start_of(source, node, offsets)

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        return sinks.write_result(target)

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        return ()


PLUGIN: Final = FormatPlugin(
    name="kafka",
    reader=KafkaFormat(),
    order=50,
    packages=("org.apache.spark.sql.kafka010.",),
    java=JavaPart(
        probe="org.apache.spark.sql.kafka010.KafkaSourceProvider",
        folder=files(__name__) / "java",
        extractor="KafkaExtractor",
    ),
    providers=frozenset({"kafka", "org.apache.spark.sql.kafka010.kafkasourceprovider"}),
    external_rows=ExternalRows(dataset=sources.dataset_of_table, reported_options=sources.reported_table_options),
)
