"""Which table a node of a plan is about: by where it is, whatever it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import FieldPath, TableName, Transform
from headwater.events.identity import IdentityError, Site, dataset_of_path
from headwater.events.names import DatasetId
from headwater.events.tables import Column
from headwater.listeners.capture.formats.relations import KEPT_BESIDE, columns_of, stream_of, table_name
from headwater.listeners.capture.plan.tree import Node, Plan

PROVIDER: Final = "hudi"
_PROVIDERS: Final = frozenset({PROVIDER, "org.apache.hudi", "org.apache.hudi.defaultsource"})
OF_HUDI: Final = KEPT_BESIDE[PROVIDER]


@dataclass(frozen=True)
class Place:
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


def place_of(node: Node, plan: Plan) -> Place | None:
    """None where the node is no relation of Hudi's, nor a stream from it or to it."""
    streamed = stream_of(node)
    if streamed is not None:
        return _streamed(node, streamed, plan)
    relation = node.args.get("relation") or node.args.get("sink")
    told = relation.get("hudi") if isinstance(relation, Mapping) else None
    if not isinstance(relation, Mapping) or not isinstance(told, Mapping):
        return None
    table: Mapping[str, Any] = node.args.get("catalogTable") or {}
    partitions = table.get("partitions") or _partitions(relation, plan)
    return Place(
        path=told.get("path") or table.get("storage", {}).get("location"),
        table=table_name(table or None),
        columns=without_hudis(columns_of(plan, node.output)),
        partitioning=partitioned_by(partitions),
        primary_key=key_of(table.get("properties", {}).get("primaryKey")),
        changes=bool(told.get("changes")),
        empty=bool(told.get("empty")),
    )


def _streamed(node: Node, told: Mapping[str, Any], plan: Plan) -> Place | None:
    """What a query reads as it comes."""
    if str(told.get("className", "")).lower() not in _PROVIDERS:
        return None
    table: Mapping[str, Any] = told.get("catalogTable") or {}
    return Place(
        path=table.get("storage", {}).get("location") or (told.get("options") or {}).get("path"),
        table=table_name(table or None),
        columns=without_hudis(columns_of(plan, node.output)),
        partitioning=partitioned_by(table.get("partitions", ())),
        primary_key=key_of(table.get("properties", {}).get("primaryKey")),
    )


def without_hudis(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(column for column in columns if column.name not in OF_HUDI)


def partitioned_by(names: Iterable[str]) -> tuple[Transform, ...]:
    return tuple(Transform(columns=((name,),)) for name in names)


def key_of(text: str | None) -> tuple[FieldPath, ...]:
    return tuple(tuple(name.strip().split(".")) for name in text.split(",") if name.strip()) if text else ()


def placed(path: str | None, site: Site) -> DatasetId | None:
    try:
        return None if path is None else dataset_of_path(path, site)
    except IdentityError:
        return None


def _partitions(relation: Mapping[str, Any], plan: Plan) -> list[str]:
    if "partitionSchema" not in relation:
        return []
    return [field["name"] for field in plan.schema(relation["partitionSchema"])["fields"]]
