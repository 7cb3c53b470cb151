"""What is written: a relation, a table that the statement makes, one of which only the name is there, or a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import CommitKind, Extent, FieldPath, Format, ShapedSink, TableName
from headwater.events.base import Texts
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.hudi.places import (
    OF_HUDI,
    PROVIDER,
    Place,
    key_of,
    partitioned_by,
    place_of,
    placed,
    without_hudis,
)
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.relations import columns_of, table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_SOURCES: Final = ("org.apache.hudi.", PROVIDER)
_OPERATION: Final = "hoodie.datasource.write.operation"
_KEY: Final = "hoodie.datasource.write.recordkey.field"
_PARTITIONS: Final = "hoodie.datasource.write.partitionpath.field"


def sink_of(node: Node, plan: Plan, scene: Scene) -> Target | None:
    if node.name == "SaveIntoDataSourceCommand":
        return _saved(node, plan, scene)
    place = place_of(node, plan)
    return None if place is None or place.changes else target_at(place, node, scene)


def target_at(place: Place, node: Node, scene: Scene) -> Target:
    sink = ShapedSink(
        dataset=placed(place.path, scene.site),
        table=place.table,
        format=Format.HUDI,
        columns=place.columns,
        partitioning=place.partitioning,
        primary_key=place.primary_key,
    )
    catalog = None if place.table is None else scene.session_catalog()
    return Target(sink, catalog, versioned=True, node=node.index, hints=hints(scene))


def named_target(name: TableName, path: str | None, scene: Scene) -> Target:
    """A table of which the plan has no more than its name."""
    known = scene.known(name)
    dataset = placed(path, scene.site) or (known.dataset if known else None)
    sink = ShapedSink(dataset=dataset, table=name, format=Format.HUDI)
    return Target(sink, scene.session_catalog(), versioned=True, hints=hints(scene))


def made_target(table: Mapping[str, Any], mode: str | None, query: int | None, plan: Plan, scene: Scene) -> Target:
    """The table that CREATE TABLE AS SELECT or `saveAsTable` makes, or adds to."""
    columns = columns_from_schema_json(plan.types[table["schema"]])
    if not columns and query is not None:
        columns = columns_of(plan, plan.nodes[query].output)
    sink = ShapedSink(
        dataset=placed(table.get("storage", {}).get("location"), scene.site),
        table=table_name(table),
        format=Format.HUDI,
        columns=without_hudis(columns),
        partitioning=partitioned_by(table.get("partitions", ())),
        primary_key=key_of(table.get("properties", {}).get("primaryKey")),
    )
    adds = mode == "Append"
    kind = CommitKind.APPEND if adds else CommitKind.CREATE
    extent = Extent.UNKNOWN if adds else Extent.ALL
    return Target(sink, scene.session_catalog(), kind, extent, versioned=True, hints=hints(scene))


def own_names(plan: Plan, query: int) -> tuple[FieldPath | None, ...]:
    """Columns by their names; those that Hudi makes itself go nowhere."""
    names = (plan.attribute(number).name for number in plan.nodes[query].output)
    return tuple(None if name in OF_HUDI else (name,) for name in names)


def hints(scene: Scene) -> dict[str, Any]:
    return {"site": scene.site}


def _saved(node: Node, plan: Plan, scene: Scene) -> Target | None:
    source = (node.args.get("dataSource") or {}).get("class", "")
    if not source.startswith(_SOURCES):
        return None
    options = {key.lower(): text for key, text in node.args.get("options", {}).items()}
    query = node.plan_of("query")
    columns = () if query is None else columns_of(plan, plan.nodes[query].output)
    sink = ShapedSink(
        dataset=placed(options.pop("path", None), scene.site),
        format=Format.HUDI,
        columns=without_hudis(columns),
        partitioning=partitioned_by(_partitions(options.get(_PARTITIONS))),
        primary_key=key_of(options.get(_KEY)),
        options=Texts(options),
    )
    kind, extent = _asked(node.args.get("mode"), options.get(_OPERATION, ""))
    return Target(sink, None, kind, extent, versioned=True, hints=hints(scene))


def _partitions(text: str | None) -> list[str]:
    """With a key generator that takes it, each has its type behind a colon."""
    return [name.strip().partition(":")[0] for name in (text or "").split(",") if name.strip()]


def _asked(mode: str | None, operation: str) -> tuple[CommitKind, Extent]:
    """Where partitions are overwritten, the mode says nothing more; else it removes the table before it writes."""
    if mode == "Overwrite" and operation.lower() != "insert_overwrite":
        return CommitKind.OVERWRITE, Extent.ALL
    return CommitKind.APPEND, Extent.UNKNOWN
