"""Parquet, ORC, CSV, JSON, text and whatever else is files in directories, in Spark's own catalog or by path.

They have no versions: neither a read nor a write names one, and that is no gap.
"""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Format, StartReason
from headwater.listeners.capture.formats.files.loads import COMMANDS, LOAD, loaded_files
from headwater.listeners.capture.formats.files.places import format_of
from headwater.listeners.capture.formats.files.sinks import files_target, hive_target, made_target, stream_target
from headwater.listeners.capture.formats.files.sources import described, streamed
from headwater.listeners.capture.formats.files.written import outcome_of
from headwater.listeners.capture.formats.protocol import Begins, Described, Outcome, Target, Version
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took

__all__ = ["COMMANDS", "FORMAT", "Files", "format_of"]


class Files:
    """Tables of the session catalog and paths, as sources and sinks."""

    @property
    def format(self) -> Format:
        return Format.PARQUET

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        if node.name == LOAD:
            return loaded_files(node, scene)
        if node.name == "HiveTableRelation":
            return described(node, plan, scene, node.args.get("tableMeta"), None)
        if node.name == "StreamingRelation":
            return streamed(node, plan, scene)
        if node.name != "LogicalRelation":
            return None
        relation = node.args.get("relation", {})
        if "fileFormat" not in relation:
            return None
        return described(node, plan, scene, node.args.get("catalogTable"), relation)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        if node.name == "InsertIntoHadoopFsRelationCommand":
            return files_target(node, plan, scene)
        if node.name in {"CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand"}:
            table = node.args.get("table") or node.args.get("tableDesc")
            return None if table is None else made_target(table, node.args.get("mode"), plan, scene)
        if node.name == "InsertIntoHiveTable":
            return hive_target(node, plan, scene)
        if node.name == "WriteToMicroBatchDataSourceV1":
            return stream_target(node, plan, scene)
        return None

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        """How far a stream has come is counted in its checkpoint: it is nobody else's version of the files."""
        return (Version(changes=True),)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return Begins(reason=StartReason.EARLIEST)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return (Version(),)

    def written(self, target: Target, statement: Statement) -> Outcome:
        written = target.hints.get("written", outcome_of)
        outcome: Outcome = written(target, statement)
        return outcome

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return ()


FORMAT: Final = Files()
