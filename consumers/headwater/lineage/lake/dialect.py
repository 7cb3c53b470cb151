"""DuckDB for SQLAlchemy, as far as questions need it: statements that read, one after the other.

Results are fetched at once, because DuckDB has one result for each connection, and questions ask while they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import duckdb
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect

NAME: Final = "headwater_duckdb"
Preparation: TypeAlias = "Callable[[duckdb.DuckDBPyConnection, str], None]"


class _Cursor:
    """A cursor of the DB-API, whose result is independent of the connection's next statement."""

    arraysize = 1
    rowcount = -1

    def __init__(self, connection: duckdb.DuckDBPyConnection, prepare: Preparation) -> None:
        self._connection = connection
        self._prepare = prepare
        self._rows: list[Any] = []
        self._next = 0
        self.description: Any = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._prepare(self._connection, statement)
        found = self._connection.execute(statement, list(parameters))
        self.description = found.description
        self._rows, self._next = found.fetchall(), 0

    def executemany(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None:
        for each in parameters:
            self.execute(statement, each)

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


class _Connection:
    """A connection of the DB-API that only reads, so that there is nothing to commit."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, prepare: Preparation) -> None:
        self._connection = connection
        self._prepare = prepare

    def cursor(self) -> _Cursor:
        return _Cursor(self._connection, self._prepare)

    def commit(self) -> None:
        """Do nothing."""

    def rollback(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._connection.close()


class _Module:
    """DuckDB's module as SQLAlchemy wants it."""

    paramstyle = "qmark"
    Error = duckdb.Error
    DatabaseError = duckdb.DatabaseError
    Binary = bytes


class DuckDbDialect(DefaultDialect):
    """The statements of questions in DuckDB's SQL, which is that of the standard as far as they go."""

    name = "duckdb"
    driver = "duckdb"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    tuple_in_values = True
    max_identifier_length = 255

    @classmethod
    def import_dbapi(cls) -> Any:
        return _Module

    def do_ping(self, dbapi_connection: Any) -> bool:  # noqa: ARG002 - as SQLAlchemy has it
        return True

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:  # noqa: ARG002
        return tuple(int(part) for part in duckdb.__version__.split(".")[:3])

    def _get_default_schema_name(self, connection: Any) -> str:  # noqa: ARG002
        return "main"


registry.register(NAME, __name__, DuckDbDialect.__name__)


def duckdb_engine(
    connect: Callable[[], duckdb.DuckDBPyConnection], prepare: Preparation = lambda _, __: None
) -> Engine:
    """Return an engine whose connections come from a function. `prepare` is called with a connection and the text of a
    statement before it is executed."""
    return create_engine(f"{NAME}://", creator=lambda: _Connection(connect(), prepare), poolclass=NullPool)
