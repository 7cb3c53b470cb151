"""What the plan tells of a Paimon table, as something that is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, ShapedSink, ShapedSource, TableName, Transform
from headwater.events.base import Texts
from headwater.events.identity import IdentityError, Site, dataset_of_path, life_of
from headwater.events.names import DatasetId, Life
from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.protocol import Described, Target
from headwater.listeners.capture.formats.relations import columns_of, v2_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene

ASKED: Final = frozenset(
    {
        "scan.snapshot-id",
        "scan.tag-name",
        "scan.version",
        "scan.timestamp",
        "scan.timestamp-millis",
        "scan.watermark",
        "scan.file-creation-time-millis",
        "incremental-between",
        "incremental-between-timestamp",
    }
)
"""Options that say which version is to be read; the eye has the same list."""
_NOT_OPTIONS: Final = ASKED | {"path", "owner", "provider", "comment", "primary-key", "branch", "scan.mode"}
_WITH_ROWS: Final = {"AuditLogTable", "ReadOptimizedTable"}
_SOURCE: Final = "org.apache.paimon.spark.SparkSource"
_CATALOG: Final = "org.apache.paimon.spark.SparkCatalog"
_GENERIC: Final = "org.apache.paimon.spark.SparkGenericCatalog"


def source(node: Node, plan: Plan, scene: Scene) -> Described | None:
    table = _table_of(node)
    if table is None:
        return None
    told, system = table["paimon"], table["paimon"].get("system")
    asked = {**told.get("asked", {}), **_asked(node.args.get("options", {}))}
    options = dict(_options(table))
    if system is not None:
        options["system-table"] = system.removesuffix("Table")
    version = asked.get("scan.snapshot-id") or asked.get("scan.version", "")
    return Described(
        node.index,
        ShapedSource(
            **_place(node, scene, told),
            tag=asked.get("scan.tag-name"),
            columns=columns_of(plan, node.output),
            partitioning=_partitioning(table),
            primary_key=_keys(told),
            options=Texts(options),
        ),
        versioned=system is None or system in _WITH_ROWS,
        asked=int(version) if version.isdigit() else None,
        hints={"place": place_of(told), "asked": asked},
    )


def sink(node: Node, plan: Plan, scene: Scene) -> Target | None:
    if node.name == "SaveIntoDataSourceCommand":
        return _by_path(node, scene)
    if node.name in {"CreateTableAsSelect", "ReplaceTableAsSelect"}:
        return _to_be_made(node, plan, scene)
    if "paimon" in (node.args.get("sink") or {}):
        return in_catalogs(node.args["sink"], scene)
    return relation(node, plan, scene)


def relation(node: Node, plan: Plan, scene: Scene) -> Target | None:
    """The table that a relation, or a resolved table, is."""
    table = _table_of(node)
    if table is None or "system" in table["paimon"]:
        return None
    told = table["paimon"]
    shaped = ShapedSink(
        **_place(node, scene, told),
        columns=columns_of(plan, node.output),
        partitioning=_partitioning(table),
        primary_key=_keys(told),
        options=Texts(_options(table)),
    )
    return Target(shaped, _catalog_of(node, scene), versioned=True, node=node.index, hints=_hints(told, scene))


def in_catalogs(table: Mapping[str, Any], scene: Scene) -> Target:
    """The table of a command that doesn't say which catalog it is in: the one whose place for it this is."""
    told = table["paimon"]
    dataset, known = _dataset(told, scene.site), scene.catalogs("paimon")
    called = {each.name: name_in(each, table) for each in known}
    catalog = next(
        (each for each in known if dataset and scene.dataset(each, called[each.name], None) == dataset), None
    )
    shaped = ShapedSink(
        dataset=dataset,
        table=called[catalog.name] if catalog else None,
        life=life(told),
        format=Format.PAIMON,
        branch=told.get("branch"),
        main="branch" not in told,
        partitioning=_partitioning(table),
        primary_key=_keys(told),
        options=Texts(_options(table)),
    )
    return Target(shaped, catalog, versioned=True, hints=_hints(told, scene))


def name_in(catalog: NamedCatalog, table: Mapping[str, Any]) -> TableName:
    """As the catalog calls a table that a plan has without its identifier."""
    database, _, name = table["table"].rpartition(".")
    return TableName(catalog=catalog.name, database=database, table=_base(name))


def made(shaped: ShapedSink, told: Mapping[str, Any], site: Site) -> ShapedSink:
    """The sink, with what a writer told of a table that the plan doesn't know."""
    changes: dict[str, object] = {
        "dataset": _dataset(told, site) or shaped.dataset,
        "life": life(told),
        "branch": told.get("branch"),
        "main": "branch" not in told,
        "primary_key": _keys(told),
        "partitioning": tuple(Transform(columns=((each,),)) for each in told.get("partitionKeys", ())),
    }
    if "columns" in told:
        changes["columns"] = columns_told(told["columns"])
    return shaped.model_copy(update=changes)


def columns_told(schema: str) -> tuple[Column, ...]:
    return columns_from_schema_json(schema)


def place_of(told: Mapping[str, Any]) -> tuple[str, str]:
    """What tables, reads and commits are matched by: Paimon knows one local path with and without its scheme."""
    return "/" + told.get("location", "").removeprefix("file:").lstrip("/"), told.get("branch", "")


def life(told: Mapping[str, Any]) -> Life | None:
    millis = told.get("life")
    return None if millis is None else life_of("paimon", {"schema-0.timeMillis": str(millis)})


def _by_path(node: Node, scene: Scene) -> Target | None:
    if node.args.get("dataSource", {}).get("class") != _SOURCE:
        return None
    path = node.args.get("options", {}).get("path", "")
    told = {"location": path}
    options = {key: text for key, text in node.args.get("options", {}).items() if key not in _NOT_OPTIONS}
    shaped = ShapedSink(dataset=_dataset(told, scene.site), format=Format.PAIMON, options=Texts(options))
    return Target(shaped, versioned=True, hints={"site": scene.site, "made": True, "by path": True})


def _to_be_made(node: Node, plan: Plan, scene: Scene) -> Target | None:
    identifier = node.plan_of("name")
    if identifier is None or plan.nodes[identifier].name != "ResolvedIdentifier":
        return None
    args = plan.nodes[identifier].args
    catalog, specification = scene.catalog(args["catalog"]), node.args.get("tableSpec", {})
    if not _makes_paimon(catalog, specification.get("provider")):
        return None
    name = v2_name(catalog.name, args["identifier"])
    shaped = ShapedSink(
        dataset=scene.dataset(catalog, name, None),
        table=name,
        format=Format.PAIMON,
        partitioning=tuple(_transform(each) for each in node.args.get("partitioning", ())),
        options=Texts({k: v for k, v in specification.get("properties", {}).items() if k not in _NOT_OPTIONS}),
    )
    return Target(shaped, catalog, versioned=True, hints={"site": scene.site, "made": True})


def _makes_paimon(catalog: NamedCatalog, provider: str | None) -> bool:
    if catalog.class_name == _CATALOG:
        return True
    return catalog.class_name == _GENERIC and (provider is None or provider.lower() == "paimon")


def _table_of(node: Node) -> Mapping[str, Any] | None:
    table = node.args.get("table")
    return table if isinstance(table, dict) and "paimon" in table else None


def _place(node: Node, scene: Scene, told: Mapping[str, Any]) -> dict[str, Any]:
    catalog, identifier = _catalog_of(node, scene), node.args.get("identifier")
    name = None if catalog is None or identifier is None else _name(catalog, identifier)
    return {
        "dataset": _dataset(told, scene.site),
        "table": name,
        "life": life(told),
        "format": Format.PAIMON,
        "branch": told.get("branch"),
        "main": "branch" not in told,
    }


def _name(catalog: NamedCatalog, identifier: Mapping[str, Any]) -> TableName:
    return v2_name(catalog.name, {**identifier, "name": _base(identifier["name"])})


def _base(name: str) -> str:
    """`t$branch_b`, `t$snapshots` and `t$branch_b$files` are views of the table `t`."""
    return name.partition("$")[0] or name


def _catalog_of(node: Node, scene: Scene) -> NamedCatalog | None:
    reference = node.args.get("catalog")
    return None if reference is None else scene.catalog(reference)


def _dataset(told: Mapping[str, Any], site: Site) -> DatasetId | None:
    try:
        return dataset_of_path(told["location"], site) if told.get("location") else None
    except IdentityError:
        return None


def _hints(told: Mapping[str, Any], scene: Scene) -> dict[str, Any]:
    return {"place": place_of(told), "site": scene.site, "schema": told.get("schema")}


def _asked(options: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in options.items() if key in ASKED}


def _options(table: Mapping[str, Any]) -> dict[str, str]:
    return {key: text for key, text in table.get("properties", {}).items() if key not in _NOT_OPTIONS}


def _keys(told: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple((each,) for each in told.get("primaryKey", ()))


def _partitioning(table: Mapping[str, Any]) -> tuple[Transform, ...]:
    return tuple(_transform(each) for each in table.get("partitioning", ()))


def _transform(told: Mapping[str, Any]) -> Transform:
    return Transform(
        name=told["transform"],
        columns=tuple(tuple(part.strip("`") for part in a["column"]) for a in told["arguments"] if "column" in a),
        arguments=tuple(each["text"] for each in told["arguments"] if "text" in each),
    )
