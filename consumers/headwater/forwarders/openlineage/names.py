"""What a dataset is called in OpenLineage: by its place, and by the names that catalogs have for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from openlineage.client.generated.symlinks_dataset import Identifier, SymlinksDatasetFacet

from headwater.events.jobs import NamedCatalog
from headwater.events.names import CatalogId, DatasetId, TableName


class DatasetName(NamedTuple):
    """Namespace and name by OpenLineage's rules."""

    namespace: str
    name: str


def place_name(dataset: DatasetId) -> DatasetName:
    """Return the name by place, which a DatasetId has already."""
    return DatasetName(dataset.namespace, dataset.name)


def catalog_name(table: TableName, catalog: CatalogId) -> DatasetName:
    """Return what the table is called in its catalog: a symlink of the place, or all that is known of a view.

    >>> orders = TableName(catalog="glue", database="sales", table="orders")
    >>> catalog_name(orders, CatalogId(type="glue", location="arn:aws:glue:eu-west-1:123456789012")).name
    'table/sales/orders'
    """
    if catalog.type == "glue":
        return DatasetName(catalog.location, f"table/{table.database}/{table.table}")
    if catalog.type == "unity":
        server, _, own_name = catalog.location.rpartition("/")
        return DatasetName(server or catalog.location, ".".join(filter(None, (own_name, table.database, table.table))))
    return DatasetName(catalog.location, ".".join(filter(None, (table.database, table.table))))


class Catalogs:
    """The catalogs whose names an event uses."""

    def __init__(self, catalogs: Iterable[NamedCatalog]) -> None:
        self._catalogs = {each.name: each for each in catalogs}

    def of(self, table: TableName | None) -> NamedCatalog | None:
        """Return the catalog of the table, where what it points at is known."""
        return None if table is None else self._catalogs.get(table.catalog)

    def id_of(self, table: TableName | None) -> CatalogId | None:
        """Return what the catalog of the table points at, where that is known."""
        found = self.of(table)
        return None if found is None else found.id

    def name_of(self, dataset: DatasetId | None, table: TableName | None) -> DatasetName | None:
        """Return the name by place, else by catalog; None for what has no name."""
        return self.alias_of(table) if dataset is None else place_name(dataset)

    def alias_of(self, table: TableName | None) -> DatasetName | None:
        """Return the name by catalog."""
        catalog = self.id_of(table)
        return None if table is None or catalog is None else catalog_name(table, catalog)

    def symlinks(self, dataset: DatasetId | None, table: TableName | None) -> SymlinksDatasetFacet | None:
        """Return the name by catalog as a symlink of the name by place."""
        alias = self.alias_of(table)
        if dataset is None or alias is None or alias == place_name(dataset):
            return None
        return symlinks_to([Identifier(*alias, type="TABLE")])


def symlinks_to(identifiers: list[Identifier]) -> SymlinksDatasetFacet:
    """Return the facet of these other names."""
    return SymlinksDatasetFacet(identifiers=identifiers)
