"""A table of a catalog → the dataset it is: by its location, else by what its catalog certainly does, else by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headwater.events.identity.catalogs import Catalog, Layout, Naming
from headwater.events.identity.environment import Environment
from headwater.events.identity.jdbc import jdbc_identifier
from headwater.events.identity.paths import dataset_of_path
from headwater.events.identity.text import IdentityError, Unknown, dataset, quoted, required, split
from headwater.events.names import DatasetId, TableName

By: TypeAlias = Literal["location", "warehouse", "metastore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIdentity:
    """A table's dataset, what that is known by, and its name in the metastore as an alias."""

    dataset: DatasetId
    by: By
    """`warehouse`: by the catalog's fixed layout. `metastore`: only a name is known; the location, once it is, is
    the same table's better identity."""
    symlink: DatasetId | None = None
    assumed: tuple[str, ...] = ()


def table_identity(
    catalog: Catalog, name: TableName, environment: Environment, location: str | DatasetId | None = None
) -> TableIdentity | Unknown:
    """`location` as Spark's table properties show it, or the dataset it was already found to be."""
    if catalog.jdbc:
        return _in_a_database(catalog, name, environment)
    symlink = symlink_of(catalog, name)
    if location is not None:
        found = dataset_of_path(location, environment) if isinstance(location, str) else location
        return TableIdentity(dataset=found, by="location", symlink=symlink)
    if catalog.layout is not None and catalog.warehouse is not None:
        found = dataset_of_path(laid_out(catalog.layout, catalog.warehouse, name), environment)
        return TableIdentity(dataset=found, by="warehouse", symlink=symlink)
    return TableIdentity(dataset=symlink, by="metastore")


def symlink_of(catalog: Catalog, name: TableName) -> DatasetId:
    """The name under which the catalog keeps a table, in OpenLineage's form."""
    database, table = _base(catalog, name)
    if catalog.naming is Naming.GLUE:
        return dataset(catalog.names, f"table/{database}/{table}")
    full = ".".join(part for part in (database, quoted(table)) if part)
    if catalog.naming is Naming.CATALOG_TABLE:
        full = f"{quoted(catalog.id.location.rpartition('/')[2])}.{full}"
    return dataset(catalog.names, full)


def laid_out(layout: Layout, warehouse: str, name: TableName) -> str:
    """The path at which a catalog with a fixed layout keeps a table."""
    suffix = layout.database_suffix
    spaces = split(required(name.database, "the table's database")) if suffix or name.database else ()
    if any("/" in part or part in {".", ".."} for part in (*spaces, name.table)):
        msg = "a table's or database's name can't be a directory's; its location has to be given"
        raise IdentityError(msg)
    places = (f"{'.'.join(spaces)}{suffix}",) if suffix else spaces
    return "/".join([warehouse.rstrip("/"), *places, layout.table_of(name.table)])


def _base(catalog: Catalog, name: TableName) -> tuple[str, str]:
    table = name.table if catalog.layout is None else catalog.layout.table_of(name.table)
    return (name.database.lower(), table.lower()) if catalog.folds else (name.database, table)


def _in_a_database(catalog: Catalog, name: TableName, environment: Environment) -> TableIdentity | Unknown:
    parts = [*(split(name.database) if name.database else ()), name.table]
    found = jdbc_identifier(catalog.jdbc["url"], parts, environment, catalog.jdbc)
    if isinstance(found, Unknown):
        return found
    return TableIdentity(dataset=found.dataset, by="location", assumed=found.assumed)
