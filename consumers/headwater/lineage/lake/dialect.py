"""DuckDB for SQLAlchemy, as far as questions need it: statements that read, one after the other.

DuckDB has one result for each connection, so each result is fetched at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import duckdb
from sqlalchemy import Engine
from sqlalchemy.dialects import registry

from headwater.lineage.lake.dbapi import FetchedResult, ReadConnection, ReadDialect, read_engine

NAME: Final = "headwater_duckdb"
Preparation: TypeAlias = "Callable[[duckdb.DuckDBPyConnection, str], None]"


class _Module:
    """DuckDB's module as SQLAlchemy wants it."""

    paramstyle = "qmark"
    Error = duckdb.Error
    DatabaseError = duckdb.DatabaseError
    Binary = bytes


class DuckDbDialect(ReadDialect):
    """The statements of questions in DuckDB's SQL, which is that of the standard as far as they go."""

    name = driver = "duckdb"
    module = _Module
    default_paramstyle = "qmark"
    supports_statement_cache = True
    tuple_in_values = True


registry.register(NAME, __name__, DuckDbDialect.__name__)


def duckdb_engine(
    connect: Callable[[], duckdb.DuckDBPyConnection], prepare: Preparation = lambda _, __: None
) -> Engine:
    """Return an engine whose connections come from a function. `prepare` is called with a connection and the text of a
    statement before it is executed."""
    return read_engine(NAME, lambda: _connection(connect(), prepare))


def _connection(connection: duckdb.DuckDBPyConnection, prepare: Preparation) -> ReadConnection:
    def run(statement: str, parameters: Sequence[Any]) -> FetchedResult:
        prepare(connection, statement)
        found = connection.execute(statement, list(parameters))
        return found.description, found.fetchall()

    return ReadConnection(run, connection.close)
