"""What differs between the databases in which the views are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
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
from headwater.lineage.sql import seed_catalog
from headwater.lineage.sql.seed_function import NAMES, postgresql_function
from headwater.lineage.sql.seed_rows import job_text
from headwater.lineage.sql.tables import table_of

_LONGEST: Final = 64
"""So long may a name be in MariaDB."""
_JOB: Final = "seed_job"
"""MariaDB's column of what the views call a job."""
_SHORT: Final = 1000
"""Bytes of a name that the views show on PostgreSQL."""


class Place(ABC):
    """Where views are made."""

    is_for_several: ClassVar[bool] = False
    """Whether a reader can say which of several catalogs is meant."""
    remedy: ClassVar[str] = "jdbc.database"
    """What another catalog needs of its own otherwise."""

    def __init__(self, connection: Connection, database: str) -> None:
        self._connection = connection
        self.database = database
        self._quote = connection.dialect.identifier_preparer.quote_identifier

    @property
    def kind(self) -> tuple[object, ...]:
        """Places of one kind have the same views."""
        dialect = self._connection.dialect
        return (dialect.name, dialect.server_version_info, self.database)

    @property
    def called(self) -> str:
        return f"database {self.database}"

    @property
    @abstractmethod
    def names(self) -> FromClause:
        """How tables of the catalog are called that is shown."""

    @abstractmethod
    def home(self) -> Iterator[str]:
        """Makes the database, where it isn't there: that takes a right of its own."""

    @abstractmethod
    def before(self) -> Iterator[str]:
        """Makes what the views stand on."""

    @abstractmethod
    def shown(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """As clients see it: a time in UTC, and no microseconds."""

    @abstractmethod
    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """The same rows, of a form through which this database writes nothing."""

    def indexes(self) -> Iterator[str]:
        """What views are asked by, and what joins them: names, which nothing else looks for among many rows."""
        job = self.text(job_text(table_of(t.COMMIT).alias("x").c)).replace("x.", "")
        for table in ("reads", "writes"):
            yield from self._index(table, table, f"({self._named('table_name')}, snapshot){self._short('table_name')}")
        names = f"{self._named('table_name')}, {self._named('job')}, first"
        yield from self._index("table_lineage", "table_lineage", f"({names}){self._short('table_name', 'job')}")
        yield from self._index("runs", "runs", f"({self._named('job')}, started_at, id){self._short('job')}")
        yield from self._index("commits", "commits", "(barrier)")
        for table in ("commits", "runs", "table_lineage"):
            yield from self._job_index(table, job)

    def _index(self, name: str, table: str, what: str) -> Iterator[str]:
        yield f"CREATE INDEX IF NOT EXISTS seed_{name} ON {self._quote(table)} {what}"

    def _named(self, column: str) -> str:
        """A text in an index."""
        return column

    def _short(self, *_: str) -> str:
        """Which rows are in an index with these texts."""
        return ""

    def _job_index(self, table: str, job: str) -> Iterator[str]:
        """An index of what the views call a job."""
        yield from self._index(f"{table}_job", table, f"(({job}))")

    def indexed(self, row: Any) -> ColumnElement[bool]:  # noqa: ARG002 - a place with limits looks at it
        """Whether a row is in the indexes."""
        return true()

    def is_clear(self) -> ColumnElement[bool]:
        """Whether it is clear which catalog is meant; an error otherwise, also where there is nothing to show."""
        return true()

    def view(self, name: str, selected: str) -> Iterator[str]:
        yield f"CREATE OR REPLACE VIEW {self._quote(self.database)}.{self._quote(name)} AS {selected}"

    def views(self) -> set[str]:
        """Those that are there."""
        return set(inspect(self._connection).get_view_names(self.database))

    def text(self, selected: Any) -> str:
        """Without parameters, as a view has none."""
        return str(selected.compile(dialect=self._connection.dialect, compile_kwargs={"literal_binds": True}))

    @contextmanager
    def alone(self) -> Generator[None]:
        """Nobody else makes views meanwhile."""
        yield

    def _has_home(self) -> bool:
        return self.database in inspect(self._connection).get_schema_names()


class PostgreSQL(Place):
    """The tables are in a schema of their own."""

    is_for_several = True

    @property
    def names(self) -> FromClause:
        return seed_catalog.in_postgresql(self.database)

    def home(self) -> Iterator[str]:
        if not self._has_home():
            yield f"CREATE SCHEMA {self._quote(self.database)}"

    def before(self) -> Iterator[str]:
        base = self._connection.scalar(text("SELECT current_schema()"))
        yield postgresql_function(self._quote(str(base)))

    def shown(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """A time has its zone: a client in another one would take it for its own."""
        if column.key != "create_time":
            return column
        epoch: ColumnElement[Any] = literal_column("TIMESTAMPTZ '1970-01-01 00:00:00+00'")
        return (epoch + _element(column) * literal_column("INTERVAL '1 microsecond'")).label(column.key)

    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """Of more than one source, which costs nothing here."""
        return selected.select_from(select(literal(1).label("one")).subquery("unwritable"))

    def _short(self, *columns: str) -> str:
        """A B-tree takes 2,704 bytes at most, and nothing that is told may be refused for an index."""
        return " WHERE " + " AND ".join(f"octet_length({column}) <= {_SHORT}" for column in columns)

    def _job_index(self, table: str, job: str) -> Iterator[str]:
        yield from self._index(f"{table}_job", table, f"USING hash (({job}))")

    def indexed(self, row: Any) -> ColumnElement[bool]:
        """It takes an index of some rows where it sees that others aren't asked for."""
        names = [row[name] for name in ("table_name", "job") if name in row]
        return and_(*(func.octet_length(name) <= _SHORT for name in names))

    def is_clear(self) -> ColumnElement[bool]:
        """It names no column, so that it is asked once, and first."""
        return exists(select(1).select_from(self.names))

    @contextmanager
    def alone(self) -> Generator[None]:
        self._connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('headwater.seed_views'))"))
        yield


class MariaDB(Place):
    """And MySQL. The tables are in the database of the URL."""

    @property
    def names(self) -> FromClause:
        return seed_catalog.in_view(self._helper)

    def home(self) -> Iterator[str]:
        if not self._has_home():
            yield f"CREATE DATABASE {self._quote(self.database)}"

    def before(self) -> Iterator[str]:
        names = self.text(seed_catalog.names_of(self.database, "mysql"))
        yield f"CREATE OR REPLACE VIEW {self._quote(self._helper)} (name, catalog_id, prefix) AS {names}"

    def shown(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        if column.key == "job":
            table = next(each.table.name for each in iterate(_element(column)) if isinstance(each, Column))
            return literal_column(f"{table}.{_JOB}").label("job")
        if column.key != "create_time":
            return column
        epoch: ColumnElement[Any] = literal_column("TIMESTAMP'1970-01-01 00:00:00'")
        return func.timestampadd(literal_column("MICROSECOND"), _element(column), epoch).label(column.key)

    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """Out of a derived table, which it looks through for reading only: it writes to what is joined, by one table
        after the other."""
        return select(*selected.subquery("told").c)

    def _index(self, name: str, table: str, what: str) -> Iterator[str]:
        """MySQL knows no IF NOT EXISTS here."""
        if f"seed_{name}" not in {each["name"] for each in inspect(self._connection).get_indexes(table)}:
            yield f"CREATE INDEX seed_{name} ON {self._quote(table)} {what}"

    def _named(self, column: str) -> str:
        return f"{column}(128)"

    def _job_index(self, table: str, job: str) -> Iterator[str]:
        """Of a column that is nowhere written: MariaDB has no indexes of expressions."""
        if _JOB in {each["name"] for each in inspect(self._connection).get_columns(table)}:
            return
        text_ = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        column = f"ADD COLUMN {_JOB} {text_} GENERATED ALWAYS AS ({job}) VIRTUAL"
        yield f"ALTER TABLE {table} {column}, ADD INDEX seed_{table}_job ({_JOB}(128))"

    @contextmanager
    def alone(self) -> Generator[None]:
        self._connection.execute(text("SELECT GET_LOCK('headwater.seed_views', 60)"))
        try:
            yield
        finally:
            self._connection.execute(text("SELECT RELEASE_LOCK('headwater.seed_views')"))

    @property
    def _helper(self) -> str:
        """Beside the tables: whoever may read the views sees nothing but them."""
        name = f"{NAMES}_{self.database}"
        if len(name) > _LONGEST:
            most = _LONGEST - len(NAMES) - 1
            raise ConfigurationError(f"jdbc.database is {self.database}: give one of {most} characters at most")
        return name


class SQLite(Place):
    """In the file of the tables, whatever name it is attached by."""

    remedy = "store file"

    def __init__(self, connection: Connection, _: str) -> None:
        super().__init__(connection, "main")

    @property
    def called(self) -> str:
        return "this file"

    @property
    def names(self) -> FromClause:
        return seed_catalog.in_view(NAMES)

    def home(self) -> Iterator[str]:
        yield from ()

    def before(self) -> Iterator[str]:
        yield f"DROP VIEW IF EXISTS {NAMES}"
        names = self.text(seed_catalog.names_of(self.database, "sqlite"))
        yield f"CREATE VIEW {NAMES} (name, catalog_id, prefix) AS {names}"

    def shown(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """It has no times: as its own functions write and understand them."""
        if column.key != "create_time":
            return column
        second: ColumnElement[Any] = literal_column("1000000")
        micros = _element(column)
        seconds: ColumnElement[Any] = micros.op("/")(second)
        digits = func.substr(cast(second + micros - seconds * second, Text), 2)
        return cast(func.datetime(seconds, "unixepoch") + literal(".") + digits, Text).label(column.key)

    def unwritable(self, selected: Select[Any]) -> Select[Any]:
        """As any view is here."""
        return selected

    def view(self, name: str, selected: str) -> Iterator[str]:
        yield f"DROP VIEW IF EXISTS {self._quote(name)}"
        yield f"CREATE VIEW {self._quote(name)} AS {selected}"


def _element(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return column.element if isinstance(column, Label) else column


_PLACES: Final[dict[str, type[Place]]] = {
    "postgresql": PostgreSQL,
    "mysql": MariaDB,
    "mariadb": MariaDB,
    "sqlite": SQLite,
}


def place_of(connection: Connection, database: str) -> Place:
    return _PLACES[connection.dialect.name](connection, database)
