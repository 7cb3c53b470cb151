"""Paimon's Spark catalog: option `metastore` says what keeps the tables."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.events.identity.catalogs.hive import hive_catalog
from headwater.events.identity.catalogs.iceberg import rest_catalog
from headwater.events.identity.catalogs.known import Catalog, Layout, physical, warehouse_of
from headwater.events.identity.catalogs.others import database_location, generic_catalog
from headwater.events.identity.results import Unknown
from headwater.events.identity.site import Site


def paimon_catalog(name: str, options: Mapping[str, str], site: Site) -> Catalog | Unknown:
    metastore = options.get("metastore", "filesystem").lower()
    if metastore == "filesystem":
        return _filesystem(options, site)
    if metastore == "hive":
        return hive_catalog(name, options, site)
    if metastore == "jdbc":
        return _jdbc(options, site)
    if metastore == "rest":
        return rest_catalog("paimon", options, site)
    return generic_catalog(f"paimon-{metastore}", options, site)


def _filesystem(options: Mapping[str, str], site: Site) -> Catalog:
    warehouse = warehouse_of(options.get("warehouse"), site, "option warehouse of a Paimon catalog")
    identity = physical("paimon", warehouse)
    return Catalog(id=identity, names=warehouse, layout=Layout.PAIMON, warehouse=warehouse)


def _jdbc(options: Mapping[str, str], site: Site) -> Catalog | Unknown:
    """Several catalogs share the tables of one database, told apart by `catalog-key`."""
    location = database_location(options.get("uri"), options, site, "option uri of a Paimon jdbc catalog")
    if isinstance(location, Unknown):
        return location
    location = f"{location};catalog-key={options.get('catalog-key') or 'jdbc'}"
    return Catalog(id=physical("paimon", location), names=location)
