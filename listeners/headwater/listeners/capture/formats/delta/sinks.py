"""What is written: a relation, a path that a data source is given, or a table that the statement makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import CommitKind, Extent, Format, ShapedSink, TableName
from headwater.events.base import Texts
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.delta.places import Place, dataset_at, partitioned_by, place_of, relation_below
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.relations import columns_of, table_name, v2_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene

_PROVIDER: Final = "delta"
_SOURCE: Final = "org.apache.spark.sql.delta.sources.DeltaDataSource"
_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_BY_QUERY: Final = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect"})
_PATH_NAMESPACE: Final = ["delta"]


def sink_of(node: Node, plan: Plan, scene: Scene) -> Target | None:
    if node.name in _BY_QUERY:
        return _made_by_query(node, plan, scene)
    if node.name == "SaveIntoDataSourceCommand":
        return _saved(node, plan, scene)
    place = place_of(node, plan)
    return None if place is None or place.changes else target_at(place, node, scene)


def target_at(place: Place, node: Node, scene: Scene) -> Target:
    sink = ShapedSink(
        dataset=place.dataset(scene),
        table=place.table,
        life=place.life,
        format=Format.DELTA,
        columns=place.columns,
        partitioning=place.partitioning,
    )
    return Target(
        sink, _catalog(node, place.table, scene), versioned=True, node=node.index, hints=_hints(place.path, scene)
    )


def made_target(table: Mapping[str, Any], path: str | None, plan: Plan, scene: Scene, *, has_rows: bool) -> Target:
    """The table that a command of Delta's makes, as its CatalogTable tells it."""
    location = path or table.get("storage", {}).get("location")
    is_path = table.get("database") in {None, "delta"} and "/" in table["name"]
    sink = ShapedSink(
        dataset=dataset_at(location, scene),
        table=None if is_path else table_name(table),
        format=Format.DELTA,
        columns=columns_from_schema_json(plan.types[table["schema"]]),
    )
    hints = {**_hints(location, scene), "has_rows": has_rows}
    catalog = None if is_path else scene.session_catalog()
    return Target(sink, catalog, CommitKind.CREATE, Extent.ALL, versioned=True, hints=hints)


def converted_target(path: str | None, identifier: Mapping[str, Any] | None, scene: Scene) -> Target:
    """A path, or a table whose path only the commit tells, that becomes Delta's as a whole."""
    name = None if identifier is None else table_name({**identifier, "name": identifier["table"]})
    sink = ShapedSink(dataset=dataset_at(path, scene), table=name, format=Format.DELTA)
    catalog = None if name is None else scene.session_catalog()
    return Target(sink, catalog, replaced=Extent.ALL, versioned=True, hints=_hints(path, scene))


def _made_by_query(node: Node, plan: Plan, scene: Scene) -> Target | None:
    name = relation_below(plan, node.plan_of("name"))
    if name is None or "identifier" not in name.args:
        return None
    catalog = scene.catalog(name.args["catalog"])
    spec = node.args.get("tableSpec") or {}
    if not is_delta(catalog, spec.get("provider"), name.args["identifier"]):
        return None
    identifier, location = name.args["identifier"], spec.get("location")
    is_path = identifier["namespace"] == _PATH_NAMESPACE and "/" in identifier["name"]
    location = location or (identifier["name"] if is_path else None)
    query = node.plan_of("query")
    sink = ShapedSink(
        dataset=dataset_at(location, scene),
        table=None if is_path else v2_name(catalog.name, identifier),
        format=Format.DELTA,
        columns=() if query is None else columns_of(plan, plan.nodes[query].output),
        partitioning=partitioned_by(node.args.get("partitioning") or ()),
    )
    return Target(
        sink, None if is_path else catalog, CommitKind.CREATE, Extent.ALL, versioned=True, hints=_hints(location, scene)
    )


def is_delta(catalog: NamedCatalog, provider: str | None, identifier: Mapping[str, Any]) -> bool:
    """Whether a table that is made in this catalog is one of Delta's. Without a provider it is what the session's
    default says, which the plan doesn't show: the catalog's properties then have it."""
    if catalog.class_name != _CATALOG:
        return False
    return (provider or "").lower() == _PROVIDER or identifier["namespace"] == _PATH_NAMESPACE


def _saved(node: Node, plan: Plan, scene: Scene) -> Target | None:
    if (node.args.get("dataSource") or {}).get("class") != _SOURCE:
        return None
    options = {key.lower(): text for key, text in node.args.get("options", {}).items()}
    query, path = node.plan_of("query"), options.pop("path", None)
    overwrite = node.args.get("mode") == "Overwrite"
    sink = ShapedSink(
        dataset=dataset_at(path, scene),
        format=Format.DELTA,
        columns=() if query is None else columns_of(plan, plan.nodes[query].output),
        options=Texts(options),
    )
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = Extent.UNKNOWN if overwrite else Extent.NOTHING
    return Target(sink, None, kind, extent, versioned=True, hints=_hints(path, scene))


def _hints(path: str | None, scene: Scene) -> dict[str, Any]:
    return {"path": path, "site": scene.site}


def _catalog(node: Node, table: TableName | None, scene: Scene) -> NamedCatalog | None:
    if table is None:
        return None
    told = node.args.get("catalog")
    return scene.catalog(told) if isinstance(told, Mapping) and "catalog" in told else scene.session_catalog()
