"""Reports the state of a store, even if it can't be opened, and measures its tables: rows, bytes, time range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Connection, Select, Table, case, func, null, select, table, text
from sqlalchemy.exc import OperationalError

from headwater.events.clock import moment_of
from headwater.lineage.bulk.marks import last_set_back
from headwater.lineage.maintenance.partitions import PARTITIONED
from headwater.lineage.rows.model import NEVER, NOT_YET
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.tables import default_partition
from headwater.lineage.store.creation import SchemaState, has_views, inspect_schema
from headwater.lineage.store.engines import open_engine
from headwater.lineage.store.engines.sqlite import prepare_file
from headwater.lineage.store.migrations import HISTORY, MigrationHistory
from headwater.lineage.store.options import StoreOptions

_POSTGRESQL: Final = """
SELECT c.relname, CASE c.relkind WHEN 'r' THEN pg_total_relation_size(c.oid)
  ELSE (SELECT sum(pg_total_relation_size(t.relid)) FROM pg_partition_tree(c.oid) t) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')
"""
_MYSQL: Final = """
SELECT table_name, data_length + index_length FROM information_schema.tables
WHERE table_schema = database() AND table_type = 'BASE TABLE'
"""
_SQLITE: Final = """
SELECT m.tbl_name, sum(d.pgsize) FROM sqlite_master m JOIN dbstat d ON d.name = m.name WHERE d.aggregate = 1
GROUP BY 1
"""
_BYTES: Final = {"postgresql": _POSTGRESQL, "mysql": _MYSQL, "mariadb": _MYSQL, "sqlite": _SQLITE}


@dataclass(frozen=True)
class TableSize:
    table: str
    rows: int
    bytes: int | None
    """Including indexes and partitions. On MySQL an estimate of the database; None if SQLite was built without
    `dbstat`, and of a lake store, whose files have older rows, too."""
    oldest: datetime | None
    newest: datetime | None
    """The time of the newest row; `oldest` that of the oldest."""


@dataclass(frozen=True)
class StoreSize:
    tables: tuple[TableSize, ...]
    bytes: int | None
    """Of all tables. For SQLite the size of the file with its WAL."""

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def oldest(self) -> datetime | None:
        return min((table.oldest for table in self.tables if table.oldest is not None), default=None)

    @property
    def newest(self) -> datetime | None:
        return max((table.newest for table in self.tables if table.newest is not None), default=None)


def size_of(connection: Connection) -> StoreSize:
    """Measure a store. It counts every row, so a large store takes seconds."""
    by_table = _bytes(connection)
    tables = tuple(_sizes(connection, by_table))
    if connection.dialect.name == "sqlite":
        return StoreSize(tables, _file_bytes(connection))
    return StoreSize(tables, sum(table.bytes or 0 for table in tables) if by_table else None)


def _sizes(connection: Connection, by_table: Mapping[str, int]) -> Iterator[TableSize]:
    for name, definition in sorted(METADATA.tables.items()):
        counted: Any = connection.execute(_count_rows(definition)).one()
        times = (_moment(counted.oldest), _moment(counted.newest))
        yield TableSize(name, counted.number, by_table.get(name), *times)


def _count_rows(table: Table) -> Select[Any]:
    columns = table.c
    times: tuple[ColumnElement[Any], ColumnElement[Any]] = (null(), null())
    if "first" in columns:
        first_time = case((columns.first != NOT_YET, columns.first))
        times = (func.min(first_time), func.max(columns.last))
    elif "time" in columns:
        times = (func.min(columns.time), func.max(columns.time))
    oldest, newest = times
    counted = select(func.count().label("number"), oldest.label("oldest"), newest.label("newest"))
    return cast("Select[Any]", counted.select_from(table))


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None or micros in {NEVER, NOT_YET} else moment_of(micros)


def _bytes(connection: Connection) -> dict[str, int]:
    query = _BYTES.get(connection.dialect.name)
    if query is None:
        return {}
    try:
        return {name: int(number) for name, number in connection.execute(text(query))}
    except OperationalError:
        if connection.dialect.name != "sqlite":
            raise
        return {}  # a SQLite that was built without that table


def _file_bytes(connection: Connection) -> int | None:
    path = connection.exec_driver_sql("SELECT file FROM pragma_database_list WHERE name = 'main'").scalar()
    if not path:
        return None
    files = (Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())


@dataclass(frozen=True)
class StoreStatus:
    where: str
    standing: SchemaState
    version: str | None
    """The version of the tables."""
    known: str
    """The newest version that this code knows."""
    views: str
    """The database of the PIP-5 compatible views."""
    has_views: bool = False
    in_rest: int | None = None
    """How many rows are in default partitions; None if the database has no partitions."""
    set_back: datetime | None = None
    """When a writer last noticed that the database had lost its newest rows."""


def read_status(options: StoreOptions, history: MigrationHistory = HISTORY) -> StoreStatus:
    target = options.target
    prepare_file(target, readonly=True, create=False)
    with open_engine(target, readonly=True) as engine:
        with translate_errors(target.words), engine.connect() as connection:
            found = inspect_schema(connection, history)
            status = StoreStatus(target.words, found.standing, found.version, history.newest.name, target.database)
            if found.standing is not SchemaState.CURRENT:
                return status
            is_apart = engine.dialect.name == "postgresql"
            counts = [
                select(func.count()).select_from(table(default_partition(name))) for name in PARTITIONED if is_apart
            ]
            rest = sum(connection.execute(count).scalar_one() for count in counts) if is_apart else None
            noticed = last_set_back(connection)
        set_back = None if noticed is None else moment_of(noticed)
        return replace(status, has_views=has_views(engine, target), in_rest=rest, set_back=set_back)
