"""What a replay into fresh tables is about, and the lock that keeps two replays of one store apart."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, Text, delete, insert, inspect, select, text

from headwater.journal.errors import LockedError
from headwater.journal.lock import FileLock
from headwater.lineage.sql.errors import StoreBusyError, translate_errors
from headwater.lineage.store.options import StoreAddress
from headwater.lineage.store.urls import DatabaseKind

STATE: Final = Table(
    "replay_state",
    MetaData(),
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
"""Beside fresh tables only: which events go there. A replay that goes on has to be about the same ones."""
LOCK_SECONDS: Final = 2
"""How long a switch-over waits for those who use the tables, while others queue behind it."""
_BUSY: Final = "another replay into this store is running: wait for it, or stop it"


def read_state(engine: Engine) -> dict[str, str]:
    """Return what was recorded. Nothing is recorded where nobody began."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(STATE.name):
            return {}
        return {row.name: row.value for row in connection.execute(select(STATE.c.name, STATE.c.value))}


def write_state(engine: Engine, values: Mapping[str, str]) -> None:
    """Record values, and keep others as they are."""
    STATE.create(engine, checkfirst=True)
    with engine.begin() as connection:
        for name, value in values.items():
            connection.execute(delete(STATE).where(STATE.c.name == name))
            connection.execute(insert(STATE).values(name=name, value=value))


def drop_state(connection: Connection, schema: str) -> None:
    """Drop the table of a schema or database, in the caller's transaction where the database has such."""
    connection.execute(text(f"DROP TABLE IF EXISTS {schema}.{STATE.name}"))


@contextmanager
def replay_lock(engine: Engine, target: StoreAddress) -> Generator[None]:
    """Keep other replays of this store away. The lock ends with the process that holds it."""
    if target.kind is DatabaseKind.SQLITE:
        with _file_lock(Path(str(target.url.database))):
            yield
        return
    with translate_errors(target.words), engine.connect() as connection:
        question, name = _question(target)
        if not connection.execute(text(question), {"name": name}).scalar():
            raise StoreBusyError(f"{target.words}: {_BUSY}")
        connection.commit()
        yield
        connection.invalidate()  # which gives the lock back


def _question(target: StoreAddress) -> tuple[str, int | str]:
    """Return the statement that takes the lock or returns false, and the lock's name."""
    name = f"headwater replay {target.url.database} {target.schema}"
    digest = hashlib.sha256(name.encode()).digest()
    if target.kind is DatabaseKind.POSTGRESQL:
        number = int.from_bytes(digest[:8], "big", signed=True)
        return "SELECT pg_try_advisory_lock(:name)", number
    return "SELECT GET_LOCK(:name, 0)", f"headwater {digest.hex()[:32]}"


@contextmanager
def _file_lock(path: Path) -> Generator[None]:
    try:
        lock = FileLock.acquire(path.with_name(f"{path.name}.replay-lock"), f"the store {path}")
    except LockedError as e:
        raise StoreBusyError(f"{_BUSY} ({e})") from e
    try:
        yield
    finally:
        lock.release()
