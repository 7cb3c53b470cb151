"""Paimon's Spark catalog: option `metastore` says what keeps the tables.

What Paimon's own facts tell of a table that DDL was about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events.identity.catalogs import (
    Catalog,
    CatalogReader,
    Layout,
    database_location,
    generic_catalog,
    hive_catalog,
    known_warehouse,
    physical,
    rest_catalog,
    session_catalog,
    warehouse_of,
)
from headwater.events.identity.environment import Environment
from headwater.events.identity.text import Unknown
from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.occurrence import is_during, session_facts
from headwater.listeners.capture.catalog.table_evidence import TableEvidence
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.paimon.tables import parse_creation_time
from headwater.listeners.capture.formats.plugin import TableFacts
from headwater.listeners.capture.formats.relations import parse_generation
from headwater.listeners.capture.statements import Statement

NAME = "paimon"


def read_table_facts(fields: Mapping[str, Any]) -> TableFacts:
    """Of what the extractor wrote into a table."""
    return TableFacts(
        location=fields.get("location"),
        generation=parse_generation(parse_creation_time, fields.get("generation")),
        primary_key=tuple((name,) for name in fields.get("primaryKey", ())),
    )


def find_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the time of the table's first schema, which is the generation; of one that was altered, by its newest."""
    changed = statement.facts.looked_up.get(NAME, {}).get("altered")
    if changed is not None:
        alone = changed["schema"] == changed["before"] + 1 and is_during(statement, changed["at"])
        return TableEvidence(schema_id=changed["schema"] if alone else None)
    for fields in session_facts(statement).get("tables", ()):
        own = fields.get(NAME)
        if own is not None and own.get("generation"):
            made = is_during(statement, own["generation"])
            return TableEvidence(did=made, existed=None if made is None else not made, schema_id=own.get("schema"))
    return None


_LAYOUT: Final = Layout(database_suffix=".db", selector="$")
"""`t$branch_b` and `t$snapshots` are views of the table `t`."""


def paimon_catalog(name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    metastore = options.get("metastore", "filesystem").lower()
    if metastore == "filesystem":
        return _filesystem(options, environment)
    if metastore == "hive":
        return hive_catalog(name, options, environment)
    if metastore == "jdbc":
        return _jdbc(options, environment)
    if metastore == "rest":
        return rest_catalog("paimon", options, environment)
    return generic_catalog(f"paimon-{metastore}", options, environment)


def _filesystem(options: Mapping[str, str], environment: Environment) -> Catalog:
    warehouse = warehouse_of(options.get("warehouse"), environment, "option warehouse of a Paimon catalog")
    identity = physical("paimon", warehouse)
    return Catalog(id=identity, names=warehouse, layout=_LAYOUT, warehouse=warehouse)


def _jdbc(options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """Several catalogs share the tables of one database, distinguished by `catalog-key`."""
    location = database_location(options.get("uri"), options, environment, "option uri of a Paimon jdbc catalog")
    if isinstance(location, Unknown):
        return location
    location = f"{location};catalog-key={options.get('catalog-key') or 'jdbc'}"
    warehouse = known_warehouse(options.get("warehouse"), environment)
    return Catalog(id=physical("paimon", location), names=location, warehouse=warehouse)


CATALOGS: Final[Mapping[str, CatalogReader]] = {
    "org.apache.paimon.spark.SparkCatalog": paimon_catalog,
    "org.apache.paimon.spark.SparkGenericCatalog": session_catalog,
}
