"""Catalogs that are a database, a Unity Catalog server, or of a class that isn't known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.events.identity.catalogs.known import Catalog, Naming, physical, service_of, warehouse_of
from headwater.events.identity.environment import Environment
from headwater.events.identity.errors import IdentityError, Unknown
from headwater.events.identity.jdbc import jdbc_database
from headwater.events.identity.text import required

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
