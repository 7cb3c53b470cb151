"""Which table a node of a plan is about: by where it is, whatever it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import Life, TableName, Transform
from headwater.events.identity.life import delta_life
from headwater.events.names import DatasetId
from headwater.events.tables import Column
from headwater.listeners.capture.formats.delta.commits import placed
from headwater.listeners.capture.formats.relations import columns_of, table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_CLUSTERING: Final = "temp_cluster_by"


@dataclass(frozen=True)
class Place:
    """What a node tells of one of Delta's tables."""

    path: str
    life: Life | None
    table: TableName | None
    columns: tuple[Column, ...]
    partitioning: tuple[Transform, ...]
    changes: bool = False
    """The change feed is read, not a state."""

    def dataset(self, scene: Scene) -> DatasetId | None:
        return dataset_at(self.path, scene)


def dataset_at(path: str | None, scene: Scene) -> DatasetId | None:
    return None if path is None else placed(path, scene.site)


def life_of(metadata_id: str | None) -> Life | None:
    return None if metadata_id is None else delta_life(metadata_id)


def place_of(node: Node, plan: Plan) -> Place | None:
    """None where the node is no relation of Delta's, nor a command that has its table for an argument."""
    for argument in ("relation", "table", "sourceTable", "dataSource", "sink"):
        holder = node.args.get(argument)
        if isinstance(holder, Mapping) and isinstance(holder.get("delta"), Mapping):
            return _place(node, plan, holder, holder["delta"])
    return None


def _place(node: Node, plan: Plan, holder: Mapping[str, Any], told: Mapping[str, Any]) -> Place:
    is_command = "sourceTable" in node.args
    return Place(
        path=told["path"],
        life=life_of(told.get("life")),
        table=table_name(told.get("table") or node.args.get("catalogTable") or holder.get("catalogTable")),
        columns=() if is_command else columns_of(plan, node.output),
        partitioning=_partitioning(plan, holder),
        changes=bool(told.get("changes")),
    )


def _partitioning(plan: Plan, holder: Mapping[str, Any]) -> tuple[Transform, ...]:
    if "partitionSchema" in holder:
        fields = plan.schema(holder["partitionSchema"])["fields"]
        return tuple(Transform(columns=((field["name"],),)) for field in fields)
    return partitioned_by(holder.get("partitioning", ()))


def partitioned_by(transforms: Any) -> tuple[Transform, ...]:
    """Delta partitions by columns as they are; what it clusters by stands among them under a name of its own."""
    return tuple(
        Transform(columns=(tuple(argument["column"]),))
        for each in transforms
        if each["transform"] != _CLUSTERING
        for argument in each["arguments"]
        if "column" in argument
    )


def relation_below(plan: Plan, index: int | None) -> Node | None:
    """The relation under the aliases and projections that analysis put around a command's table."""
    while index is not None:
        node = plan.nodes[index]
        if not node.inputs:
            return node
        index = node.inputs[0]
    return None
