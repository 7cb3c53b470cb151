"""A catalog → what it points at. Two names for one warehouse are one catalog, one name for two are two.

What is known of a catalog, whatever its kind.

Catalogs that are a database, a Unity Catalog server, or of a class that isn't known.

Catalogs kept by a Hive metastore, by AWS Glue in its place, or by the session alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from headwater.events.identity.environment import Environment
from headwater.events.identity.hosts import Endpoint, endpoint, port_number
from headwater.events.identity.jdbc import jdbc_database
from headwater.events.identity.paths import dataset_of_path, location_of
from headwater.events.identity.text import IdentityError, Unknown, lower_keys, required
from headwater.events.names import CatalogId

__all__ = ["Catalog", "CatalogReader", "Layout", "catalog_of", "glue_catalog", "jdbc_catalog", "session_catalog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a table lies in the warehouse, for catalogs that leave no choice."""

    database_suffix: str | None = None
    """A table is in a database, which is one directory whose name ends so; else each part of a namespace is one."""
    selector: str | None = None
    """What begins with this in a table's name chooses a view of the table."""

    def table_of(self, name: str) -> str:
        """The name of the table itself."""
        return (name.partition(self.selector)[0] or name) if self.selector else name


class Naming(Enum):
    """How a catalog's tables are called beside their location."""

    DATABASE_TABLE = "{database}.{table}"
    GLUE = "table/{database}/{table}"
    CATALOG_TABLE = "{catalog}.{database}.{table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """A physical catalog. `names` is the namespace of the names it gives."""

    id: CatalogId
    names: str
    naming: Naming = Naming.DATABASE_TABLE
    folds: bool = False
    """Names are stored in lower case."""
    layout: Layout | None = None
    warehouse: str | None = None
    """Where new tables go by default, as far as it is known. It distinguishes no catalog from another by itself."""
    jdbc: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Of a JDBC catalog: its url and options, as configured. Not for recording."""


CatalogReader: TypeAlias = Callable[[str, Mapping[str, str], Environment], Catalog | Unknown]
"""Of a catalog's name, its options in lower case and where it is used, what it points at."""


def physical(kind: str, location: str) -> CatalogId:
    return CatalogId(type=required(kind, "a catalog's type"), location=required(location, "a catalog's location"))


def warehouse_of(text: str | None, environment: Environment, what: str) -> str:
    """A warehouse in one spelling."""
    return location_of(dataset_of_path(required(text, what), environment))


def known_warehouse(text: str | None, environment: Environment) -> str | None:
    """The same; None where it isn't given, or is a name that the catalog's server has for it."""
    if not text or not (text.startswith("/") or ":/" in text):
        return None
    try:
        return warehouse_of(text, environment, "a warehouse").rstrip("/")
    except IdentityError:
        return None


def service_of(uri: str | None, environment: Environment, what: str) -> str:
    """A service's URL in one spelling: no user, no query, no default port, no trailing slash."""
    return location_of(dataset_of_path(required(uri, what), environment)).rstrip("/")


def metastore_of(uris: str, environment: Environment) -> str:
    """`thrift://a:9083,thrift://b` → `hive://a:9083`."""
    places = [_thrift(uri) for uri in uris.split(",") if uri.strip()]
    return f"hive://{environment.authority(places)}"


def _thrift(uri: str) -> Endpoint:
    _, _, authority = uri.strip().rpartition("://")
    place = endpoint(authority.rstrip("/"))
    return Endpoint(place.host, place.port or port_number(None, 9083))


_POINTERS: Final = ("uri", "url", "warehouse", "path")


def jdbc_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """A database seen through Spark's `JDBCTableCatalog`; its tables are the database's own."""
    database = jdbc_database(required(options.get("url"), "option url of a jdbc catalog"), environment, options)
    if isinstance(database, Unknown):
        return database
    identity = physical("jdbc", database.location)
    return Catalog(id=identity, names=database.namespace, jdbc=options)


def unity_catalog(name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """One catalog of a Unity Catalog server: there its name is its own, not an alias."""
    uri = options.get("uri") or (f"https://{environment.workspace}" if environment.workspace else None)
    if uri is None:
        return Unknown(reason="Unity Catalog: neither option uri nor the workspace's URL is known")
    server = "unitycatalog://" + service_of(uri, environment, "option uri").partition("://")[2].partition("/")[0]
    catalog = required(name, "the name of a Unity Catalog").lower()
    identity = physical("unity", f"{server}/{catalog}")
    return Catalog(id=identity, names=server, naming=Naming.CATALOG_TABLE, folds=True)


def rest_catalog(kind: str, options: Mapping[str, str], environment: Environment) -> Catalog:
    """A format's catalog service, as Iceberg and Paimon have one."""
    uri = service_of(options.get("uri"), environment, f"option uri of an {kind} rest catalog")
    warehouse = options.get("warehouse")
    if warehouse and (warehouse.startswith("/") or ":/" in warehouse):
        warehouse = warehouse_of(warehouse, environment, "option warehouse")
    location = f"{uri};warehouse={required(warehouse, 'option warehouse')}" if warehouse else uri
    return Catalog(id=physical(kind, location), names=location)


def generic_catalog(kind: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """Of an unknown class: all that its options point at. Pointing nowhere, it can't be distinguished from another
    one."""
    pointers = [_pointer(key, options[key], environment) for key in _POINTERS if options.get(key)]
    if not pointers:
        return Unknown(reason=f"catalog class {kind} tells none of the options {', '.join(_POINTERS)}")
    if None in pointers:
        return Unknown(reason=f"catalog class {kind} points at something that is neither a path nor a known URL")
    location = ";".join(pointer for pointer in pointers if pointer)
    return Catalog(id=physical(kind, location), names=location)


def database_location(
    url: str | None, options: Mapping[str, str], environment: Environment, what: str
) -> str | Unknown:
    """The database in which a catalog keeps its own tables; there even MySQL's database counts."""
    inner = {key.removeprefix("jdbc."): value for key, value in options.items()}
    database = jdbc_database(required(url, what), environment, {k: v for k, v in inner.items() if k == "user"})
    if isinstance(database, Unknown):
        return database
    return database.namespace if database.database is None else f"{database.namespace}/{database.database}"


def _pointer(key: str, value: str, environment: Environment) -> str | None:
    try:
        if value.lower().startswith("jdbc:"):
            location = database_location(value, {}, environment, f"option {key}")
            return None if isinstance(location, Unknown) else location
        if value.lower().startswith("thrift:"):
            value = "hive:" + value[len("thrift:") :]
        absolute = value.startswith("/") or ":/" in value
        return warehouse_of(value, environment, f"option {key}").rstrip("/") if absolute else None
    except IdentityError:
        return None


def hive_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """A metastore, whoever asks it: Iceberg, Paimon and Spark see the same databases in it."""
    warehouse = known_warehouse(options.get("warehouse") or environment.warehouse, environment)
    uris = options.get("uri") or options.get("hive.metastore.uris") or environment.metastore
    if uris:
        return _hive(metastore_of(uris, environment), warehouse)
    if environment.metastore_database:
        return _inside_the_driver(environment.metastore_database, environment, warehouse)
    return Unknown(reason="the metastore isn't known: neither the catalog's uri nor hive.metastore.uris is set")


def session_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """`spark_catalog`, as it is or wrapped by Delta or Hudi: the metastore, or only this session over a warehouse."""
    if environment.session_catalog == "hive" or options.get("hive.metastore.uris"):
        if environment.metastore or environment.metastore_database or options.get("hive.metastore.uris"):
            return hive_catalog(_name, options, environment)
        if environment.working_directory is None and environment.derby_home is None:
            return Unknown(
                reason="the metastore isn't known: set hive.metastore.uris or javax.jdo.option.ConnectionURL"
            )
        warehouse = known_warehouse(environment.warehouse, environment)
        return _inside_the_driver("jdbc:derby:;databaseName=metastore_db", environment, warehouse)
    if environment.warehouse is None:
        return Unknown(reason="neither a metastore nor spark.sql.warehouse.dir is set")
    warehouse = warehouse_of(environment.warehouse, environment, "spark.sql.warehouse.dir")
    return Catalog(id=physical("spark", warehouse), names=warehouse, folds=True, warehouse=warehouse)


def glue_catalog(_name: str, options: Mapping[str, str], environment: Environment) -> Catalog | Unknown:
    """AWS Glue of an account in a region, neither of which the catalog itself need tell."""
    region = options.get("glue.region") or options.get("client.region") or environment.aws_region
    account = options.get("glue.id") or environment.aws_account
    if not region or not account:
        return Unknown(reason="AWS Glue: set client.region and glue.id, so that it is known whose catalog it is")
    arn = f"arn:aws:glue:{region.lower()}:{account}"
    warehouse = known_warehouse(options.get("warehouse"), environment)
    return Catalog(id=physical("glue", arn), names=arn, naming=Naming.GLUE, folds=True, warehouse=warehouse)


def _inside_the_driver(url: str, environment: Environment, warehouse: str | None) -> Catalog | Unknown:
    location = database_location(url, {}, environment, "the metastore's own jdbc url")
    return location if isinstance(location, Unknown) else _hive(location, warehouse)


def _hive(location: str, warehouse: str | None) -> Catalog:
    return Catalog(id=physical("hive", location), names=location, folds=True, warehouse=warehouse)


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
