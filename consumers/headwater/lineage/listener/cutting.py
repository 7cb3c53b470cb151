"""A connection whose server doesn't answer any more is cut by another thread: then whoever waits for it is told that it
is broken. A server that lives gives up by itself what takes too long, so that nothing waits there for ever."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import Engine, event

_LIMITS: Final = {
    "postgresql": "SET statement_timeout TO {ms}",
    "mysql": "SET SESSION innodb_lock_wait_timeout = {seconds}",
    "sqlite": "PRAGMA busy_timeout = {ms}",
}


class Cutter:
    """Knows the connections that there are: a pool asks one whether it lives before it hands it out."""

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Any] = {}
        limit = _LIMITS[engine.dialect.name].format(ms=round(timeout * 1_000), seconds=max(1, round(timeout)))
        event.listen(engine, "connect", lambda connection, _: self._made(connection, limit))
        event.listen(engine, "close", lambda connection, _: self._gone(connection))
        event.listen(engine, "invalidate", lambda connection, _, __: self._gone(connection))
        engine.dispose()  # connections that were made before know nothing of this

    def cut(self) -> None:
        """All of them."""
        with self._lock:
            connections = list(self._open.values())
        for connection in connections:
            _cut(connection)

    def _made(self, connection: Any, limit: str) -> None:
        with self._lock:
            self._open[id(connection)] = connection
        _execute(connection, limit)

    def _gone(self, connection: Any) -> None:
        with self._lock:
            self._open.pop(id(connection), None)


def _execute(connection: Any, statement: str) -> None:
    """In no transaction, so that a rollback doesn't take it back."""
    before = getattr(connection, "autocommit", None)
    if isinstance(before, bool):  # psycopg's; of the others it is a method, or means something else
        connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute(statement)
    cursor.close()
    if isinstance(before, bool):
        connection.autocommit = before


def _cut(connection: Any) -> None:
    """Closing it from another thread would pull it away under the one that uses it; its socket can be shut down."""
    with suppress(OSError, AttributeError):
        if hasattr(connection, "interrupt"):  # SQLite
            connection.interrupt()
        elif hasattr(connection, "pgconn"):
            with socket.socket(fileno=os.dup(connection.pgconn.socket)) as own:
                own.shutdown(socket.SHUT_RDWR)
        else:
            connection._sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - there is no other way to it
