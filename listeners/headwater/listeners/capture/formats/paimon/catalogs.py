"""Paimon's Spark catalog: option `metastore` says what keeps the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
