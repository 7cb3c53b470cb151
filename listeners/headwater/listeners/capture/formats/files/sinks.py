"""Files that are written: into a directory, into a table that is there, or into one that the statement makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.events import Format
from headwater.events.base import StringMap
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.tables import Transform
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.files.locations import (
    columns_of_table,
    dataset_of,
    format_of,
    location_of_table,
)
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.relations import columns_of, table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode


def stream_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    fields = node.args.get("sink") or {}
    if "fileFormat" not in fields:
        return None
    name = table_name(node.args.get("catalogTable"))
    sink = SinkSchema(
        dataset=dataset_of(context, name, fields["path"]),
        table=name,
        format=format_of(fields["fileFormat"], context.formats),
        partitioning=tuple(Transform(columns=((name,),)) for name in fields.get("partitions", ())),
    )
    return WriteTarget(
        sink,
        context.session_catalog() if name else None,
        CommitKind.APPEND,
        OverwriteScope.NOTHING,
        hints={"stream": True},
    )


def files_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget:
    table = node.args.get("catalogTable")
    name = table_name(table)
    partitions = [plan.attribute(-1 - ref).name for ref in node.expressions_of("partitionColumns") if ref < 0]
    word = table.get("provider") if table else _class_of(node.args.get("fileFormat"))
    location = location_of_table(table) or node.args["outputPath"]
    columns = columns_of_table(plan, table) or columns_of(plan, plan.nodes[node.inputs[0]].output)
    sink = SinkSchema(
        dataset=dataset_of(context, name, location),
        table=name,
        format=format_of(word, context.formats),
        columns=columns,
        partitioning=tuple(Transform(columns=((name,),)) for name in partitions),
        options=StringMap({} if table else node.args.get("options", {})),
    )
    overwrite = node.args.get("mode") == "Overwrite"
    return WriteTarget(
        sink,
        context.session_catalog() if name else None,
        CommitKind.OVERWRITE if overwrite else CommitKind.APPEND,
        _extent(node, overwrite),
    )


def _class_of(file_format: Any) -> str | None:
    """The class of a file format: Spark 4.1 made case classes of some, which are written by their names alone."""
    return file_format.get("class") or file_format.get("c") if isinstance(file_format, Mapping) else file_format


def _extent(node: PlanNode, overwrite: bool) -> OverwriteScope:
    if not overwrite:
        return OverwriteScope.NOTHING
    return OverwriteScope.PART if node.args.get("staticPartitions") else OverwriteScope.ALL


def created_table_target(
    table: Mapping[str, Any], mode: str | None, plan: Plan, context: CaptureContext
) -> WriteTarget:
    name = table_name(table)
    sink = SinkSchema(
        dataset=dataset_of(context, name, location_of_table(table)),
        table=name,
        format=format_of(table.get("provider"), context.formats),
        columns=columns_of_table(plan, table),
        partitioning=tuple(Transform(columns=((name,),)) for name in table.get("partitions", [])),
    )
    hints = {"scene": context, "mode": mode}
    return WriteTarget(sink, context.session_catalog(), CommitKind.CREATE, OverwriteScope.ALL, hints=hints)


def hive_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget:
    table = node.args["table"]
    name = table_name(table)
    sink = SinkSchema(
        dataset=dataset_of(context, name, location_of_table(table)),
        table=name,
        format=Format.HIVE,
        columns=columns_of_table(plan, table),
        partitioning=tuple(Transform(columns=((name,),)) for name in table.get("partitions", [])),
    )
    overwrite = bool(node.args.get("overwrite"))
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = (
        OverwriteScope.NOTHING
        if not overwrite
        else OverwriteScope.PART
        if node.args.get("partition")
        else OverwriteScope.ALL
    )
    return WriteTarget(sink, context.session_catalog(), kind, extent)
