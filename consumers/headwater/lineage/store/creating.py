"""Making a store where there is none: tables, indexes, and which version they are."""

from __future__ import annotations

import time
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import OperationalError

from headwater.lineage.sql.troubles import StoreSchemaError
from headwater.lineage.store.engines.postgresql import SCHEMA
from headwater.lineage.store.engines.sqlite import BUSY_SECONDS
from headwater.lineage.store.locking import alone
from headwater.lineage.store.migrations import History
from headwater.lineage.store.partitions import make_first
from headwater.lineage.store.tables import METADATA
from headwater.lineage.store.versions import Found, Standing, found_in, mark

_PAUSE: Final = 0.05


def create(engine: Engine, history: History) -> None:
    """All of it, or (but for MySQL, where the next one goes on with it) nothing. Of several at once one does it."""
    if engine.dialect.name == "sqlite":
        _let_readers_read(engine)
    with alone(engine) as connection:
        if engine.dialect.name == "postgresql":
            make_schema(connection)
        found = found_in(connection, history)
        if found.standing is Standing.UNMARKED:
            _check_owner(connection, found)
        elif found.standing is not Standing.EMPTY:
            return  # another one was quicker
        METADATA.create_all(connection)
        if engine.dialect.name == "postgresql":
            make_first(connection)
        mark(connection, history.newest)


def make_schema(connection: Connection) -> None:
    """Asking for one that is there already needs the right to make one, too."""
    if not inspect(connection).has_schema(SCHEMA):
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))


def _check_owner(connection: Connection, found: Found) -> None:
    """Tables without a mark are a store that wasn't made to its end, or somebody else's of the same names."""
    inspector = inspect(connection)
    for name in sorted(found.tables):
        there = {column["name"] for column in inspector.get_columns(name)}
        if there != {column.name for column in METADATA.tables[name].columns}:
            raise StoreSchemaError(
                f"there is a table {name} that isn't headwater's: give the store a database of its own in jdbc.url"
            )


def _let_readers_read(engine: Engine) -> None:
    """Kept in the file. Two who do it at once are told so at once, however long they would have waited."""
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
