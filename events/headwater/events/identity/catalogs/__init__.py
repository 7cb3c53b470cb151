"""A catalog → what it points at. Two names for one warehouse are one catalog, one name for two are two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.events.identity.catalogs.hive import glue_catalog, hive_catalog, session_catalog
from headwater.events.identity.catalogs.known import Catalog, CatalogReader, Layout
from headwater.events.identity.catalogs.others import generic_catalog, jdbc_catalog, unity_catalog
from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import Unknown
from headwater.events.identity.text import lower_keys

__all__ = ["Catalog", "CatalogReader", "Layout", "catalog_of", "glue_catalog", "jdbc_catalog", "session_catalog"]

_READERS: Final[Mapping[str, CatalogReader]] = {
    "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog": session_catalog,
    "org.apache.kyuubi.spark.connector.hive.HiveTableCatalog": hive_catalog,
    "io.unitycatalog.spark.UCSingleCatalog": unity_catalog,
    "com.databricks.sql.managedcatalog.UnityCatalogV2Proxy": unity_catalog,
}


def catalog_of(
    name: str,
    class_name: str | None,
    options: Mapping[str, str],
    environment: Environment,
    reader: CatalogReader | None = None,
) -> Catalog | Unknown:
    """What a catalog points at, and how its tables are named.

    `options` are those under `spark.sql.catalog.<name>.`; without a class it is Spark's own session catalog. The name
    counts only where it chooses between physical catalogs (Iceberg's jdbc catalog, Unity Catalog). `reader` is what
    a table format brings for the class.
    """
    values = lower_keys(options)
    if not class_name:
        return session_catalog(name, values, environment)
    reader = reader or _READERS.get(class_name)
    return reader(name, values, environment) if reader else generic_catalog(class_name, values, environment)
