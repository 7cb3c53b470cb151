"""Creates a store: tables, indexes, and the mark that tells their version."""

from __future__ import annotations

import time
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import OperationalError

from headwater.lineage.maintenance.partitions import make_first
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.sql.locking import exclusive_transaction
from headwater.lineage.store.engines.sqlite import BUSY_SECONDS
from headwater.lineage.store.migrations import MigrationHistory
from headwater.lineage.store.schema_version import SchemaState, SchemaStatus, inspect_schema, write_version

_PAUSE: Final = 0.05


def create(engine: Engine, history: MigrationHistory) -> None:
    """Create everything or nothing. If several processes do this at once, one creates the store. On MySQL an
    interrupted creation is continued by the next one."""
    if engine.dialect.name == "sqlite":
        _let_readers_read(engine)
    with exclusive_transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            make_schema(connection)
        found = inspect_schema(connection, history)
        if found.standing is SchemaState.UNMARKED:
            _check_owner(connection, found)
        elif found.standing is not SchemaState.EMPTY:
            return  # another one was quicker
        METADATA.create_all(connection)
        if engine.dialect.name == "postgresql":
            make_first(connection)
        write_version(connection, history.newest)


def make_schema(connection: Connection) -> None:
    """Create the schema that `search_path` names, if it doesn't exist. CREATE SCHEMA IF NOT EXISTS would need the right
    even if it does."""
    schema = connection.execute(text("SHOW search_path")).scalar_one()
    if not inspect(connection).has_schema(schema):
        connection.execute(text(f"CREATE SCHEMA {schema}"))


def _check_owner(connection: Connection, found: SchemaStatus) -> None:
    """Tables without a version mark are an unfinished store, or somebody else's tables of the same names."""
    inspector = inspect(connection)
    for name in sorted(found.tables):
        there = {column["name"] for column in inspector.get_columns(name)}
        if there != {column.name for column in METADATA.tables[name].columns}:
            raise StoreSchemaError(
                f"there is a table {name} that isn't headwater's: give the store a database of its own in jdbc.url"
            )


def _let_readers_read(engine: Engine) -> None:
    """Switch the SQLite file to WAL mode, permanently. Two processes that try at once fail immediately, whatever their
    busy timeout, so retry."""
    deadline = time.monotonic() + BUSY_SECONDS
    while not _is_set(engine, is_last=time.monotonic() > deadline):
        time.sleep(_PAUSE)


def _is_set(engine: Engine, *, is_last: bool) -> bool:
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    except OperationalError as e:
        if "locked" not in str(e.orig) or is_last:
            raise
        return False
    return True
