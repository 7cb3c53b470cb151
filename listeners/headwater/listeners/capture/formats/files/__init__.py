"""Parquet, ORC, CSV, JSON, text and whatever else is files in directories, in Spark's own catalog or by path.

They have no versions: neither a read nor a write names one, and that is no gap.
"""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Format
from headwater.events.jobs import StartReason
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.files.locations import format_of
from headwater.listeners.capture.formats.files.sinks import (
    created_table_target,
    files_target,
    hive_target,
    stream_target,
)
from headwater.listeners.capture.formats.files.sources import (
    describe_rdd,
    describe_relation,
    describe_stream,
    paths_of_batch,
)
from headwater.listeners.capture.formats.files.write_results import COMMANDS, LOAD_COMMAND, loaded_files, write_result
from headwater.listeners.capture.formats.plugin import LAST, FormatPlugin
from headwater.listeners.capture.formats.protocol import (
    ReadVersion,
    SourceRelation,
    StreamStart,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.formats.relations import RDDS
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, Statement, StatementFacts

__all__ = ["PLUGIN", "FileFormat", "format_of"]


class FileFormat:
    """Tables of the session catalog and paths, as sources and sinks."""

    @property
    def format(self) -> Format:
        return Format.PARQUET

    def source(self, node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
        if node.name == LOAD_COMMAND:
            return loaded_files(node, context)
        if node.name == "HiveTableRelation":
            return describe_relation(node, plan, context, node.args.get("tableMeta"), None)
        if node.name == "StreamingRelation":
            return describe_stream(node, plan, context)
        if node.name in RDDS:
            return describe_rdd(node, plan, context)
        relation = node.args.get("relation", {}) if node.name == "LogicalRelation" else {}
        if "fileFormat" not in relation:
            return None
        return describe_relation(node, plan, context, node.args.get("catalogTable"), relation)

    def sink(self, node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
        if node.name == "InsertIntoHadoopFsRelationCommand":
            return files_target(node, plan, context)
        if node.name in {"CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand"}:
            table = node.args.get("table") or node.args.get("tableDesc")
            return None if table is None else created_table_target(table, node.args.get("mode"), plan, context)
        if node.name == "InsertIntoHiveTable":
            return hive_target(node, plan, context)
        if node.name == "WriteToMicroBatchDataSourceV1":
            return stream_target(node, plan, context)
        return None

    def versions_of_batch(
        self, source: SourceRelation, node: PlanNode, offsets: OffsetRange, facts: StatementFacts
    ) -> tuple[ReadVersion, ...]:
        """How far a stream has come is counted in its checkpoint: it is nobody else's version of the files."""
        pattern = source.hints.get("pattern") if source.source.dataset is None else None
        return (ReadVersion(changes=True, why=pattern and f"which directories {pattern} meant isn't known"),)

    def read_relations(self, source: SourceRelation, statement: Statement) -> tuple[SourceRelation, ...]:
        return paths_of_batch(source, statement)

    def start_of_stream(self, source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
        return StreamStart(reason=StartReason.EARLIEST)

    def versions_read(self, source: SourceRelation, plan: Plan, facts: StatementFacts) -> tuple[ReadVersion, ...]:
        version: ReadVersion = source.hints.get("version", ReadVersion())
        return (version,)

    def write_result(self, target: WriteTarget, statement: Statement) -> WriteResult:
        return write_result(target, statement)

    def schema_changes(
        self, target: WriteTarget, statement: Statement, context: CaptureContext
    ) -> tuple[AlterTable, ...]:
        return ()


PLUGIN: Final = FormatPlugin(
    name="files",
    reader=FileFormat(),
    order=LAST,
    packages=(),
    commands=COMMANDS,
)
