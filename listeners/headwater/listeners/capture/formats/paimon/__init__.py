"""Paimon's tables: in its catalogs and by path, on branches, at snapshots and tags, and the views it has of each."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from headwater.events import AlterTable, Format
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.paimon import procedures, read_versions, row_level, tables, write_results
from headwater.listeners.capture.formats.paimon.catalogs import CATALOGS, find_evidence, read_table_facts
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import (
    ReadVersion,
    SourceRelation,
    StreamStart,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.columns.commands import merge_changes, update_changes
from headwater.listeners.capture.plan.columns.row_changes import ACTIONS
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, Statement, StatementFacts


class PaimonFormat:
    @property
    def format(self) -> Format:
        return Format.PAIMON

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        return tables.source(node, plan, context)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        return tables.sink(node, plan, context)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of(source, plan, facts)

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of_batch(node, offsets)

    def start_of_stream(self, source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
        return read_versions.start_of(node, offsets)

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        return write_results.write_result(target, statement)

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        return write_results.schema_changes(target, statement)


PLUGIN: Final = FormatPlugin(
    name="paimon",
    reader=PaimonFormat(),
    order=30,
    packages=("org.apache.paimon.",),
    java=JavaPart(
        probe="org.apache.paimon.spark.SparkTable",
        folder=files(__name__) / "java",
        extractor="PaimonExtractor",
        hooks=("PaimonHook",),
    ),
    commands={
        **row_level.COMMANDS,
        **write_results.COMMANDS,
        **procedures.COMMANDS,
        "PaimonShowColumnsCommand": CommandRule(ignored="it only looks"),
        "WriteIntoPaimonTable": CommandRule(ignored="it runs within the command that is recorded"),
    },
    row_changes={
        "DeleteFromPaimonTableCommand": update_changes("relation"),
        "MergeIntoPaimonTable": merge_changes(ACTIONS, "targetTable", "sourceTable", "mergeCondition"),
        "UpdatePaimonTableCommand": update_changes("relation"),
    },
    catalogs=CATALOGS,
    providers=frozenset({"paimon"}),
    table_facts=read_table_facts,
    evidence=find_evidence,
)
