"""Where the fresh and the former tables of a store are: beside the live ones, in a schema on PostgreSQL, a database on
MySQL and MariaDB, and a file for SQLite.

Copies all rows of one store into another one, whatever databases they are in: keys are the same everywhere.

The copy has the offsets of the store that it was made from, so a bus is read on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import Connection, func, inspect, select

from headwater.lineage.bulk import BusPartition, ConsumerOffset, DatabaseBulkMeta, IngestProgress, WriteBatch
from headwater.lineage.bulk.dead_letters import select_dead_letters
from headwater.lineage.replacement.state import STATE
from headwater.lineage.rows import KINDS
from headwater.lineage.sql import METADATA, select_rows, table_of
from headwater.lineage.sql.errors import StoreSchemaError, translate_errors
from headwater.lineage.sql.writer_tables import INGESTS, OFFSETS
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.creation import VERSION
from headwater.lineage.store.engines import open_engine
from headwater.lineage.store.options import StoreAddress
from headwater.lineage.store.urls import DatabaseKind

T = TypeVar("T")
_PORTION: Final = 5_000
_LETTERS: Final = 50
"""Dead letters in a transaction; each can have a megabyte."""


def count_rows(connection: Connection) -> int:
    """Return how many rows events have written. A store of an older version may lack a table."""
    there = {*inspect(connection).get_table_names()}
    counts = [select(func.count()).select_from(table_of(kind)) for kind in KINDS if kind.name in there]
    return sum(connection.execute(each).scalar_one() for each in counts)


def copy_store(source: Connection, target: DatabaseBulkMeta, report: Callable[[int], None]) -> int:
    """Copy everything that a connection sees, and return how many rows events had written.

    A connection to a store that is only read sees it as it is at its first question. `report` is called with the number
    of rows so far. Copying again changes nothing, so an interrupted copy is begun again.
    """
    count = 0
    for kind in KINDS:
        rows = select_rows(source, kind)
        while some := list(islice(rows, _PORTION)):
            target.merge(WriteBatch(rows=some))
            count += len(some)
            report(count)
    letters = (letter for _, letter in select_dead_letters(source, None))
    for some_letters in _portions(letters, _LETTERS):
        target.merge(WriteBatch(dead_letters=some_letters))
    target.merge(WriteBatch(ingests=list(_ingests(source)), offsets=list(_offsets(source))))
    return count


def _portions(values: Iterator[T], size: int) -> Iterator[list[T]]:
    while some := list(islice(values, size)):
        yield some


def _offsets(connection: Connection) -> Iterator[ConsumerOffset]:
    for row in connection.execute(select(OFFSETS)):
        yield ConsumerOffset(row.consumer_group, _partition(row), row.next_offset)


def _ingests(connection: Connection) -> Iterator[IngestProgress]:
    for row in connection.execute(select(INGESTS).order_by(INGESTS.c.stored_at, INGESTS.c.id)):
        producer = None if row.producer is None else UUID(bytes=bytes(row.producer))
        yield IngestProgress(row.source, _partition(row), row.stored_until, row.topic_name, producer)


def _partition(row: Any) -> BusPartition:
    return BusPartition(row.cluster, row.topic, row.partition_number)


_OURS = frozenset({*METADATA.tables, VERSION.name, STATE.name})


class Area(str, Enum):
    """Tables beside the live ones, by the end of their schema's, database's or file's name."""

    FRESH = "_fresh"
    """A replay fills these."""
    FORMER = "_former"
    """The tables that a replay replaced."""


def area_name(target: StoreAddress) -> str:
    """Return the name of a store's schema, database or file."""
    return target.schema if target.kind is DatabaseKind.POSTGRESQL else str(target.url.database)


class AreaNames(NamedTuple):
    """The names of a store's areas."""

    live: str
    fresh: str
    former: str

    @classmethod
    def of(cls, options: StoreOptions) -> AreaNames:
        beside = [area_name(options.beside(each.value).target) for each in (Area.FRESH, Area.FORMER)]
        return cls(area_name(options.target), *beside)


def create_area(options: StoreOptions, area: Area) -> Store:
    """Open the tables of an area for writing, and make them if there are none."""
    beside = options.beside(area.value)
    if beside.target.kind is DatabaseKind.MYSQL:
        with _server(options) as server:
            server.exec_driver_sql(f"CREATE DATABASE IF NOT EXISTS {_quote(server, area_name(beside.target))}")
            server.commit()
    return open_store(beside, views=False)


def has_area(options: StoreOptions, area: Area) -> bool:
    """Return whether an area has any of our tables."""
    target = options.beside(area.value).target
    if target.kind is DatabaseKind.SQLITE:
        return Path(area_name(target)).exists()
    with _server(options) as server:
        names = inspect(server).get_schema_names()
        return area_name(target) in names and bool(_tables(server, area_name(target)))


def drop_area(options: StoreOptions, area: Area) -> bool:
    """Remove an area, and return whether there was one. Tables that somebody else put there stay, and are an error."""
    target = options.beside(area.value).target
    name = area_name(target)
    if target.kind is DatabaseKind.SQLITE:
        was_there = Path(name).exists()
        for suffix in ("-wal", "-shm", "-journal", ""):
            Path(name + suffix).unlink(missing_ok=True)
        return was_there
    with translate_errors(target.words), _server(options) as server:
        if name not in inspect(server).get_schema_names():
            return False
        tables = [f"{_quote(server, name)}.{_quote(server, each)}" for each in _tables(server, name)]
        if tables:
            server.exec_driver_sql(f"DROP TABLE {', '.join(tables)}")
        _drop_home(server, name)
        server.commit()
    return True


def _drop_home(connection: Connection, name: str) -> None:
    """Drop a schema or database that has none of our tables any more."""
    home = _quote(connection, name)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {home}.pip5_catalog(text)")
        connection.exec_driver_sql(f"DROP SCHEMA {home}")
        return
    left = [*inspect(connection).get_table_names(name), *inspect(connection).get_view_names(name)]
    if left:
        raise StoreSchemaError(f"{name} also has {', '.join(sorted(left))}: move that elsewhere, and try again")
    connection.exec_driver_sql(f"DROP DATABASE {home}")


def _tables(connection: Connection, name: str) -> list[str]:
    """Return our tables in a schema or database. Partitions go with their tables."""
    return sorted(_OURS & {*inspect(connection).get_table_names(name)})


def _quote(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)


@contextmanager
def _server(options: StoreOptions) -> Generator[Connection]:
    """Connect to the live store's database."""
    with open_engine(options.target) as engine:
        with translate_errors(options.target.words):
            connection = engine.connect()
        with connection:
            yield connection
