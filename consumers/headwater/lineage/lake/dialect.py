"""DuckDB for SQLAlchemy, as far as questions need it: statements that read, one after the other.

DuckDB has one result for each connection, so each result is fetched at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import duckdb
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.engine.default import DefaultDialect

from headwater.lineage.lake.dbapi import FetchedResult, ReadConnection

NAME: Final = "headwater_duckdb"
Preparation: TypeAlias = "Callable[[duckdb.DuckDBPyConnection, str], None]"


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
    return create_engine(f"{NAME}://", creator=lambda: _connection(connect(), prepare), poolclass=NullPool)


def _connection(connection: duckdb.DuckDBPyConnection, prepare: Preparation) -> ReadConnection:
    def run(statement: str, parameters: Sequence[Any]) -> FetchedResult:
        prepare(connection, statement)
        found = connection.execute(statement, list(parameters))
        return found.description, found.fetchall()

    return ReadConnection(run, connection.close)
