"""SQLite: one file in WAL mode. Readers don't wait for the writer, and writers wait for each other."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, StaticPool, event
from sqlalchemy.exc import InvalidatePoolError

from headwater.lineage.sql.errors import StoreAccessError, StoreSchemaError
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.store.options import StoreAddress
from headwater.lineage.store.urls import DatabaseKind

BUSY_SECONDS: Final = 30
_FILE: Final = "headwater.sqlite.file"
_READS: Final = ("SELECT", "WITH", "EXPLAIN", "VALUES")
_BY_THEMSELVES: Final = ("PRAGMA", "ATTACH", "DETACH", "VACUUM")


def prepare_url(url: URL, *, readonly: bool) -> tuple[URL, dict[str, Any]]:
    """Return the URL and engine settings. Readers open the file read-only. An in-memory database has a single
    connection, for tests."""
    if url.database is None:
        return url, {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    path = quote(str(Path(url.database).absolute()))
    query = {"mode": "ro" if readonly else "rwc", "uri": "true"}
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    uri = URL.create(url.drivername, database=f"file:{path}", query=query)
    return uri, {"pool_size": 5, "max_overflow": 15, "connect_args": arguments}


def register_events(engine: Engine, _: StoreAddress, *, readonly: bool) -> None:
    """Begin transactions explicitly. Python's client begins none before DDL, and a transaction that began with a read
    can't write after another one wrote. So the first statement decides whether to lock for writing."""

    @event.listens_for(engine, "connect", insert=True)
    def set_up(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous = FULL")
        if readonly:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "connect")
    def note_file(connection: Any, record: Any) -> None:
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        record.info[_FILE] = (path, _identity(path))

    @event.listens_for(engine, "checkout")
    def check_file_is_there(_: Any, record: Any, __: Any) -> None:
        """Open the file anew if another one has its name now: what is written to a replaced file is lost."""
        path, opened = record.info[_FILE]
        if opened is not None and _identity(path) != opened:
            raise InvalidatePoolError

    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, cursor: Any, statement: str, *_: Any) -> None:
        if cursor.connection.in_transaction:
            return
        words = statement.lstrip().upper()
        if not words.startswith(_BY_THEMSELVES):
            is_reading = words.startswith(_READS) and not connection.get_execution_options().get(WRITES)
            cursor.execute("BEGIN" if is_reading or readonly else "BEGIN IMMEDIATE")


def _identity(path: str) -> tuple[int, int] | None:
    """Return what distinguishes a file from others of its name; None for a database in memory, or without a file."""
    try:
        found = Path(path).stat() if path else None
    except FileNotFoundError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def prepare_file(target: StoreAddress, *, readonly: bool, create: bool) -> None:
    """Raise a clear error if the file of a SQLite store can't be used; SQLite's own message doesn't say why. Make the
    file if there is none."""
    if target.kind is not DatabaseKind.SQLITE or target.url.database is None:
        return
    path = Path(target.url.database)
    if not path.absolute().parent.is_dir():
        raise StoreAccessError(
            f"there is no directory {path.absolute().parent}: make it, or mend the path of the store"
        )
    if path.is_dir():
        raise StoreAccessError(f"{path} is a directory: name a file in it")
    if not path.exists() and (readonly or not create):
        raise StoreSchemaError(f"there is no store in {path} yet: `headwater store init --store {path}` makes one")
    if not readonly:
        make_private_file(path)


def make_private_file(path: Path) -> None:
    """Make an empty file for a database that nobody else can read, if there is none; SQLite's own would be readable.

    What stands beside it (`-wal`, `-shm`) gets the same mode from SQLite. A file that is there keeps its mode. If it
    can't be made, SQLite says why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
