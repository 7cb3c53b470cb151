"""Upserts as SQL text for a driver, with a placeholder for each column in order."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, Dialect, column, select, table
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.mysql import pymysql
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.sql.dml import Insert

from headwater.lineage.bulk.packing import OrderedRows, column_names
from headwater.lineage.rows import RowKind
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.upsert import merging_postgres, upsert

_PSYCOPG: Any = psycopg.dialect
_DIALECTS: Final[dict[str, Dialect]] = {
    "postgresql": _PSYCOPG(paramstyle="format"),
    "sqlite": pysqlite.dialect(paramstyle="qmark"),
    # One that knows of no server: what is inserted is VALUES(column) to it, which each version of both takes.
    "mysql": pymysql.dialect(paramstyle="format"),
    "mariadb": pymysql.dialect(paramstyle="format"),
}


@cache
def upsert_text(kind: RowKind, dialect: str) -> str:
    """Return the upsert for `executemany` with tuples of `packing.packer`."""
    insert = upsert(kind, dialect).values({name: BindParameter(name) for name in column_names(kind)})
    return _text(insert, dialect)


def staging_name(kind: RowKind) -> str:
    """Return the name of the temporary table of a kind."""
    return f"merging_{kind.name}"


@cache
def merge_staged_text(kind: RowKind) -> str:
    """Return the statement that merges the temporary table into the real one, sorted by id: so concurrent writers can't
    deadlock, not even across partitions."""
    names = column_names(kind)
    staged = table(staging_name(kind), *map(column, names), schema="pg_temp")
    rows = select(*(staged.c[name] for name in names)).order_by(staged.c.id)
    return _text(merging_postgres(kind, postgresql.insert(table_of(kind)).from_select(names, rows)), "postgresql")


def _text(statement: Insert, dialect: str) -> str:
    return str(statement.compile(dialect=_DIALECTS[dialect]))


def execute_many(connection: Connection, pile: OrderedRows) -> None:
    """Merge rows with the driver's `executemany`: SQLite's way, and PostgreSQL's for a few rows."""
    connection.exec_driver_sql(upsert_text(pile.kind, connection.dialect.name), pile.ordered())
