"""Descriptions of tables and databases, from what catalogs and commands tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headwater.events import Format, Table
from headwater.events.base import StringMap
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Database, SortField, TableKind, Transform
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.catalog.table_evidence import TableDescription
from headwater.listeners.capture.context import SessionNamedCatalog
from headwater.listeners.capture.formats import installed, plugins
from headwater.listeners.capture.formats.external_rows import OPTION_PREFIX, reported_options
from headwater.listeners.capture.formats.files.locations import format_of
from headwater.listeners.capture.formats.plugin import TableFacts
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Plan

_KINDS: Final = {"MANAGED": TableKind.MANAGED, "EXTERNAL": TableKind.EXTERNAL}
_SEPARATE_PROPERTIES: Final = frozenset({"comment", "location", "provider", "owner", "external", "is_managed_location"})
"""What Spark keeps among a table's properties and a description has a place for."""
_CLUSTERING: Final = "cluster_by"


def describe_catalog_table(fields: Mapping[str, Any], plan: Plan | None = None) -> TableDescription:
    """A CatalogTable, out of a plan or looked up."""
    storage: Mapping[str, Any] = fields.get("storage", {})
    bucket: Mapping[str, Any] | None = fields.get("bucket")
    provider = fields.get("provider")
    plugin = installed().of_provider(provider)
    beside = frozenset() if plugin is None else plugin.hidden_columns
    given = reported_options(provider, storage.get("options", {}), installed())
    options = {OPTION_PREFIX + key: text for key, text in given.items()}
    table = Table(
        columns=tuple(column for column in _columns_of(fields, plan) if column.name not in beside),
        partitioning=(
            *map(identity_transform, fields.get("partitions", ())),
            *([] if bucket is None else [_bucket(bucket)]),
        ),
        ordering=()
        if bucket is None
        else tuple(SortField(by=identity_transform(name)) for name in bucket.get("sorted", ())),
        properties=StringMap({**options, **fields.get("properties", {})}),
        comment=fields.get("comment"),
        location=storage.get("location"),
        provider=provider,
        table_kind=_KINDS.get(fields.get("type", ""), TableKind.UNKNOWN),
        owner=fields.get("owner") or None,
    )
    return TableDescription(table, format_of_table(provider), created=fields.get("created"))


def _columns_of(fields: Mapping[str, Any], plan: Plan | None) -> tuple[Column, ...]:
    if "schemaText" in fields:
        return columns_from_schema_json(fields["schemaText"])
    return () if plan is None else columns_from_schema_json(plan.types[fields["schema"]])


def describe_v2_table(
    fields: Mapping[str, Any], columns: Sequence[Column], kind: TableKind = TableKind.UNKNOWN
) -> TableDescription:
    """A table of a V2 catalog, as its interface and its format's extractor tell it."""
    properties: Mapping[str, str] = fields.get("properties", {})
    facts = facts_of_table(fields)
    location = properties.get("location") or facts.location
    layout = [parse_transform(transform) for transform in fields.get("partitioning", ())]
    table = Table(
        columns=tuple(columns),
        partitioning=tuple(transform for transform in layout if transform.name != _CLUSTERING),
        clustering=parse_clustering(layout),
        primary_key=facts.primary_key,
        properties=StringMap(_own_properties(properties, location)),
        comment=properties.get("comment"),
        location=location,
        provider=properties.get("provider"),
        table_kind=TableKind.EXTERNAL if properties.get("external") == "true" else kind,
        owner=properties.get("owner") or None,
    )
    return TableDescription(table, format_of_table(table.provider, fields), facts.generation)


def _own_properties(properties: Mapping[str, str], location: str | None) -> dict[str, str]:
    """Without what has a place of its own. Some format has the location among them, as `path`."""
    kept = {key: text for key, text in properties.items() if key not in _SEPARATE_PROPERTIES}
    if location is not None and kept.get("path") == location:
        del kept["path"]
    return kept


def describe_resolved_table(fields: Mapping[str, Any], output: Iterable[int], plan: Plan) -> TableDescription:
    """The table that a command was resolved to, as it was analysed. (A table that a plan holds may be a live one:
    its properties are those of when the plan was read. What its metadata tells goes before this.)"""
    if "v1" in fields:
        return describe_catalog_table(fields["v1"], plan)
    return describe_v2_table(fields, columns_of(plan, output))


def describe_requested_table(
    spec: Mapping[str, Any],
    columns: Sequence[Column],
    partitioning: Iterable[Mapping[str, Any]],
    catalog: SessionNamedCatalog,
) -> TableDescription:
    """A table that a v2 command asks for."""
    layout = [parse_transform(transform) for transform in partitioning]
    location = spec.get("location")
    given = reported_options(spec.get("provider"), spec.get("options") or {}, installed())
    options = {OPTION_PREFIX + key: text for key, text in given.items()}
    managed = TableKind.MANAGED if location is None else TableKind.UNKNOWN
    table = Table(
        columns=tuple(columns),
        partitioning=tuple(transform for transform in layout if transform.name != _CLUSTERING),
        clustering=parse_clustering(layout),
        properties=StringMap({**options, **spec.get("properties", {})}),
        comment=spec.get("comment"),
        location=location,
        provider=spec.get("provider"),
        table_kind=TableKind.EXTERNAL if spec.get("external") else managed,
    )
    return TableDescription(
        table, format_of_table(table.provider) if table.provider else format_of_table(catalog.context.factory)
    )


def parse_transform(fields: Mapping[str, Any]) -> Transform:
    arguments: Sequence[Mapping[str, Any]] = fields["arguments"]
    columns = (tuple(argument["column"]) for argument in arguments if "column" in argument)
    texts = (argument["text"] for argument in arguments if "column" not in argument)
    return Transform(name=fields["transform"], columns=tuple(columns), arguments=tuple(texts))


def parse_clustering(layout: Iterable[Transform]) -> tuple[FieldPath, ...]:
    return tuple(path for transform in layout if transform.name == _CLUSTERING for path in transform.columns)


def identity_transform(name: str) -> Transform:
    return Transform(columns=((name,),))


def _bucket(fields: Mapping[str, Any]) -> Transform:
    columns = tuple((name,) for name in fields["columns"])
    return Transform(name="bucket", columns=columns, arguments=(str(fields["number"]),))


def facts_of_table(fields: Mapping[str, Any]) -> TableFacts:
    """What the extractor of its format wrote into a table."""
    for plugin in plugins():
        if plugin.table_facts is not None and plugin.name in fields:
            return plugin.table_facts(fields[plugin.name])
    return TableFacts()


def format_of_table(provider: str | None, fields: Mapping[str, Any] | None = None) -> Format:
    """By what the format's extractor wrote, else by the provider's name."""
    written = (plugin.format for plugin in plugins() if fields is not None and plugin.name in fields)
    return next(written, None) or format_of(provider, installed())


def describe_database(fields: Mapping[str, str]) -> Database:
    """A namespace's metadata."""
    rest = {key: text for key, text in fields.items() if key not in {"comment", "location", "owner"}}
    return Database(
        comment=fields.get("comment") or None,
        location=fields.get("location"),
        owner=fields.get("owner") or None,
        properties=StringMap(rest),
    )
