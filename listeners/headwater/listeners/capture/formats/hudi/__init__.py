"""Hudi: each commit is an instant of a table's timeline; a table is where its timeline is."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from headwater.events import AlterTable, Format
from headwater.events.identity.catalogs import session_catalog
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.hudi import read_versions
from headwater.listeners.capture.formats.hudi.commands import COMMANDS, schema_changes
from headwater.listeners.capture.formats.hudi.read_versions import versions_of
from headwater.listeners.capture.formats.hudi.sinks import sink_of
from headwater.listeners.capture.formats.hudi.table_refs import HUDI_COLUMNS, PROVIDER, find_table_ref, place_path
from headwater.listeners.capture.formats.hudi.write_results import outside_commit, write_result
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import (
    OutsideCommit,
    ReadVersion,
    SourceRelation,
    StreamStart,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.columns.commands import delete_by_query, wrapped_changes
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, Statement, StatementFacts

__all__ = ["PLUGIN", "HudiFormat"]

_AS_OF: Final = "as.of.instant"
_CATALOG: Final = "org.apache.spark.sql.hudi.catalog.HoodieCatalog"


class HudiFormat:
    @property
    def format(self) -> Format:
        return Format.HUDI

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        ref = find_table_ref(node, plan)
        if ref is None:
            return None
        source = SourceSchema(
            dataset=place_path(ref.path, context.environment),
            table=ref.table,
            format=Format.HUDI,
            columns=ref.columns,
            partitioning=ref.partitioning,
        )
        hints = {
            "path": ref.path,
            "changes": ref.changes,
            "empty": ref.empty,
            "asked": node.args.get("relation", {}).get("options", {}).get(_AS_OF),
            "environment": context.environment,
        }
        return SourceRelation(node.index, source, versioned=True, hints=hints, hidden=HUDI_COLUMNS)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        return sink_of(node, plan, context)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        return versions_of(source, plan, facts)

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of_batch(source.hints["path"], node, offsets, facts)

    def start_of_stream(self, source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
        return read_versions.start_of(node)

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        return write_result(target, statement)

    def outside_commit(self, fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
        return outside_commit(fact, context)

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        return schema_changes(target, statement, context)


PLUGIN: Final = FormatPlugin(
    name="hudi",
    reader=HudiFormat(),
    order=40,
    packages=("org.apache.hudi.", "org.apache.spark.sql.hudi."),
    java=JavaPart(
        probe="org.apache.hudi.HoodieFileIndex",
        folder=files(__name__) / "java",
        extractor="HudiExtractor",
        hooks=("HudiHook",),
    ),
    log_directory=".hoodie",
    commands=COMMANDS,
    row_changes={
        "DeleteHoodieTableCommand": delete_by_query("query"),
        "MergeIntoHoodieTableCommand": wrapped_changes("mergeInto"),
        "UpdateHoodieTableCommand": wrapped_changes("ut"),
    },
    catalogs={_CATALOG: session_catalog},
    session_catalogs=frozenset({_CATALOG}),
    providers=frozenset({PROVIDER}),
    hidden_columns=HUDI_COLUMNS,
)
