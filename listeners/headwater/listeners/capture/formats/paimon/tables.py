"""What the plan tells of a Paimon table, as something that is read or written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, TableName
from headwater.events.base import StringMap
from headwater.events.identity import Environment, IdentityError, dataset_of_path
from headwater.events.jobs import SinkSchema, SourceSchema
from headwater.events.names import DatasetId, Generation
from headwater.events.tables import Column, Transform
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.protocol import SourceRelation, WriteTarget
from headwater.listeners.capture.formats.relations import columns_of, v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

SELECTOR_OPTIONS: Final = frozenset(
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
"""Options that say which version is to be read; the extractor has the same list."""
_NOT_OPTIONS: Final = SELECTOR_OPTIONS | {"path", "owner", "provider", "comment", "primary-key", "branch", "scan.mode"}
_MILLIS: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_WITH_ROWS: Final = {"AuditLogTable", "ReadOptimizedTable"}
_SOURCE: Final = "org.apache.paimon.spark.SparkSource"
_CATALOG: Final = "org.apache.paimon.spark.SparkCatalog"
_GENERIC: Final = "org.apache.paimon.spark.SparkGenericCatalog"


def source(node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
    table = _table_of(node)
    if table is None:
        return None
    fields, system = table["paimon"], table["paimon"].get("system")
    asked = {**fields.get("asked", {}), **_selectors_in(node.args.get("options", {}))}
    options = dict(_options_of(table))
    if system is not None:
        options["system-table"] = system.removesuffix("Table")
    version = asked.get("scan.snapshot-id") or asked.get("scan.version", "")
    return SourceRelation(
        node.index,
        SourceSchema(
            **_make_target(node, context, fields),
            tag=asked.get("scan.tag-name"),
            columns=columns_of(plan, node.output),
            partitioning=_partitioning(table),
            primary_key=_keys(fields),
            options=StringMap(options),
        ),
        versioned=system is None or system in _WITH_ROWS,
        asked=int(version) if version.isdigit() else None,
        hints={"place": location_key(fields), "asked": asked},
    )


def sink(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    if node.name == "SaveIntoDataSourceCommand":
        return _table_by_path(node, context)
    if node.name in {"CreateTableAsSelect", "ReplaceTableAsSelect"}:
        return _created_table_target(node, plan, context)
    if "paimon" in (node.args.get("sink") or {}):
        return find_catalog(node.args["sink"], context)
    return relation(node, plan, context)


def relation(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    """The table that a relation, or a resolved table, is."""
    table = _table_of(node)
    if table is None or "system" in table["paimon"]:
        return None
    fields = table["paimon"]
    shaped = SinkSchema(
        **_make_target(node, context, fields),
        columns=columns_of(plan, node.output),
        partitioning=_partitioning(table),
        primary_key=_keys(fields),
        options=StringMap(_options_of(table)),
    )
    return WriteTarget(
        shaped, _catalog_of(node, context), versioned=True, node=node.index, hints=_hints(fields, context)
    )


def find_catalog(table: Mapping[str, Any], context: CaptureContext) -> WriteTarget:
    """The table of a command that doesn't say which catalog it is in: the one whose place for it this is."""
    fields = table["paimon"]
    dataset, known = _dataset(fields, context.environment), context.catalogs("paimon")
    called = {catalog.name: name_in(catalog, table) for catalog in known}
    catalog = next(
        (catalog for catalog in known if dataset and context.dataset(catalog, called[catalog.name], None) == dataset),
        None,
    )
    shaped = SinkSchema(
        dataset=dataset,
        table=called[catalog.name] if catalog else None,
        generation=parse_generation(fields),
        format=Format.PAIMON,
        branch=fields.get("branch"),
        main="branch" not in fields,
        partitioning=_partitioning(table),
        primary_key=_keys(fields),
        options=StringMap(_options_of(table)),
    )
    return WriteTarget(shaped, catalog, versioned=True, hints=_hints(fields, context))


def name_in(catalog: SessionNamedCatalog, table: Mapping[str, Any]) -> TableName:
    """As the catalog calls a table that a plan has without its identifier."""
    database, _, name = table["table"].rpartition(".")
    return TableName(catalog=catalog.name, database=database, table=_base_name(name))


def complete_sink(shaped: SinkSchema, fields: Mapping[str, Any], environment: Environment) -> SinkSchema:
    """The sink, with what a writer reported of a table that the plan doesn't know."""
    changes: dict[str, object] = {
        "dataset": _dataset(fields, environment) or shaped.dataset,
        "generation": parse_generation(fields),
        "branch": fields.get("branch"),
        "main": "branch" not in fields,
        "primary_key": _keys(fields),
        "partitioning": tuple(Transform(columns=((name,),)) for name in fields.get("partitionKeys", ())),
    }
    if "columns" in fields:
        changes["columns"] = parse_columns(fields["columns"])
    return shaped.model_copy(update=changes)


def parse_columns(schema: str) -> tuple[Column, ...]:
    return columns_from_schema_json(schema)


def location_key(fields: Mapping[str, Any]) -> tuple[str, str]:
    """What tables, reads and commits are matched by: Paimon knows one local path with and without its scheme."""
    return "/" + fields.get("location", "").removeprefix("file:").lstrip("/"), fields.get("branch", "")


def parse_generation(fields: Mapping[str, Any]) -> Generation | None:
    millis = fields.get("generation")
    return None if millis is None else parse_creation_time(millis)


def parse_creation_time(schema_0_millis: str | int) -> Generation:
    """Of `timeMillis` in `schema/schema-0`: when the table was made. Later schemas don't count."""
    text = str(schema_0_millis)
    if not _MILLIS.fullmatch(text) or int(text) == 0:
        msg = "the creation time of Paimon's schema-0 isn't milliseconds since 1970; read timeMillis of schema/schema-0"
        raise IdentityError(msg)
    return str(int(text))


def _table_by_path(node: PlanNode, context: CaptureContext) -> WriteTarget | None:
    if node.args.get("dataSource", {}).get("class") != _SOURCE:
        return None
    path = node.args.get("options", {}).get("path", "")
    fields = {"location": path}
    options = {key: text for key, text in node.args.get("options", {}).items() if key not in _NOT_OPTIONS}
    shaped = SinkSchema(dataset=_dataset(fields, context.environment), format=Format.PAIMON, options=StringMap(options))
    return WriteTarget(
        shaped, versioned=True, hints={"environment": context.environment, "made": True, "by path": True}
    )


def _created_table_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    identifier = node.plan_of("name")
    if identifier is None or plan.nodes[identifier].name != "ResolvedIdentifier":
        return None
    args = plan.nodes[identifier].args
    catalog, specification = context.catalog(args["catalog"]), node.args.get("tableSpec", {})
    if not _is_paimon(catalog, specification.get("provider")):
        return None
    name = v2_name(catalog.name, args["identifier"])
    shaped = SinkSchema(
        dataset=context.dataset(catalog, name, None),
        table=name,
        format=Format.PAIMON,
        partitioning=tuple(_transform(transform) for transform in node.args.get("partitioning", ())),
        options=StringMap({k: v for k, v in specification.get("properties", {}).items() if k not in _NOT_OPTIONS}),
    )
    return WriteTarget(shaped, catalog, versioned=True, hints={"environment": context.environment, "made": True})


def _is_paimon(catalog: SessionNamedCatalog, provider: str | None) -> bool:
    if catalog.class_name == _CATALOG:
        return True
    return catalog.class_name == _GENERIC and (provider is None or provider.lower() == "paimon")


def _table_of(node: PlanNode) -> Mapping[str, Any] | None:
    table = node.args.get("table")
    return table if isinstance(table, dict) and "paimon" in table else None


def _make_target(node: PlanNode, context: CaptureContext, fields: Mapping[str, Any]) -> dict[str, Any]:
    catalog, identifier = _catalog_of(node, context), node.args.get("identifier")
    name = None if catalog is None or identifier is None else _table_name(catalog, identifier)
    return {
        "dataset": _dataset(fields, context.environment),
        "table": name,
        "generation": parse_generation(fields),
        "format": Format.PAIMON,
        "branch": fields.get("branch"),
        "main": "branch" not in fields,
    }


def _table_name(catalog: SessionNamedCatalog, identifier: Mapping[str, Any]) -> TableName:
    return v2_name(catalog.name, {**identifier, "name": _base_name(identifier["name"])})


def _base_name(name: str) -> str:
    """`t$branch_b`, `t$snapshots` and `t$branch_b$files` are views of the table `t`."""
    return name.partition("$")[0] or name


def _catalog_of(node: PlanNode, context: CaptureContext) -> SessionNamedCatalog | None:
    reference = node.args.get("catalog")
    return None if reference is None else context.catalog(reference)


def _dataset(fields: Mapping[str, Any], environment: Environment) -> DatasetId | None:
    try:
        return dataset_of_path(fields["location"], environment) if fields.get("location") else None
    except IdentityError:
        return None


def _hints(fields: Mapping[str, Any], context: CaptureContext) -> dict[str, Any]:
    return {"place": location_key(fields), "environment": context.environment, "schema": fields.get("schema")}


def _selectors_in(options: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in options.items() if key in SELECTOR_OPTIONS}


def _options_of(table: Mapping[str, Any]) -> dict[str, str]:
    return {key: text for key, text in table.get("properties", {}).items() if key not in _NOT_OPTIONS}


def _keys(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in fields.get("primaryKey", ()))


def _partitioning(table: Mapping[str, Any]) -> tuple[Transform, ...]:
    return tuple(_transform(transform) for transform in table.get("partitioning", ()))


def _transform(fields: Mapping[str, Any]) -> Transform:
    return Transform(
        name=fields["transform"],
        columns=tuple(tuple(part.strip("`") for part in a["column"]) for a in fields["arguments"] if "column" in a),
        arguments=tuple(argument["text"] for argument in fields["arguments"] if "text" in argument),
    )
