"""Aborts connections whose server doesn't answer any more, from another thread. The waiting thread gets an error then.
A server that does answer ends long statements by its own timeout.
"""

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


class ConnectionAborter:
    """Knows the open connections of an engine, and can abort them."""

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Any] = {}
        limit = _LIMITS[engine.dialect.name].format(ms=round(timeout * 1_000), seconds=max(1, round(timeout)))
        event.listen(engine, "connect", lambda connection, _: self._on_connect(connection, limit))
        event.listen(engine, "close", lambda connection, _: self._on_close(connection))
        event.listen(engine, "invalidate", lambda connection, _, __: self._on_close(connection))
        engine.dispose()  # connections that were made before know nothing of this

    def abort_all(self) -> None:
        """Abort all open connections."""
        with self._lock:
            connections = list(self._open.values())
        for connection in connections:
            _abort(connection)

    def _on_connect(self, connection: Any, limit: str) -> None:
        with self._lock:
            self._open[id(connection)] = connection
        _execute(connection, limit)

    def _on_close(self, connection: Any) -> None:
        with self._lock:
            self._open.pop(id(connection), None)


def _execute(connection: Any, statement: str) -> None:
    """Execute a statement outside a transaction, so that a rollback doesn't revert it."""
    before = getattr(connection, "autocommit", None)
    if isinstance(before, bool):  # psycopg's; of the others it is a method, or means something else
        connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute(statement)
    cursor.close()
    if isinstance(before, bool):
        connection.autocommit = before


def _abort(connection: Any) -> None:
    """Shut down the socket. Closing the connection itself isn't safe while another thread uses it."""
    with suppress(OSError, AttributeError):
        if hasattr(connection, "interrupt"):  # SQLite
            connection.interrupt()
        elif hasattr(connection, "pgconn"):
            with socket.socket(fileno=os.dup(connection.pgconn.socket)) as own:
                own.shutdown(socket.SHUT_RDWR)
        else:
            connection._sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - there is no other way to it
