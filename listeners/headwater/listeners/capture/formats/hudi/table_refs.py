"""Which table a node of a plan is about: by where it is, whatever it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import TableName
from headwater.events.identity import Environment, IdentityError, dataset_of_path
from headwater.events.names import DatasetId
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Transform
from headwater.listeners.capture.formats.relations import columns_of, stream_of, table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

PROVIDER: Final = "hudi"
_PROVIDERS: Final = frozenset({PROVIDER, "org.apache.hudi", "org.apache.hudi.defaultsource"})
HUDI_COLUMNS: Final = frozenset(
    {
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "_hoodie_operation",
    }
)
"""Columns that Hudi keeps beside a table's own."""


@dataclass(frozen=True)
class HudiTableRef:
    """What a node tells of one of Hudi's tables."""

    path: str | None
    table: TableName | None
    columns: tuple[Column, ...]
    partitioning: tuple[Transform, ...]
    primary_key: tuple[FieldPath, ...]
    changes: bool = False
    """What instants changed is read, not a state."""
    empty: bool = False
    """Nothing was committed to it yet."""


def find_table_ref(node: PlanNode, plan: Plan) -> HudiTableRef | None:
    """None where the node is no relation of Hudi's, nor a stream from it or to it."""
    streamed = stream_of(node)
    if streamed is not None:
        return _ref_of_stream(node, streamed, plan)
    relation = node.args.get("relation") or node.args.get("sink")
    fields = relation.get("hudi") if isinstance(relation, Mapping) else None
    if not isinstance(relation, Mapping) or not isinstance(fields, Mapping):
        return None
    table: Mapping[str, Any] = node.args.get("catalogTable") or {}
    partitions = table.get("partitions") or _partitions(relation, plan)
    return HudiTableRef(
        path=fields.get("path") or table.get("storage", {}).get("location"),
        table=table_name(table or None),
        columns=without_internal_columns(columns_of(plan, node.output)),
        partitioning=identity_partitioning(partitions),
        primary_key=parse_key(table.get("properties", {}).get("primaryKey")),
        changes=bool(fields.get("changes")),
        empty=bool(fields.get("empty")),
    )


def _ref_of_stream(node: PlanNode, fields: Mapping[str, Any], plan: Plan) -> HudiTableRef | None:
    """What a query reads as it comes."""
    if str(fields.get("className", "")).lower() not in _PROVIDERS:
        return None
    table: Mapping[str, Any] = fields.get("catalogTable") or {}
    return HudiTableRef(
        path=table.get("storage", {}).get("location") or (fields.get("options") or {}).get("path"),
        table=table_name(table or None),
        columns=without_internal_columns(columns_of(plan, node.output)),
        partitioning=identity_partitioning(table.get("partitions", ())),
        primary_key=parse_key(table.get("properties", {}).get("primaryKey")),
    )


def without_internal_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.name not in HUDI_COLUMNS)


def identity_partitioning(names: Iterable[str]) -> tuple[Transform, ...]:
    return tuple(Transform(columns=((name,),)) for name in names)


def parse_key(text: str | None) -> tuple[FieldPath, ...]:
    return tuple(tuple(name.strip().split(".")) for name in text.split(",") if name.strip()) if text else ()


def place_path(path: str | None, environment: Environment) -> DatasetId | None:
    try:
        return None if path is None else dataset_of_path(path, environment)
    except IdentityError:
        return None


def _partitions(relation: Mapping[str, Any], plan: Plan) -> list[str]:
    if "partitionSchema" not in relation:
        return []
    return [field["name"] for field in plan.schema(relation["partitionSchema"])["fields"]]
