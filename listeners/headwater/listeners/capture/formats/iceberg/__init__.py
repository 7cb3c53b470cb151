"""Iceberg: each commit of data is a snapshot; branches and tags name them, and metadata tells their history."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from headwater.events import AlterTable, Format
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.iceberg import read_versions
from headwater.listeners.capture.formats.iceberg.catalogs import CATALOGS
from headwater.listeners.capture.formats.iceberg.catalogs import VIEW_COMMANDS as VIEWS
from headwater.listeners.capture.formats.iceberg.evidence import find_evidence, read_table_facts
from headwater.listeners.capture.formats.iceberg.layout import LAYOUT_COMMANDS as LAYOUT
from headwater.listeners.capture.formats.iceberg.layout import REF_COMMANDS as REFS
from headwater.listeners.capture.formats.iceberg.procedures import COMMANDS as PROCEDURES
from headwater.listeners.capture.formats.iceberg.read_versions import source_of_rdd, versions_of
from headwater.listeners.capture.formats.iceberg.sinks import sink_of, truncate_write
from headwater.listeners.capture.formats.iceberg.table_refs import find_table_ref
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of
from headwater.listeners.capture.formats.iceberg.write_results import outside_commit, schema_changes, write_result
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import (
    OutsideCommit,
    RddSource,
    ReadVersion,
    SourceRelation,
    StreamStart,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact, OffsetRange, Statement, StatementFacts

__all__ = ["PLUGIN", "IcebergFormat"]


class IcebergFormat:
    @property
    def format(self) -> Format:
        return Format.ICEBERG

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        """A table about a table (`t.snapshots`) isn't the table's data: it is known by its name only."""
        ref = find_table_ref(node, context)
        if ref is None:
            return None
        data = not ref.metadata
        source = SourceSchema(
            dataset=ref.dataset if data else None,
            table=ref.table,
            generation=ref.generation,
            format=Format.ICEBERG,
            branch=ref.branch,
            main=ref.branch is None,
            tag=ref.asked.tag,
            columns=columns_of(plan, node.output),
            partitioning=partitioning_of(ref.reported),
            primary_key=primary_key_of(ref.reported),
        )
        hints = {
            "location": ref.reported["location"],
            "name": ref.reported["name"],
            "asked": ref.asked,
            "metadata": ref.metadata,
        }
        return SourceRelation(node.index, source, versioned=data, asked=ref.asked.snapshot, hints=hints)

    def rdd_sources(self, fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
        return source_of_rdd(fact, context)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        return sink_of(node, plan, context)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        return versions_of(source, plan, facts)

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of_batch(node, offsets, facts)

    def start_of_stream(self, source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
        return read_versions.start_of(node, offsets)

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        return write_result(target, statement)

    def outside_commit(self, fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
        return outside_commit(fact, context)

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        return schema_changes(target, statement, context)


PLUGIN: Final = FormatPlugin(
    name="iceberg",
    reader=IcebergFormat(),
    order=10,
    packages=("org.apache.iceberg.",),
    java=JavaPart(
        probe="org.apache.iceberg.spark.source.SparkTable",
        folder=files(__name__) / "java",
        extractor="IcebergExtractor",
        hooks=("IcebergHook", "IcebergProcedureHook"),
    ),
    commands={**LAYOUT, **REFS, **PROCEDURES, **VIEWS, "TruncateTable": CommandRule(write=truncate_write)},
    catalogs=CATALOGS,
    procedure_catalogs=frozenset({"org.apache.iceberg.spark.SparkRewriteTableCatalog"}),
    providers=frozenset({"iceberg"}),
    table_facts=read_table_facts,
    evidence=find_evidence,
)
