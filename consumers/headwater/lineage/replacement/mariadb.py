"""The switch-over on MariaDB and MySQL: one RENAME TABLE moves all tables of two databases.

Writers wait at a read lock on the live tables, which lets readers go on. The rename is queued behind that lock by
another connection, before any writer that waits; so when the lock is given back nobody comes in between. If this
process dies at that moment, the rename happens all the same: all that it needs is done by then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text

from headwater.lineage.replacement.areas import AreaNames
from headwater.lineage.replacement.arrivals import MissingEvents, find_missing_events, take_over
from headwater.lineage.replacement.state import LOCK_SECONDS, drop_state
from headwater.lineage.sql.errors import StoreBusyError, translate_errors
from headwater.lineage.store import StoreOptions
from headwater.lineage.store.engines import open_engine

_QUEUE_SECONDS: Final = 10
_PAUSE: Final = 0.02
_TRIGGERS: Final = """
SELECT trigger_name, event_object_table FROM information_schema.triggers WHERE trigger_schema = :live
"""
_WAITING: Final = "SELECT state FROM information_schema.processlist WHERE id = :id"


class MariaDBSwitchOver:
    def __init__(self, options: StoreOptions) -> None:
        self._target = options.target
        self._names = AreaNames.of(options)

    def recover(self) -> None:
        """Do nothing: a rename happens as a whole, and databases that are left empty are used again."""

    def followers(self) -> Sequence[str]:
        """Views name their tables, so they follow; triggers belong to a table, which can't leave its database then."""
        with self._engine() as engine, engine.connect() as connection:
            found = connection.execute(text(_TRIGGERS), {"live": self._names.live})
            return [f"trigger {name} of {table}" for name, table in found]

    @contextmanager
    def fence(self, seconds: float) -> Generator[MariaDBFence]:  # noqa: ARG002 - a lock has no limit of time here
        with self._engine() as engine, engine.connect() as lock:
            live = self._names.live
            lock.execute(text(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}"))
            lock.execute(text(f"LOCK TABLES {', '.join(f'{live}.{name} READ' for name in _base_tables(lock, live))}"))
            try:
                yield MariaDBFence(engine, lock, self._names)
            finally:
                lock.invalidate()  # the connection ends, and the lock with it

    @contextmanager
    def _engine(self) -> Generator[Engine]:
        with open_engine(self._target) as engine, translate_errors(self._target.words):
            yield engine


class MariaDBFence:
    """A connection that has the locks, and others beside it: it may only use the tables that it locked."""

    def __init__(self, engine: Engine, lock: Connection, names: AreaNames) -> None:
        self._engine = engine
        self._lock = lock
        self._live, self._fresh, self._former = names

    def missing_events(self) -> list[MissingEvents]:
        with self._engine.connect() as connection:
            return find_missing_events(connection, self._live, self._fresh)

    def switch(self) -> None:
        with self._engine.connect() as connection:
            take_over(connection, self._live, self._fresh)
            connection.commit()
            drop_state(connection, self._fresh)
            connection.execute(text(f"CREATE DATABASE IF NOT EXISTS {self._former}"))
            live, fresh = (_base_tables(connection, name) for name in (self._live, self._fresh))
            moves = [f"{self._live}.{name} TO {self._former}.{name}" for name in live]
            moves += [f"{self._fresh}.{name} TO {self._live}.{name}" for name in fresh]
            connection.execute(text(f"SET SESSION lock_wait_timeout = {_QUEUE_SECONDS}"))
            self._rename(connection, f"RENAME TABLE {', '.join(moves)}")
            connection.execute(text(f"DROP DATABASE {self._fresh}"))

    def _rename(self, connection: Connection, statement: str) -> None:
        raised = list[BaseException]()
        number = connection.execute(text("SELECT CONNECTION_ID()")).scalar_one()

        def run() -> None:
            try:
                connection.execute(text(statement))
            except BaseException as e:  # noqa: BLE001 - the other thread raises it
                raised.append(e)

        thread = threading.Thread(target=run, name="headwater-rename")
        thread.start()
        try:
            self._wait_until_queued(thread, number)
        finally:
            self._lock.execute(text("UNLOCK TABLES"))
            thread.join()
        if raised:
            raise raised[0]

    def _wait_until_queued(self, thread: threading.Thread, number: int) -> None:
        deadline = time.monotonic() + _QUEUE_SECONDS
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
            while thread.is_alive():
                state = watcher.execute(text(_WAITING), {"id": number}).scalar()
                if state is not None and "metadata lock" in state:
                    return
                if time.monotonic() > deadline:
                    watcher.execute(text(f"KILL QUERY {number}"))
                    raise StoreBusyError(f"{self._live}: its tables couldn't be renamed in {_QUEUE_SECONDS} s")
                time.sleep(_PAUSE)


def _base_tables(connection: Connection, database: str) -> list[str]:
    return sorted(inspect(connection).get_table_names(database))
