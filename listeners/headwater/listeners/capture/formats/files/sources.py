"""Files that are read: as a table, by path, as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, ShapedSource, Transform
from headwater.events.base import Texts
from headwater.listeners.capture.formats.files.places import FORMATS, dataset_of, format_of, location_of_table
from headwater.listeners.capture.formats.protocol import Described
from headwater.listeners.capture.formats.relations import columns_of, stream_options, table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_STREAMED: Final = frozenset(FORMATS.values()) - {Format.HIVE}


def described(
    node: Node, plan: Plan, scene: Scene, table: Mapping[str, Any] | None, relation: Mapping[str, Any] | None
) -> Described:
    paths = [] if relation is None else relation.get("paths", [])
    location = location_of_table(table) or (paths[0] if paths else None)
    name = table_name(table)
    partitions = table.get("partitions", []) if table else _field_names(plan, relation)
    word = (table or {}).get("provider") or (relation or {}).get("fileFormat")
    source = ShapedSource(
        dataset=dataset_of(scene, name, location),
        table=name,
        format=format_of(word),
        columns=columns_of(plan, node.output),
        partitioning=tuple(Transform(columns=((each,),)) for each in partitions),
        options=Texts(relation.get("options", {}) if relation and table is None else {}),
    )
    return Described(node.index, source)


def streamed(node: Node, plan: Plan, scene: Scene) -> Described | None:
    """Files that are read as they come."""
    told = node.args.get("dataSource") or {}
    word, table = str(told.get("className", "")), told.get("catalogTable")
    if format_of(word) not in _STREAMED:
        return None
    options = stream_options(node)
    location = location_of_table(table) or options.pop("path", None) or next(iter(told.get("paths", ())), None)
    name = table_name(table)
    source = ShapedSource(
        dataset=dataset_of(scene, name, location),
        table=name,
        format=format_of(word),
        columns=columns_of(plan, node.output),
        partitioning=tuple(Transform(columns=((each,),)) for each in told.get("partitionColumns") or ()),
        options=Texts({} if table else options),
    )
    return Described(node.index, source)


def _field_names(plan: Plan, relation: Mapping[str, Any] | None) -> list[str]:
    if relation is None or "partitionSchema" not in relation:
        return []
    return [field["name"] for field in plan.schema(relation["partitionSchema"])["fields"]]
