"""One at a time: whoever makes a store, or changes its tables, does it alone."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, text

from headwater.lineage.sql.troubles import StoreBusyError
from headwater.lineage.store.engines.sqlite import WRITES

_WAIT_SECONDS: Final = 60
_NUMBER: Final = int.from_bytes(hashlib.sha256(b"headwater store").digest()[:8], "big", signed=True)
_SHORT_SECONDS: Final = 2
"""As long as a change of a table waits for those who use it, while others wait behind it."""


@contextmanager
def alone(engine: Engine) -> Generator[Connection]:
    """A transaction that no other of these runs beside. Where the database can't take back what was done to tables,
    what was done stays when this fails."""
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
