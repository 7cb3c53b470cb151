"""How each database defines the PIP-5 views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Label,
    Select,
    Text,
    and_,
    cast,
    exists,
    func,
    inspect,
    literal,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.sql.visitors import iterate

from headwater.errors import ConfigurationError
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import pip5_catalog
from headwater.lineage.sql.pip5_catalog import NAMES, postgresql_function
from headwater.lineage.sql.pip5_rows import job_name_column
from headwater.lineage.sql.tables import table_of

_LONGEST: Final = 64
"""The longest name in MariaDB."""
_JOB: Final = "pip5_job"
"""MariaDB's generated column with the job's name as the views show it."""
_SHORT: Final = 1000
"""Longer names, in bytes, aren't in PostgreSQL's indexes."""
_sqlite_names: Final[dict[str | None, str]] = {}
"""The compiled query for the names of the catalog that is shown, by its identity: each opening needs it twice."""


class Pip5Dialect(ABC):
    """Defines the views in one database."""

    is_for_several: ClassVar[bool] = False
    """Whether a reader can choose one of several catalogs."""
    remedy: ClassVar[str] = "jdbc.database"
    """What each further catalog needs for its own, if readers can't choose."""

    def __init__(self, connection: Connection, database: str) -> None:
        self._connection = connection
        self.database = database
        self._quote = connection.dialect.identifier_preparer.quote_identifier

    @property
    def kind(self) -> tuple[object, ...]:
        """Dialects of equal kind create the same views."""
        dialect = self._connection.dialect
        return (dialect.name, dialect.server_version_info, self.database)

    @property
    def called(self) -> str:
        return f"database {self.database}"

    @cached_property
    def catalogs(self) -> Mapping[str, Pip5Dialect]:
        """Where one reader sees several catalogs, the place of each one's views, by its name; else nothing."""
        return {}

    @property
    @abstractmethod
    def names(self) -> FromClause:
        """The names of the shown catalog's tables."""

    @abstractmethod
    def home(self) -> Iterator[str]:
        """Yield the statements that create the database of the views if it doesn't exist. They need a right of their
        own."""

    @abstractmethod
    def before(self) -> Iterator[str]:
        """Yield the statements that create what the views depend on."""

    @abstractmethod
    def client_column(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Convert a column to the type that clients expect: a timestamp in UTC instead of microseconds."""

    @abstractmethod
    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """Return a query with the same rows through which this database can't write."""

    def indexes(self) -> Iterator[str]:
        """Yield the indexes that queries on the views need."""
        job = self.text(job_name_column(table_of(t.COMMIT).alias("x").c)).replace("x.", "")
        table_name = f"({self._indexed_name('table_name')}){self._index_condition('table_name')}"
        yield from self._index("places", "places", table_name)
        names = f"{self._indexed_name('table_name')}, {self._indexed_name('job')}, first"
        yield from self._index(
            "table_lineage", "table_lineage", f"({names}){self._index_condition('table_name', 'job')}"
        )
        yield from self._index(
            "runs", "runs", f"({self._indexed_name('job')}, started_at, id){self._index_condition('job')}"
        )
        for table in ("commits", "runs", "table_lineage"):
            yield from self._job_index(table, job)

    def _index(self, name: str, table: str, what: str) -> Iterator[str]:
        yield f"CREATE INDEX IF NOT EXISTS pip5_{name} ON {self._quote(table)} {what}"

    def _indexed_name(self, column: str) -> str:
        """Return the indexed expression of a text column."""
        return column

    def _index_condition(self, *_: str) -> str:
        """Return the WHERE clause of an index with these text columns."""
        return ""

    def _job_index(self, table: str, job: str) -> Iterator[str]:
        """Yield an index on the job's name as the views show it."""
        yield from self._index(f"{table}_job", table, f"(({job}))")

    def indexed(self, row: Any) -> ColumnElement[bool]:  # noqa: ARG002 - a place with limits looks at it
        """Return a condition: the row is in the indexes."""
        return true()

    def is_clear(self) -> ColumnElement[bool]:
        """Return a condition that fails with an error if it is unclear which catalog is meant, even if there is no row
        to show."""
        return true()

    def outdated(self, names: Sequence[str]) -> Iterator[str]:  # noqa: ARG002 - a place of many catalogs has some
        """Yield the statements that remove views which aren't called so, from when other catalogs were known."""
        yield from ()

    def view(self, name: str, selected: str) -> Iterator[str]:
        yield f"CREATE OR REPLACE VIEW {self._quote(self.database)}.{self._quote(name)} AS {selected}"

    def views(self) -> set[str]:
        """Return the names of the existing views."""
        return set(inspect(self._connection).get_view_names(self.database))

    def text(self, selected: Any) -> str:
        """Compile a query without parameters, which a view can't have."""
        return str(selected.compile(dialect=self._connection.dialect, compile_kwargs={"literal_binds": True}))

    @contextmanager
    def alone(self) -> Generator[None]:
        """Exclude other processes that create views."""
        yield

    def _has_home(self) -> bool:
        return self.database in inspect(self._connection).get_schema_names()


class PostgresPip5Dialect(Pip5Dialect):
    """PostgreSQL: the tables have a schema of their own."""

    is_for_several = True

    @property
    def names(self) -> FromClause:
        return pip5_catalog.in_postgresql(self.database)

    def home(self) -> Iterator[str]:
        if not self._has_home():
            yield f"CREATE SCHEMA {self._quote(self.database)}"

    def before(self) -> Iterator[str]:
        base = self._connection.scalar(text("SELECT current_schema()"))
        yield postgresql_function(self._quote(str(base)))

    def client_column(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Show times with their zone; a client in another zone would misread them otherwise."""
        if column.key != "create_time":
            return column
        epoch: ColumnElement[Any] = literal_column("TIMESTAMPTZ '1970-01-01 00:00:00+00'")
        return (epoch + _element(column) * literal_column("INTERVAL '1 microsecond'")).label(column.key)

    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """Join a second source: PostgreSQL refuses to write to such a view."""
        return selected.select_from(select(literal(1).label("one")).subquery("unwritable"))

    def _index_condition(self, *columns: str) -> str:
        """A B-tree entry has at most 2,704 bytes, and no row may be refused because of an index."""
        return " WHERE " + " AND ".join(f"octet_length({column}) <= {_SHORT}" for column in columns)

    def _job_index(self, table: str, job: str) -> Iterator[str]:
        yield from self._index(f"{table}_job", table, f"USING hash (({job}))")

    def indexed(self, row: Any) -> ColumnElement[bool]:
        """PostgreSQL uses a partial index only if the query excludes the other rows."""
        names = [row[name] for name in ("table_name", "job") if name in row]
        return and_(*(func.octet_length(name) <= _SHORT for name in names))

    def is_clear(self) -> ColumnElement[bool]:
        """The condition refers to no column, so PostgreSQL evaluates it once, and first."""
        return exists(select(1).select_from(self.names))

    @contextmanager
    def alone(self) -> Generator[None]:
        self._connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('headwater.pip5_views'))"))
        yield


class MariaDBPip5Dialect(Pip5Dialect):
    """MariaDB and MySQL: the tables are in the database of the URL."""

    @property
    def names(self) -> FromClause:
        return pip5_catalog.in_view(self._helper)

    def home(self) -> Iterator[str]:
        if not self._has_home():
            yield f"CREATE DATABASE {self._quote(self.database)}"

    def before(self) -> Iterator[str]:
        names = self.text(pip5_catalog.select_shown_names(self.database, "mysql"))
        yield f"CREATE OR REPLACE VIEW {self._quote(self._helper)} (name, catalog_id, prefix) AS {names}"

    def client_column(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        if column.key == "job":
            table = next(element.table.name for element in iterate(_element(column)) if isinstance(element, Column))
            return literal_column(f"{table}.{_JOB}").label("job")
        if column.key != "create_time":
            return column
        epoch: ColumnElement[Any] = literal_column("TIMESTAMP'1970-01-01 00:00:00'")
        return func.timestampadd(literal_column("MICROSECOND"), _element(column), epoch).label(column.key)

    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """Select from a derived table: MariaDB can write to a join, but not to this."""
        return select(*selected.subquery("told").c)

    def _index(self, name: str, table: str, what: str) -> Iterator[str]:
        """MySQL has no CREATE INDEX IF NOT EXISTS."""
        if f"pip5_{name}" not in {index["name"] for index in inspect(self._connection).get_indexes(table)}:
            yield f"CREATE INDEX pip5_{name} ON {self._quote(table)} {what}"

    def _indexed_name(self, column: str) -> str:
        return f"{column}(128)"

    def _job_index(self, table: str, job: str) -> Iterator[str]:
        """Index a virtual column, because MariaDB can't index expressions."""
        if _JOB in {known["name"] for known in inspect(self._connection).get_columns(table)}:
            return
        text_ = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        column = f"ADD COLUMN {_JOB} {text_} GENERATED ALWAYS AS ({job}) VIRTUAL"
        yield f"ALTER TABLE {table} {column}, ADD INDEX pip5_{table}_job ({_JOB}(128))"

    @contextmanager
    def alone(self) -> Generator[None]:
        self._connection.execute(text("SELECT GET_LOCK('headwater.pip5_views', 60)"))
        try:
            yield
        finally:
            self._connection.execute(text("SELECT RELEASE_LOCK('headwater.pip5_views')"))

    @property
    def _helper(self) -> str:
        """The view with the catalog's names. It is beside the tables, so readers of the PIP-5 views don't see it."""
        name = f"{NAMES}_{self.database}"
        if len(name) > _LONGEST:
            most = _LONGEST - len(NAMES) - 1
            raise ConfigurationError(f"jdbc.database is {self.database}: give one of {most} characters at most")
        return name


class SQLitePip5Dialect(Pip5Dialect):
    """SQLite: the views are in the file of the tables."""

    remedy = "store file"

    def __init__(self, connection: Connection, _: str, catalog: str | None = None, number: int = 0) -> None:
        """`catalog` is the identity of the only catalog that is shown, and `number` tells its helper from others."""
        super().__init__(connection, "main")
        self._catalog = catalog
        self._helper = f"{NAMES}_{number}" if catalog is not None else NAMES

    @property
    def kind(self) -> tuple[object, ...]:
        return (*super().kind, self._helper)

    @cached_property
    def catalogs(self) -> Mapping[str, Pip5Dialect]:
        """SQLite has no settings and no schemas: with several catalogs each has views of its own."""
        if self._catalog is not None or pip5_catalog.is_recorded(self._connection, self.database):
            return {}
        found = pip5_catalog.list_catalogs(self._connection)
        several = enumerate(found.items(), 1) if len(found) > 1 else ()
        return {
            called: SQLitePip5Dialect(self._connection, "", identity, number) for number, (called, identity) in several
        }

    @property
    def called(self) -> str:
        return "this file"

    @property
    def names(self) -> FromClause:
        return pip5_catalog.in_view(self._helper)

    def home(self) -> Iterator[str]:
        yield from ()

    def before(self) -> Iterator[str]:
        yield f"DROP VIEW IF EXISTS {self._helper}"
        yield f"CREATE VIEW {self._helper} (name, catalog_id, prefix) AS {self._shown_names()}"

    def _shown_names(self) -> str:
        if self._catalog not in _sqlite_names:
            _sqlite_names[self._catalog] = self.text(
                pip5_catalog.select_shown_names(self.database, "sqlite", self._catalog)
            )
        return _sqlite_names[self._catalog]

    def client_column(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """SQLite has no timestamp type: show times as its own functions write them."""
        if column.key != "create_time":
            return column
        second: ColumnElement[Any] = literal_column("1000000")
        micros = _element(column)
        seconds: ColumnElement[Any] = micros.op("/")(second)
        digits = func.substr(cast(second + micros - seconds * second, Text), 2)
        return cast(func.datetime(seconds, "unixepoch") + literal(".") + digits, Text).label(column.key)

    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """Views are read-only in SQLite anyway."""
        return selected

    def outdated(self, names: Sequence[str]) -> Iterator[str]:
        """A helper of such a view may show another catalog now."""
        begins = tuple(f"{name}_" for name in (*names, NAMES))
        yield from (f"DROP VIEW {self._quote(view)}" for view in self.views() if view.startswith(begins))

    def view(self, name: str, selected: str) -> Iterator[str]:
        yield f"DROP VIEW IF EXISTS {self._quote(name)}"
        yield f"CREATE VIEW {self._quote(name)} AS {selected}"


def _element(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return column.element if isinstance(column, Label) else column


_PLACES: Final[dict[str, type[Pip5Dialect]]] = {
    "postgresql": PostgresPip5Dialect,
    "mysql": MariaDBPip5Dialect,
    "mariadb": MariaDBPip5Dialect,
    "sqlite": SQLitePip5Dialect,
}


def pip5_dialect_of(connection: Connection, database: str) -> Pip5Dialect:
    return _PLACES[connection.dialect.name](connection, database)
