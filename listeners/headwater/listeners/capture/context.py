"""What is known of the application: its environment, its catalogs, and the tables that it has met so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from headwater.events import DatasetId, Format, Table, TableName
from headwater.events.base import StringMap
from headwater.events.catalog import CatalogContext, DatabaseName
from headwater.events.identity import (
    Catalog,
    Environment,
    IdentityError,
    Unknown,
    dataset_of_path,
    table_identity,
)
from headwater.events.names import CatalogId, Generation
from headwater.events.redaction import Redactor
from headwater.events.tables import Database, View

SESSION_CATALOG: Final = "spark_catalog"
_CATALOG_PREFIX: Final = "spark.sql.catalog."
SESSION_CATALOG_CLASS: Final = "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog"
_MAX_KNOWN_TABLES: Final = 10_000


_Place: TypeAlias = tuple[str, CatalogId | None, str, str | None]
"""The name of a catalog, what it points at, a database, and a table in it."""


@dataclass(frozen=True, kw_only=True)
class ExternalRows:
    """How tables of Spark's own catalog are understood whose rows another system has: those USING jdbc, say."""

    dataset: Callable[[Mapping[str, str], Environment], DatasetId | None]
    """The dataset that the options of such a table name."""
    reported_options: Callable[[Mapping[str, str]], Mapping[str, str]]
    """Those of the options that may be recorded: the others may be secrets."""


class KnownFormat(Protocol):
    """What may be known of a format without knowing how it reads plans."""

    @property
    def name(self) -> str: ...
    @property
    def format(self) -> Format: ...
    @property
    def external_rows(self) -> ExternalRows | None: ...


class KnownFormats(Protocol):
    """The formats that are installed, as each of them may ask for the others."""

    def owner_of(self, class_name: str) -> KnownFormat | None:
        """The format whose library has this class."""
        ...

    def of_provider(self, provider: str | None) -> KnownFormat | None:
        """The format of tables that are made USING this."""
        ...

    def catalog_of(
        self, name: str, class_name: str | None, options: Mapping[str, str], environment: Environment
    ) -> Catalog | Unknown:
        """What a catalog points at, whichever format's it is."""
        ...

    def readers(self) -> Mapping[str, object]:
        """What implements each format, by its name."""
        ...


@dataclass(frozen=True)
class SessionNamedCatalog:
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
    generation: Generation | None = None
    dataset: DatasetId | None = None


@dataclass
class CaptureContext:
    """For one thread: the one that turns statements into events."""

    environment: Environment
    conf: Mapping[str, str]
    """The application's configuration."""
    redactor: Redactor
    formats: KnownFormats
    capture_sql: bool = False
    degraded: tuple[str, ...] = ()
    """Parts of the Java side that don't fit this driver."""
    posts_vain_creations: bool = False
    """From Spark 4.1 on, its catalog posts an event for CREATE TABLE IF NOT EXISTS where another was faster, too."""
    _catalogs: dict[int, SessionNamedCatalog] = field(default_factory=dict)
    _of_session: dict[str, SessionNamedCatalog] = field(default_factory=dict)
    _known: OrderedDict[_Place, KnownTable] = field(default_factory=OrderedDict)
    _made: dict[str, SessionNamedCatalog] = field(default_factory=dict)
    _databases: OrderedDict[_Place, Database] = field(default_factory=OrderedDict)

    def learn_catalog(self, number: int, name: str, class_name: str, options: Mapping[str, str]) -> SessionNamedCatalog:
        """A catalog that the driver tells of, once for each number."""
        found = self._session_catalog(name, class_name, options)
        self._catalogs[number] = found
        return found

    def catalog(self, reference: Any) -> SessionNamedCatalog:
        """The catalog that an argument of a node refers to, `{"catalog": n}`."""
        return self._catalogs[reference["catalog"] if isinstance(reference, Mapping) else reference]

    def enter_session(self, *numbers: Sequence[int]) -> None:
        """Let names of catalogs mean what they mean in the sessions of plans, given by the numbers of each one's
        catalogs; in the first that has the name."""
        known = (self._catalogs.get(number) for of_plan in reversed(numbers) for number in reversed(of_plan))
        self._of_session = {catalog.name: catalog for catalog in known if catalog is not None}

    def catalog_called(self, name: str) -> SessionNamedCatalog | None:
        """The catalog that has this name in the session, or else that had it last in any."""
        if name in self._of_session:
            return self._of_session[name]
        found = [catalog for catalog in self._catalogs.values() if catalog.name == name]
        return found[-1] if found else self.session_catalog() if name == SESSION_CATALOG else None

    def session_catalog(self) -> SessionNamedCatalog:
        """`spark_catalog`, for v1 nodes, which name tables without it."""
        if SESSION_CATALOG in self._of_session:
            return self._of_session[SESSION_CATALOG]
        for known in self._catalogs.values():
            if known.name == SESSION_CATALOG:
                return known
        return self._configured_catalog(SESSION_CATALOG, SESSION_CATALOG_CLASS)

    def catalogs(self, factory: str) -> list[SessionNamedCatalog]:
        """All of a factory: those that were read so far, then those that the application's configuration names."""
        by_name = {catalog.name: catalog for catalog in self._catalogs.values()}
        words = (key.removeprefix(_CATALOG_PREFIX) for key in self.conf if key.startswith(_CATALOG_PREFIX))
        named = [self._configured_catalog(word) for word in words if "." not in word and word not in by_name]
        return [catalog for catalog in (*by_name.values(), *named) if catalog.context.factory == factory]

    def _configured_catalog(self, name: str, class_name: str = "") -> SessionNamedCatalog:
        """The application's configuration doesn't change."""
        if name not in self._made:
            self._made[name] = self._make(name, class_name)
        return self._made[name]

    def _make(self, name: str, class_name: str) -> SessionNamedCatalog:
        prefix = f"{_CATALOG_PREFIX}{name}"
        options = {key[len(prefix) + 1 :]: text for key, text in self.conf.items() if key.startswith(f"{prefix}.")}
        return self._session_catalog(name, self.conf.get(prefix, class_name), options)

    def dataset(self, catalog: SessionNamedCatalog, name: TableName, location: str | None) -> DatasetId | None:
        """The dataset that a table is: by its location, whatever its catalog points at (a metastore in the driver
        has no address); without a location, none where that isn't known."""
        try:
            if isinstance(catalog.catalog, Unknown):
                return None if location is None else dataset_of_path(location, self.environment)
            found = table_identity(catalog.catalog, name, self.environment, location)
        except IdentityError:
            return None
        return None if isinstance(found, Unknown) else found.dataset

    def find_known(self, name: TableName) -> KnownTable | None:
        return self._known.get(self._place(name))

    def remember(self, name: TableName, known: KnownTable) -> None:
        place = self._place(name)
        self._known[place] = known
        self._known.move_to_end(place)
        if len(self._known) > _MAX_KNOWN_TABLES:
            self._known.popitem(last=False)

    def forget(self, name: TableName) -> KnownTable | None:
        return self._known.pop(self._place(name), None)

    def database(self, name: DatabaseName) -> Database | None:
        return self._databases.get(self._place(name))

    def remember_database(self, name: DatabaseName, database: Database) -> None:
        place = self._place(name)
        self._databases[place] = database
        self._databases.move_to_end(place)
        if len(self._databases) > _MAX_KNOWN_TABLES:
            self._databases.popitem(last=False)

    def forget_database(self, name: DatabaseName) -> None:
        """And all tables that were known to be in it."""
        gone = self._place(name)
        self._databases.pop(gone, None)
        for place in [place for place in self._known if place[:3] == gone[:3]]:
            del self._known[place]

    def _place(self, name: TableName | DatabaseName) -> _Place:
        """What a name stands for: in another session the same one may be another catalog's."""
        catalog = self.catalog_called(name.catalog)
        table = name.table if isinstance(name, TableName) else None
        return name.catalog, None if catalog is None else catalog.context.id, name.database, table

    def _session_catalog(self, name: str, class_name: str, options: Mapping[str, str]) -> SessionNamedCatalog:
        try:
            pointed = self.formats.catalog_of(name, class_name, options, self.environment)
        except IdentityError as e:
            pointed = Unknown(reason=str(e))
        owner = self.formats.owner_of(class_name)
        context = CatalogContext(
            name=name,
            class_name=class_name,
            factory=None if owner is None else owner.name,
            configuration=StringMap(self.redactor.mapping(_without_store(options))),
            id=None if isinstance(pointed, Unknown) else pointed.id,
        )
        return SessionNamedCatalog(name, class_name, options, context, pointed)


def _without_store(options: Mapping[str, str]) -> dict[str, str]:
    """Without `jdbc.*`, which say how to reach a lineage store: they never ride on the bus."""
    return {key: text for key, text in options.items() if not key.lower().startswith("jdbc.")}
