"""Upserts as texts for a driver, with a place for each column in order."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from sqlalchemy import BindParameter, Dialect, column, select, table
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.mysql import pymysql
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.sql.dml import Insert

from headwater.lineage.bulk.packing import names_of
from headwater.lineage.rows import Kind
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
def upsert_text(kind: Kind, dialect: str) -> str:
    """For `executemany` with what `packing.packer` makes."""
    made = upsert(kind, dialect).values({name: BindParameter(name) for name in names_of(kind)})
    return _text(made, dialect)


def staging_name(kind: Kind) -> str:
    """Of the temporary table that rows are copied to."""
    return f"merging_{kind.name}"


@cache
def merge_staged_text(kind: Kind) -> str:
    """From the temporary table into the real one. In order of ids: writers that meet wait for each other in one order,
    and never in a circle, also where the database keeps rows apart."""
    names = names_of(kind)
    staged = table(staging_name(kind), *map(column, names), schema="pg_temp")
    rows = select(*(staged.c[name] for name in names)).order_by(staged.c.id)
    return _text(merging_postgres(kind, postgresql.insert(table_of(kind)).from_select(names, rows)), "postgresql")


def _text(statement: Insert, dialect: str) -> str:
    return str(statement.compile(dialect=_DIALECTS[dialect]))
