"""Which table a node of a plan is about: by where it is, whatever it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.events import TableName
from headwater.events.identity.text import required
from headwater.events.names import DatasetId, Generation
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Transform
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.commits import place_path
from headwater.listeners.capture.formats.relations import columns_of, parse_uuid, table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_CLUSTERING: Final = "temp_cluster_by"


@dataclass(frozen=True)
class DeltaTableRef:
    """What a node tells of one of Delta's tables."""

    path: str
    generation: Generation | None
    table: TableName | None
    columns: tuple[Column, ...]
    partitioning: tuple[Transform, ...]
    generated: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=dict)
    """Columns that Delta computes as it writes, by what they are made from."""
    changes: bool = False
    """The change feed is read, not a state."""

    def dataset(self, context: CaptureContext) -> DatasetId | None:
        return dataset_at(self.path, context)


def dataset_at(path: str | None, context: CaptureContext) -> DatasetId | None:
    return None if path is None else place_path(path, context.environment)


def parse_metadata_id(text: str) -> Generation:
    """Of `metaData.id` in the log: a UUID by custom, any text by the protocol."""
    required(text, "a Delta table's metaData.id")
    return parse_uuid(text) or text


def generation_of(metadata_id: str | None) -> Generation | None:
    return None if metadata_id is None else parse_metadata_id(metadata_id)


def find_table_ref(node: PlanNode, plan: Plan) -> DeltaTableRef | None:
    """None where the node is no relation of Delta's, nor a command that has its table for an argument."""
    for argument in ("relation", "table", "sourceTable", "dataSource", "sink"):
        holder = node.args.get(argument)
        if isinstance(holder, Mapping) and isinstance(holder.get("delta"), Mapping):
            return _make_ref(node, plan, holder, holder["delta"])
    return None


def _make_ref(node: PlanNode, plan: Plan, holder: Mapping[str, Any], fields: Mapping[str, Any]) -> DeltaTableRef:
    is_command = "sourceTable" in node.args
    return DeltaTableRef(
        path=fields["path"],
        generation=generation_of(fields.get("generation")),
        table=table_name(fields.get("table") or node.args.get("catalogTable") or holder.get("catalogTable")),
        columns=() if is_command else columns_of(plan, node.output),
        partitioning=_partitioning(plan, holder),
        generated={name: tuple(tuple(path) for path in paths) for name, paths in fields.get("generated", {}).items()},
        changes=bool(fields.get("changes")),
    )


def _partitioning(plan: Plan, holder: Mapping[str, Any]) -> tuple[Transform, ...]:
    if "partitionSchema" in holder:
        fields = plan.schema(holder["partitionSchema"])["fields"]
        return tuple(Transform(columns=((field["name"],),)) for field in fields)
    return parse_partitioning(holder.get("partitioning", ()))


def parse_partitioning(transforms: Any) -> tuple[Transform, ...]:
    """Delta partitions by columns as they are; what it clusters by stands among them under a name of its own."""
    return tuple(
        Transform(columns=(tuple(argument["column"]),))
        for transform in transforms
        if transform["transform"] != _CLUSTERING
        for argument in transform["arguments"]
        if "column" in argument
    )


def relation_below(plan: Plan, index: int | None) -> PlanNode | None:
    """The relation under the aliases and projections that analysis put around a command's table."""
    while index is not None:
        node = plan.nodes[index]
        if not node.inputs:
            return node
        index = node.inputs[0]
    return None
