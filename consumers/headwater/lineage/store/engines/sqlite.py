"""SQLite: one file, whose readers don't wait for its writer, and whose writers wait for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, StaticPool, event

BUSY_SECONDS: Final = 30
WRITES: Final = "headwater_writes"
"""An option of execution, for a transaction that reads before it writes: it waits for its turn when it begins."""
_READS: Final = ("SELECT", "WITH", "EXPLAIN", "VALUES")
_BY_THEMSELVES: Final = ("PRAGMA", "ATTACH", "DETACH", "VACUUM")


def prepared(url: URL, *, readonly: bool) -> tuple[URL, dict[str, Any]]:
    """Readers open the file as such, so that not even a fault of ours writes. In memory there is one connection for
    all, which is for the tests of one thread."""
    if url.database is None:
        return url, {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    path = quote(str(Path(url.database).absolute()))
    query = {"mode": "ro" if readonly else "rwc", "uri": "true"}
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    uri = URL.create(url.drivername, database=f"file:{path}", query=query)
    return uri, {"pool_size": 5, "max_overflow": 15, "connect_args": arguments}


def attend(engine: Engine, *, readonly: bool) -> None:
    """Transactions are begun here: by itself the client begins none before a table is made, and one that reads first
    can't write afterwards if another wrote in between. So the first statement says which it is to be."""

    @event.listens_for(engine, "connect", insert=True)
    def set_up(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous = FULL")
        if readonly:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection: Connection, cursor: Any, statement: str, *_: Any) -> None:
        if cursor.connection.in_transaction:
            return
        words = statement.lstrip().upper()
        if not words.startswith(_BY_THEMSELVES):
            is_reading = words.startswith(_READS) and not connection.get_execution_options().get(WRITES)
            cursor.execute("BEGIN" if is_reading or readonly else "BEGIN IMMEDIATE")
