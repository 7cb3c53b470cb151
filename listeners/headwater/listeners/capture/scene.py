"""Where statements are seen: the application's site, its catalogs, and what this driver knew of tables so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.events import CatalogContext, Database, DatabaseName, DatasetId, Life, Table, TableName, View
from headwater.events.base import Texts
from headwater.events.identity import (
    Catalog,
    IdentityError,
    Site,
    Unknown,
    catalog_of,
    dataset_of_path,
    table_identity,
)
from headwater.events.redaction import Redactor

SESSION_CATALOG: Final = "spark_catalog"
_CATALOGS: Final = "spark.sql.catalog."
_DEFAULT_CLASS: Final = "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog"
_FACTORIES: Final = {
    "org.apache.iceberg.": "iceberg",
    "org.apache.paimon.": "paimon",
    "org.apache.spark.sql.delta.": "delta",
    "org.apache.spark.sql.hudi.": "hudi",
    "org.apache.spark.sql.execution.datasources.v2.jdbc.": "jdbc",
}
_KNOWN_TABLES: Final = 10_000


@dataclass(frozen=True)
class NamedCatalog:
    """A catalog under the name that a session has for it."""

    name: str
    class_name: str
    options: Mapping[str, str]
    context: CatalogContext
    catalog: Catalog | Unknown
    """What it points at."""


@dataclass(frozen=True)
class KnownTable:
    """What this driver last saw of a table."""

    table: Table | View | None = None
    life: Life | None = None
    dataset: DatasetId | None = None


@dataclass
class Scene:
    """For one thread: the one that turns statements into events."""

    site: Site
    conf: Mapping[str, str]
    """The application's configuration."""
    redactor: Redactor
    capture_sql: bool = False
    _catalogs: dict[int, NamedCatalog] = field(default_factory=dict)
    _known: OrderedDict[TableName, KnownTable] = field(default_factory=OrderedDict)
    _made: dict[str, NamedCatalog] = field(default_factory=dict)
    _databases: OrderedDict[DatabaseName, Database] = field(default_factory=OrderedDict)

    def learn_catalog(self, told: Mapping[str, Any]) -> NamedCatalog:
        """A catalog as the tap tells it, once for each number."""
        options = dict(told.get("options", {}))
        class_name = options.pop("", "") or told["class"]
        found = self._named(told["name"], class_name, options)
        self._catalogs[told["number"]] = found
        return found

    def catalog(self, reference: Any) -> NamedCatalog:
        """The catalog that an argument of a node refers to, `{"catalog": n}`."""
        return self._catalogs[reference["catalog"] if isinstance(reference, Mapping) else reference]

    def catalog_called(self, name: str) -> NamedCatalog | None:
        """The catalog that had this name last."""
        found = [each for each in self._catalogs.values() if each.name == name]
        return found[-1] if found else self.session_catalog() if name == SESSION_CATALOG else None

    def session_catalog(self) -> NamedCatalog:
        """`spark_catalog`, for nodes of the first kind, which name tables without it."""
        for known in self._catalogs.values():
            if known.name == SESSION_CATALOG:
                return known
        return self._configured(SESSION_CATALOG, _DEFAULT_CLASS)

    def catalogs(self, factory: str) -> list[NamedCatalog]:
        """All of a factory: those that were told so far, then those that the application's configuration names."""
        told = {each.name: each for each in self._catalogs.values()}
        words = (key.removeprefix(_CATALOGS) for key in self.conf if key.startswith(_CATALOGS))
        named = [self._configured(word) for word in words if "." not in word and word not in told]
        return [each for each in (*told.values(), *named) if each.context.factory == factory]

    def _configured(self, name: str, class_name: str = "") -> NamedCatalog:
        """The application's configuration doesn't change."""
        if name not in self._made:
            self._made[name] = self._make(name, class_name)
        return self._made[name]

    def _make(self, name: str, class_name: str) -> NamedCatalog:
        prefix = f"{_CATALOGS}{name}"
        options = {key[len(prefix) + 1 :]: text for key, text in self.conf.items() if key.startswith(f"{prefix}.")}
        return self._named(name, self.conf.get(prefix, class_name), options)

    def dataset(self, catalog: NamedCatalog, name: TableName, location: str | None) -> DatasetId | None:
        """The dataset that a table is: by its location, whatever its catalog points at (a metastore in the driver
        has no address); without a location, none where that isn't known."""
        try:
            if isinstance(catalog.catalog, Unknown):
                return None if location is None else dataset_of_path(location, self.site)
            found = table_identity(catalog.catalog, name, self.site, location)
        except IdentityError:
            return None
        return None if isinstance(found, Unknown) else found.dataset

    def known(self, name: TableName) -> KnownTable | None:
        return self._known.get(name)

    def remember(self, name: TableName, known: KnownTable) -> None:
        self._known[name] = known
        self._known.move_to_end(name)
        if len(self._known) > _KNOWN_TABLES:
            self._known.popitem(last=False)

    def forget(self, name: TableName) -> KnownTable | None:
        return self._known.pop(name, None)

    def database(self, name: DatabaseName) -> Database | None:
        return self._databases.get(name)

    def remember_database(self, name: DatabaseName, database: Database) -> None:
        self._databases[name] = database
        self._databases.move_to_end(name)
        if len(self._databases) > _KNOWN_TABLES:
            self._databases.popitem(last=False)

    def forget_database(self, name: DatabaseName) -> None:
        """And all tables that were known to be in it."""
        self._databases.pop(name, None)
        for table in [each for each in self._known if (each.catalog, each.database) == (name.catalog, name.database)]:
            del self._known[table]

    def _named(self, name: str, class_name: str, options: Mapping[str, str]) -> NamedCatalog:
        try:
            pointed = catalog_of(name, class_name, options, self.site)
        except IdentityError as e:
            pointed = Unknown(reason=str(e))
        context = CatalogContext(
            name=name,
            class_name=class_name,
            factory=next((word for start, word in _FACTORIES.items() if class_name.startswith(start)), None),
            configuration=Texts(self.redactor.mapping(_without_store(options))),
            id=None if isinstance(pointed, Unknown) else pointed.id,
        )
        return NamedCatalog(name, class_name, options, context, pointed)


def _without_store(options: Mapping[str, str]) -> dict[str, str]:
    """Without `jdbc.*`, which say how to reach a lineage store: they never ride on the bus."""
    return {key: text for key, text in options.items() if not key.lower().startswith("jdbc.")}
