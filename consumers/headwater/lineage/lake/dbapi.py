"""What the dialects of a lake share: connections that only read, and cursors that fetch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.engine.default import DefaultDialect

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


class ReadDialect(DefaultDialect):
    """A dialect for statements that read. It says nothing of versions and schemas, on which no question depends."""

    module: ClassVar[Any]
    """The module of the DB-API."""
    supports_native_boolean = True
    max_identifier_length = 255

    @classmethod
    def import_dbapi(cls) -> Any:
        return cls.module

    def do_ping(self, dbapi_connection: Any) -> bool:  # noqa: ARG002 - as SQLAlchemy has it
        return True

    def _get_server_version_info(self, connection: Any) -> None: ...

    def _get_default_schema_name(self, connection: Any) -> str:  # noqa: ARG002
        return "main"


def read_engine(name: str, connect: Callable[[], ReadConnection]) -> Engine:
    """Return an engine of a registered dialect whose connections come from a function."""
    return create_engine(f"{name}://", creator=connect, poolclass=NullPool)
