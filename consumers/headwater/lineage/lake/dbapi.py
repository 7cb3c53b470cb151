"""The DB-API as the dialects of a lake share it: connections that only read, and cursors that fetch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

FetchedResult: TypeAlias = tuple[Sequence[Any], list[Any]]
"""The columns of a result, as the DB-API describes them, and its rows."""
Execution: TypeAlias = Callable[[str, Sequence[Any]], FetchedResult]
"""Executes a statement with its parameters."""


class FetchedCursor:
    """A cursor of the DB-API. It fetches all rows at once: questions execute the next statement while they read."""

    arraysize = 1
    rowcount = -1

    def __init__(self, run: Execution) -> None:
        self._run = run
        self._rows: list[Any] = []
        self._next = 0
        self.description: Any = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self.description, self._rows = self._run(statement, parameters)
        self._next = 0

    def fetchone(self) -> Any:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        start, self._next = self._next, min(self._next + size, len(self._rows))
        return self._rows[start : self._next]

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        self._rows = []


class ReadConnection:
    """A connection of the DB-API that only reads, so that there is nothing to commit."""

    def __init__(self, run: Execution, close: Callable[[], object] = lambda: None) -> None:
        """`close` releases what the connection holds."""
        self._run = run
        self._close = close

    def cursor(self) -> FetchedCursor:
        return FetchedCursor(self._run)

    def commit(self) -> None:
        """Do nothing."""

    def rollback(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._close()
