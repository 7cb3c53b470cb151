"""Delta Lake: every commit is a version of a table's log, DDL too; a table is where its log is."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from headwater.events import AlterTable, Format
from headwater.events.identity.catalogs import session_catalog
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta import read_versions
from headwater.listeners.capture.formats.delta.commands import COMMANDS
from headwater.listeners.capture.formats.delta.metadata import find_evidence, read_table_facts
from headwater.listeners.capture.formats.delta.outside_commits import outside_commit
from headwater.listeners.capture.formats.delta.read_versions import versions_of
from headwater.listeners.capture.formats.delta.schema_changes import schema_changes
from headwater.listeners.capture.formats.delta.sinks import CATALOG, sink_of
from headwater.listeners.capture.formats.delta.table_refs import find_table_ref
from headwater.listeners.capture.formats.delta.write_results import write_result
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import (
    OutsideCommit,
    ReadVersion,
    SourceRelation,
    StreamStart,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.columns.commands import merge_changes, update_changes
from headwater.listeners.capture.plan.columns.row_changes import CLAUSES
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, Statement, StatementFacts

__all__ = ["PLUGIN", "DeltaFormat"]

_COPYING_COMMANDS: Final = frozenset({"RestoreTableCommand", "CloneTableCommand"})
_WRITES: Final[Mapping[str, str]] = {
    "MergeIntoCommand": "target",
    "UpdateCommand": "target",
    "DeleteCommand": "target",
}
"""Commands that read what they write, and the argument that it is."""


class DeltaFormat:
    @property
    def format(self) -> Format:
        return Format.DELTA

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        ref = find_table_ref(node, plan)
        if ref is None:
            return None
        source = SourceSchema(
            dataset=ref.dataset(context),
            table=ref.table,
            generation=ref.generation,
            format=Format.DELTA,
            columns=ref.columns,
            partitioning=ref.partitioning,
        )
        hints = {
            "path": ref.path,
            "changes": ref.changes,
            "command": node.name if node.name in _COPYING_COMMANDS else None,
            "target": _is_target(node, plan),
        }
        return SourceRelation(node.index, source, versioned=True, hints=hints)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        return sink_of(node, plan, context)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        return versions_of(source, plan, facts)

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        return read_versions.versions_of_batch(node, offsets)

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


def _is_target(node: PlanNode, plan: Plan) -> bool:
    """Whether a command writes this relation; a table that is only looked up (ResolvedTable) is one that it writes."""
    if node.name == "ResolvedTable":
        return True
    return any(
        command.name in _WRITES and node.index in {below.index for below in plan.subtree(target)}
        for command in plan.nodes
        if (target := command.plan_of(_WRITES.get(command.name, ""))) is not None
    )


PLUGIN: Final = FormatPlugin(
    name="delta",
    reader=DeltaFormat(),
    order=20,
    packages=("org.apache.spark.sql.delta.", "io.delta."),
    java=JavaPart(
        probe="org.apache.spark.sql.delta.DeltaLog",
        folder=files(__name__) / "java",
        extractor="DeltaExtractor",
        hooks=("DeltaHook",),
    ),
    log_directory="_delta_log",
    commands=COMMANDS,
    row_changes={
        "DeleteCommand": update_changes("target"),
        "MergeIntoCommand": merge_changes(CLAUSES, "target", "source", "condition"),
        "UpdateCommand": update_changes("target"),
    },
    catalogs={CATALOG: session_catalog},
    session_catalogs=frozenset({CATALOG}),
    providers=frozenset({"delta", "deltaparquet"}),
    table_facts=read_table_facts,
    evidence=find_evidence,
)
