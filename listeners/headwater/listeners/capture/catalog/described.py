"""Descriptions of tables and databases, from what catalogs and commands tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import Format, Life, SortField, Table, TableKind, Transform
from headwater.events.base import Texts
from headwater.events.identity import IdentityError, delta_life, iceberg_life, paimon_life
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Database
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.catalog.elsewhere import OPTION, told_options
from headwater.listeners.capture.formats.files.places import format_of
from headwater.listeners.capture.formats.relations import KEPT_BESIDE, columns_of, system_of
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.scene import NamedCatalog

_KINDS: Final = {"MANAGED": TableKind.MANAGED, "EXTERNAL": TableKind.EXTERNAL}
_FORMATS: Final = {
    "iceberg": Format.ICEBERG,
    "delta": Format.DELTA,
    "paimon": Format.PAIMON,
    "hudi": Format.HUDI,
    "jdbc": Format.JDBC,
    "kafka": Format.KAFKA,
}
_OWN_PLACE: Final = frozenset({"comment", "location", "provider", "owner", "external", "is_managed_location"})
"""What Spark keeps among a table's properties and a description has a place for."""
_CLUSTERING: Final = "cluster_by"


@dataclass(frozen=True)
class Told:
    """A table as something told it."""

    table: Table
    format: Format = Format.UNKNOWN
    life: Life | None = None
    created: int | None = None
    """Milliseconds since 1970, as the catalog keeps it."""


def of_first_kind(told: Mapping[str, Any], plan: Plan | None = None) -> Told:
    """A CatalogTable, out of a plan or looked up."""
    storage: Mapping[str, Any] = told.get("storage", {})
    bucket: Mapping[str, Any] | None = told.get("bucket")
    provider = told.get("provider")
    beside = KEPT_BESIDE.get((provider or "").lower(), frozenset())
    options = {OPTION + key: text for key, text in told_options(provider, storage.get("options", {})).items()}
    table = Table(
        columns=tuple(column for column in _columns(told, plan) if column.name not in beside),
        partitioning=(*map(identity, told.get("partitions", ())), *([] if bucket is None else [_bucket(bucket)])),
        ordering=() if bucket is None else tuple(SortField(by=identity(name)) for name in bucket.get("sorted", ())),
        properties=Texts({**options, **told.get("properties", {})}),
        comment=told.get("comment"),
        location=storage.get("location"),
        provider=provider,
        table_kind=_KINDS.get(told.get("type", ""), TableKind.UNKNOWN),
        owner=told.get("owner") or None,
    )
    return Told(table, format_by(provider), created=told.get("created"))


def _columns(told: Mapping[str, Any], plan: Plan | None) -> tuple[Column, ...]:
    if "schemaText" in told:
        return columns_from_schema_json(told["schemaText"])
    return () if plan is None else columns_from_schema_json(plan.types[told["schema"]])


def of_second_kind(told: Mapping[str, Any], columns: Sequence[Column], kind: TableKind = TableKind.UNKNOWN) -> Told:
    """A table of a V2 catalog, as its interface and its format's eye tell it."""
    properties: Mapping[str, str] = told.get("properties", {})
    location = properties.get("location") or _location(told)
    layout = [transform_of(each) for each in told.get("partitioning", ())]
    table = Table(
        columns=tuple(columns),
        partitioning=tuple(each for each in layout if each.name != _CLUSTERING),
        clustering=clustering_of(layout),
        primary_key=_primary_key(told),
        properties=Texts(_own(properties, location)),
        comment=properties.get("comment"),
        location=location,
        provider=properties.get("provider"),
        table_kind=TableKind.EXTERNAL if properties.get("external") == "true" else kind,
        owner=properties.get("owner") or None,
    )
    return Told(table, format_by(table.provider, told), life_in(told))


def _own(properties: Mapping[str, str], location: str | None) -> dict[str, str]:
    """Without what has a place of its own. Paimon has the location among them, as `path`."""
    kept = {key: text for key, text in properties.items() if key not in _OWN_PLACE}
    if location is not None and kept.get("path") == location:
        del kept["path"]
    return kept


def of_plan(told: Mapping[str, Any], output: Iterable[int], plan: Plan) -> Told:
    """The table that a command was resolved to, as it was analysed. (An Iceberg table that a plan holds is a live one:
    its properties are those of when the plan was read. What its metadata tells goes before this.)"""
    if "v1" in told:
        return of_first_kind(told["v1"], plan)
    return of_second_kind(told, columns_of(plan, output))


def of_command(
    spec: Mapping[str, Any], columns: Sequence[Column], partitioning: Iterable[Mapping[str, Any]], catalog: NamedCatalog
) -> Told:
    """A table that a command of the second kind asks for."""
    layout = [transform_of(each) for each in partitioning]
    location = spec.get("location")
    given = told_options(spec.get("provider"), spec.get("options") or {})
    options = {OPTION + key: text for key, text in given.items()}
    managed = TableKind.MANAGED if location is None else TableKind.UNKNOWN
    table = Table(
        columns=tuple(columns),
        partitioning=tuple(each for each in layout if each.name != _CLUSTERING),
        clustering=clustering_of(layout),
        properties=Texts({**options, **spec.get("properties", {})}),
        comment=spec.get("comment"),
        location=location,
        provider=spec.get("provider"),
        table_kind=TableKind.EXTERNAL if spec.get("external") else managed,
    )
    return Told(table, format_by(table.provider) if table.provider else format_by(catalog.context.factory))


def transform_of(told: Mapping[str, Any]) -> Transform:
    arguments: Sequence[Mapping[str, Any]] = told["arguments"]
    columns = (tuple(each["column"]) for each in arguments if "column" in each)
    texts = (each["text"] for each in arguments if "column" not in each)
    return Transform(name=told["transform"], columns=tuple(columns), arguments=tuple(texts))


def clustering_of(layout: Iterable[Transform]) -> tuple[FieldPath, ...]:
    return tuple(path for each in layout if each.name == _CLUSTERING for path in each.columns)


def identity(name: str) -> Transform:
    return Transform(columns=((name,),))


def _bucket(told: Mapping[str, Any]) -> Transform:
    columns = tuple((name,) for name in told["columns"])
    return Transform(name="bucket", columns=columns, arguments=(str(told["number"]),))


def _primary_key(told: Mapping[str, Any]) -> tuple[FieldPath, ...]:
    iceberg, paimon = told.get("iceberg", {}), told.get("paimon", {})
    names = (*(tuple(key.split(".")) for key in iceberg.get("key", ())), *((k,) for k in paimon.get("primaryKey", ())))
    return tuple(names)


def _location(told: Mapping[str, Any]) -> str | None:
    for own in ("iceberg", "paimon"):
        if told.get(own, {}).get("location"):
            return str(told[own]["location"])
    path = told.get("delta", {}).get("path")
    return None if path is None else str(path)


def life_in(told: Mapping[str, Any]) -> Life | None:
    """The life, as the format's eye wrote it into a table."""
    try:
        if told.get("iceberg", {}).get("uuid"):
            return iceberg_life(told["iceberg"]["uuid"])
        if told.get("delta", {}).get("life"):
            return delta_life(told["delta"]["life"])
        if told.get("paimon", {}).get("life"):
            return paimon_life(told["paimon"]["life"])
    except IdentityError:
        return None
    return None


def format_by(provider: str | None, told: Mapping[str, Any] | None = None) -> Format:
    """By what the format's eye wrote, else by the provider's name."""
    for word, found in _FORMATS.items():
        if told is not None and word in told:
            return found
    return _FORMATS.get(system_of(provider) or (provider or "").lower()) or format_of(provider)


def database_from(told: Mapping[str, str]) -> Database:
    """A namespace's metadata."""
    rest = {key: text for key, text in told.items() if key not in {"comment", "location", "owner"}}
    return Database(
        comment=told.get("comment") or None,
        location=told.get("location"),
        owner=told.get("owner") or None,
        properties=Texts(rest),
    )
