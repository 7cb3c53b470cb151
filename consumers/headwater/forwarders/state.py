"""What a forwarder keeps on disk: a small SQLite database, with a lock that one process at a time holds.

It has the job lineage that was seen, and the dead letters. Offsets are the
bus's; a copy is here, for a bus that forgets those of a group that nobody reads in. Everything is written before the
offsets behind it are committed.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import Self

from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.bulk.dead_letters import DeadLetters
from headwater.lineage.sql.writer_tables import DEAD_LETTERS
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.engines.sqlite import make_private_file
from headwater.lineage.store.options import StoreOptions

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_BUSY_SECONDS: Final = 30.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS lineage (fingerprint BLOB PRIMARY KEY, event BLOB NOT NULL, seen INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS lineage_by_age ON lineage (seen);
CREATE TABLE IF NOT EXISTS positions (
    cluster TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL,
    PRIMARY KEY (cluster, topic, partition)
);
CREATE TABLE IF NOT EXISTS beginnings (place TEXT PRIMARY KEY, start TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS lost (
    cluster TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
    "end" INTEGER, reason TEXT NOT NULL, found_at REAL NOT NULL, PRIMARY KEY (cluster, topic, partition, first)
);
"""


def default_state_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return `forwarders` in the user's data directory of headwater."""
    own, shared = environment.get("HEADWATER_DATA"), environment.get("XDG_DATA_HOME")
    if own:
        return Path(own, "forwarders")
    return Path(shared or Path("~", ".local", "share")).expanduser() / "headwater" / "forwarders"


def check_name(name: str) -> str:
    """Return a forwarder's name if it can be one: it is in names of files and consumer groups."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"a forwarder can't be called {name!r}: write letters, digits, - and _, and begin with a letter or digit"
        )
    return name


class ForwarderState:
    """The database of one forwarder. Any thread may use it."""

    def __init__(self, directory: Path, name: str) -> None:
        self.path: Final = directory / f"{check_name(name)}.db"
        self._lock = threading.RLock()
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_private_file(self.path)
            self._connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute("PRAGMA foreign_keys=ON")
            self._connection.executescript(_SCHEMA)
            engine = engine_for(StoreOptions.at(str(self.path)).target)
            DEAD_LETTERS.create(engine, checkfirst=True)
        except (OSError, sqlite3.Error, SQLAlchemyError) as e:
            raise ConfigurationError(
                f"{self.path} can't be used ({e}): name another directory by --state, or remove the file; that loses "
                "its dead letters"
            ) from e
        self.letters: Final = DeadLetters(engine, str(self.path))
        self._engine = engine

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection, None, None]:
        """Write within the block, all of it or nothing."""
        with self._lock, _translate_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite ends it by itself after some errors, such as a full disk
                    self._connection.execute("ROLLBACK")
                raise

    def select(self, statement: str, *values: Any) -> list[Any]:
        with self._lock, _translate_errors(self.path):
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        with self._lock:
            self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _translate_errors(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except sqlite3.OperationalError as e:  # a full disk, a lock
        raise TransientError(f"{path}: {e}") from e


class ForwarderLock:
    """Held by the process that runs the forwarder: its state has one at a time."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = directory / f"{check_name(name)}.lock"
        self._file: IO[bytes] | None = None

    def acquire(self, seconds: float = 0.0) -> bool:
        """Wait so long at most, and return whether this process has it now."""
        end = time.monotonic() + seconds
        while not self._try():
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def _try(self) -> bool:
        file = self._path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
