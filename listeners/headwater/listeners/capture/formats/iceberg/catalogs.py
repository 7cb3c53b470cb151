"""Iceberg's Spark catalogs: `type` or `catalog-impl` says what keeps the tables.

Views that Iceberg's own catalogs keep, as its extensions make and drop them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from headwater.events import CreateView, DropView, Event, Format
from headwater.events.catalog import ModificationEffect
from headwater.events.identity.catalogs import (
    Catalog,
    CatalogReader,
    Layout,
    database_location,
    generic_catalog,
    glue_catalog,
    hive_catalog,
    known_warehouse,
    physical,
    rest_catalog,
    service_of,
    session_catalog,
    warehouse_of,
)
from headwater.events.identity.environment import Environment
from headwater.events.identity.text import Unknown, required
from headwater.events.tables import View
from headwater.listeners.capture.catalog.named_tables import dataset_of_view, name_v2_table
from headwater.listeners.capture.catalog.views import view_of
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, KnownTable
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement


def _create_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named, query = name_v2_table(node, statement.plan, context), node.plan_of("query")
    if named is None or query is None:
        return
    lenient = bool(node.args.get("allowExisting"))
    known = context.find_known(named.name)
    if lenient and known is not None:
        return
    view = view_of(named, _as_spark_command(node), query, statement, context)
    yield CreateView(
        context=named.catalog.context,
        effect=ModificationEffect.UNKNOWN if lenient else ModificationEffect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_view(named, context),
        format=Format.VIEW,
        view=view,
        ignore_if_exists=lenient,
        replaced=bool(node.args.get("replace")) and known is not None,
    )
    context.remember(named.name, KnownTable(view))


def _as_spark_command(node: PlanNode) -> PlanNode:
    """With the arguments called as Spark's own command calls them."""
    aliases, comments = node.args.get("columnAliases") or [], node.args.get("columnComments") or []
    names = [{"_1": name, "_2": comment} for name, comment in zip(aliases, comments, strict=False)]
    fields = {"originalText": node.args.get("queryText"), "userSpecifiedColumns": names}
    return replace(node, args={**node.args, **fields})


def _drop_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named = name_v2_table(node, statement.plan, context)
    if named is None:
        return
    lenient = bool(node.args.get("ifExists"))
    known = context.forget(named.name)
    yield DropView(
        context=named.catalog.context,
        effect=ModificationEffect.UNKNOWN if lenient and known is None else ModificationEffect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_view(named, context),
        format=Format.VIEW,
        view=known.table if known is not None and isinstance(known.table, View) else None,
        ignore_if_not_exists=lenient,
    )


VIEW_COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateIcebergView": CommandRule(catalog=_create_view),
    "DropIcebergView": CommandRule(catalog=_drop_view),
    "ShowIcebergViews": CommandRule(ignored="it only lists views"),
}


_NESSIE_API = re.compile(r"/api/v[0-9]+$")
_TYPES: Final[Mapping[str, str]] = {
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.nessie.NessieCatalog": "nessie",
}


def iceberg_catalog(name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """Without `type` and `catalog-impl` it is a metastore, as in Iceberg."""
    implementation = options.get("catalog-impl")
    kind = _TYPES.get(implementation) if implementation else options.get("type", "hive").lower()
    reader = _READERS.get(kind or "")
    return (
        reader(name, options, environment)
        if reader
        else generic_catalog(implementation or f"iceberg-{kind}", options, environment)
    )


def iceberg_session_catalog(name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """Iceberg in front of Spark's session catalog: the same metastore unless it is configured with another one."""
    is_own_catalog = options.get("catalog-impl") or options.get("uri") or options.get("type", "hive").lower() != "hive"
    return (
        iceberg_catalog(name, options, environment) if is_own_catalog else session_catalog(name, options, environment)
    )


def _hadoop(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog:
    warehouse = warehouse_of(options.get("warehouse"), environment, "option warehouse of an Iceberg hadoop catalog")
    identity = physical("iceberg", warehouse)
    return Catalog(id=identity, names=warehouse, layout=Layout(), warehouse=warehouse)


def _rest_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog:
    """One server may serve several warehouses, by path, ARN or a name of its own."""
    return rest_catalog("iceberg", options, environment)


def _nessie(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog:
    """One version store; `ref` is a branch in it, `warehouse` only where new tables go, `/api/v2` how it is asked."""
    uri = _NESSIE_API.sub("", service_of(options.get("uri"), environment, "option uri of a Nessie catalog"))
    warehouse = known_warehouse(options.get("warehouse"), environment)
    return Catalog(id=physical("nessie", uri), names=uri, warehouse=warehouse)


def _jdbc(name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """Several catalogs share the tables of one database, distinguished by the catalog's name."""
    location = database_location(options.get("uri"), options, environment, "option uri of an Iceberg jdbc catalog")
    if isinstance(location, Unknown):
        return location
    location = f"{location};catalog={required(name, 'the name of an Iceberg jdbc catalog')}"
    warehouse = known_warehouse(options.get("warehouse"), environment)
    return Catalog(id=physical("iceberg", location), names=location, warehouse=warehouse)


_READERS: Final[Mapping[str, CatalogReader]] = {
    "hadoop": _hadoop,
    "hive": hive_catalog,
    "rest": _rest_catalog,
    "glue": glue_catalog,
    "jdbc": _jdbc,
    "nessie": _nessie,
}
CATALOGS: Final[Mapping[str, CatalogReader]] = {
    "org.apache.iceberg.spark.SparkCatalog": iceberg_catalog,
    "org.apache.iceberg.spark.SparkSessionCatalog": iceberg_session_catalog,
}
