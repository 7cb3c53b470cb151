"""Files that are written: into a directory, into a table that is there, or into one that the statement makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.events import CommitKind, Extent, Format, ShapedSink, Transform
from headwater.events.base import Texts
from headwater.listeners.capture.formats.files.places import columns_of_table, dataset_of, format_of, location_of_table
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.relations import columns_of, table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene


def stream_target(node: Node, plan: Plan, scene: Scene) -> Target | None:
    told = node.args.get("sink") or {}
    if "fileFormat" not in told:
        return None
    name = table_name(node.args.get("catalogTable"))
    sink = ShapedSink(
        dataset=dataset_of(scene, name, told["path"]),
        table=name,
        format=format_of(told["fileFormat"]),
        partitioning=tuple(Transform(columns=((each,),)) for each in told.get("partitions", ())),
    )
    return Target(
        sink,
        scene.session_catalog() if name else None,
        CommitKind.APPEND,
        Extent.NOTHING,
        hints={"stream": True},
    )


def files_target(node: Node, plan: Plan, scene: Scene) -> Target:
    table = node.args.get("catalogTable")
    name = table_name(table)
    partitions = [plan.attribute(-1 - ref).name for ref in node.expressions_of("partitionColumns") if ref < 0]
    word = table.get("provider") if table else node.args.get("fileFormat", {}).get("class")
    location = location_of_table(table) or node.args["outputPath"]
    columns = columns_of_table(plan, table) or columns_of(plan, plan.nodes[node.inputs[0]].output)
    sink = ShapedSink(
        dataset=dataset_of(scene, name, location),
        table=name,
        format=format_of(word),
        columns=columns,
        partitioning=tuple(Transform(columns=((each,),)) for each in partitions),
        options=Texts({} if table else node.args.get("options", {})),
    )
    overwrite = node.args.get("mode") == "Overwrite"
    return Target(
        sink,
        scene.session_catalog() if name else None,
        CommitKind.OVERWRITE if overwrite else CommitKind.APPEND,
        _extent(node, overwrite),
    )


def _extent(node: Node, overwrite: bool) -> Extent:
    if not overwrite:
        return Extent.NOTHING
    return Extent.PART if node.args.get("staticPartitions") else Extent.ALL


def made_target(table: Mapping[str, Any], mode: str | None, plan: Plan, scene: Scene) -> Target:
    name = table_name(table)
    sink = ShapedSink(
        dataset=dataset_of(scene, name, location_of_table(table)),
        table=name,
        format=format_of(table.get("provider")),
        columns=columns_of_table(plan, table),
        partitioning=tuple(Transform(columns=((each,),)) for each in table.get("partitions", [])),
    )
    hints = {"scene": scene, "mode": mode}
    return Target(sink, scene.session_catalog(), CommitKind.CREATE, Extent.ALL, hints=hints)


def hive_target(node: Node, plan: Plan, scene: Scene) -> Target:
    table = node.args["table"]
    name = table_name(table)
    sink = ShapedSink(
        dataset=dataset_of(scene, name, location_of_table(table)),
        table=name,
        format=Format.HIVE,
        columns=columns_of_table(plan, table),
        partitioning=tuple(Transform(columns=((each,),)) for each in table.get("partitions", [])),
    )
    overwrite = bool(node.args.get("overwrite"))
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = Extent.NOTHING if not overwrite else Extent.PART if node.args.get("partition") else Extent.ALL
    return Target(sink, scene.session_catalog(), kind, extent)
