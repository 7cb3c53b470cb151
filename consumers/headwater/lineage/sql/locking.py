"""A lock for processes that create a store or change its tables."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, text

from headwater.lineage.sql.errors import StoreBusyError

WRITES: Final = "headwater_writes"
"""An execution option for a transaction on SQLite that reads before it writes: it takes the write lock at its begin."""
_WAIT_SECONDS: Final = 60
_NUMBER: Final = int.from_bytes(hashlib.sha256(b"headwater store").digest()[:8], "big", signed=True)
_SHORT_SECONDS: Final = 2
"""How long a change of a table waits for its users, while others queue behind it."""


@contextmanager
def exclusive_transaction(engine: Engine) -> Generator[Connection]:
    """Run a transaction that excludes all others of this kind. On MySQL, DDL isn't rolled back if it fails."""
    match engine.dialect.name:
        case "postgresql":
            held = _postgresql(engine)
        case "sqlite":
            held = _sqlite(engine)
        case _:
            held = _mysql(engine)
    with held as connection:
        yield connection


@contextmanager
def _postgresql(engine: Engine) -> Generator[Connection]:
    with engine.begin() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _NUMBER})
        connection.execute(text(f"SET LOCAL lock_timeout = '{_SHORT_SECONDS}s'"))
        yield connection


@contextmanager
def _mysql(engine: Engine) -> Generator[Connection]:
    name = "headwater " + hashlib.sha256((engine.url.database or "").encode()).hexdigest()[:32]
    with engine.connect() as connection:
        taken = connection.execute(text("SELECT GET_LOCK(:name, :wait)"), {"name": name, "wait": _WAIT_SECONDS})
        if not taken.scalar():
            raise StoreBusyError("somebody else is making or changing the store's tables: try again")
        try:
            connection.execute(text(f"SET SESSION lock_wait_timeout = {_SHORT_SECONDS}"))
            yield connection
            connection.commit()
        finally:
            if not connection.invalidated:
                connection.rollback()
                connection.execute(text("SET SESSION lock_wait_timeout = DEFAULT"))
                connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": name})
                connection.rollback()


@contextmanager
def _sqlite(engine: Engine) -> Generator[Connection]:
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        yield connection
