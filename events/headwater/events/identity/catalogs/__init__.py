"""A catalog → what it points at. Two names for one warehouse are one catalog, one name for two are two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from headwater.events.identity.catalogs.hive import glue_catalog, hive_catalog, session_catalog
from headwater.events.identity.catalogs.iceberg import iceberg_catalog, iceberg_session_catalog
from headwater.events.identity.catalogs.known import Catalog, Layout
from headwater.events.identity.catalogs.others import generic_catalog, jdbc_catalog, unity_catalog
from headwater.events.identity.catalogs.paimon import paimon_catalog
from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import Unknown
from headwater.events.identity.text import lower_keys
from headwater.events.names import CatalogId

__all__ = ["Catalog", "Layout", "catalog_id", "catalog_of", "glue_catalog"]

_Reader: TypeAlias = Callable[[str, Mapping[str, str], Environment], Catalog | Unknown]

_READERS: Final[Mapping[str, _Reader]] = {
    "org.apache.iceberg.spark.SparkCatalog": iceberg_catalog,
    "org.apache.iceberg.spark.SparkSessionCatalog": iceberg_session_catalog,
    "org.apache.paimon.spark.SparkCatalog": paimon_catalog,
    "org.apache.paimon.spark.SparkGenericCatalog": session_catalog,
    "org.apache.spark.sql.delta.catalog.DeltaCatalog": session_catalog,
    "org.apache.spark.sql.hudi.catalog.HoodieCatalog": session_catalog,
    "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog": session_catalog,
    "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog": jdbc_catalog,
    "org.apache.kyuubi.spark.connector.hive.HiveTableCatalog": hive_catalog,
    "io.unitycatalog.spark.UCSingleCatalog": unity_catalog,
    "com.databricks.sql.managedcatalog.UnityCatalogV2Proxy": unity_catalog,
}


def catalog_of(
    name: str, class_name: str | None, options: Mapping[str, str], environment: Environment
) -> Catalog | Unknown:
    """What a catalog points at, and how its tables are named.

    `options` are those under `spark.sql.catalog.<name>.`; without a class it is Spark's own session catalog. The name
    counts only where it chooses between physical catalogs (Iceberg's jdbc catalog, Unity Catalog).
    """
    values = lower_keys(options)
    if not class_name:
        return session_catalog(name, values, environment)
    reader = _READERS.get(class_name)
    return reader(name, values, environment) if reader else generic_catalog(class_name, values, environment)


def catalog_id(
    name: str, class_name: str | None, options: Mapping[str, str], environment: Environment
) -> CatalogId | Unknown:
    found = catalog_of(name, class_name, options, environment)
    return found if isinstance(found, Unknown) else found.id
