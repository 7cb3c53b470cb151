"""Upserts that merge rows into tables as `rows.model.combine_rows` does in memory, and upserts of the writer's tables.

Every transaction writes rows in the same order, by kind and then by primary key. So writers can wait for each other,
but never deadlock. `lineage.bulk` sends these statements, each as the text for a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BindParameter,
    Connection,
    Dialect,
    Table,
    and_,
    case,
    column,
    func,
    literal_column,
    not_,
    or_,
    select,
    table,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.dialects.mysql import pymysql
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.elements import ColumnElement

from headwater.lineage.rows import KINDS, ColumnGroup, Precedence, RowKind
from headwater.lineage.sql.tables import column_names, stamp_name, table_of

_PSYCOPG: Any = psycopg.dialect
_DIALECTS: Final[dict[str, Dialect]] = {
    "postgresql": _PSYCOPG(paramstyle="format"),
    "sqlite": pysqlite.dialect(paramstyle="qmark"),
    # One that knows of no server: what is inserted is VALUES(column) to it, which each version of both takes.
    "mysql": pymysql.dialect(paramstyle="format"),
    "mariadb": pymysql.dialect(paramstyle="format"),
}
MYSQL: Final = frozenset({"mysql", "mariadb"})
ORDER: Final = {kind.name: number for number, kind in enumerate(KINDS)}
"""The order in which every transaction writes the kinds."""


@cache
def upsert(kind: RowKind, dialect: str) -> Insert:
    """Return the statement that inserts a row, or merges it with the existing one."""
    table = table_of(kind)
    if dialect in MYSQL:
        return _merging_mysql(kind, mysql.insert(table))
    if dialect == "sqlite":
        return _merging(kind, sqlite.insert(table), func.min, func.max)
    return merging_postgres(kind, postgresql.insert(table))


def merging_postgres(kind: RowKind, insert: postgresql.Insert) -> Insert:
    """Make an upsert of an INSERT whose rows come from a query."""
    return _merging(kind, insert, func.least, func.greatest)


def _merging_mysql(kind: RowKind, insert: mysql.Insert) -> Insert:
    """MySQL itself skips rows whose values don't change."""
    table = table_of(kind)
    changes = merged_columns(kind, table.c, insert.inserted, func.least, func.greatest)
    return insert.on_duplicate_key_update(changes or [("id", table.c.id)])


def _merging(
    kind: RowKind, insert: postgresql.Insert | sqlite.Insert, least: Callable[..., Any], greatest: Callable[..., Any]
) -> Insert:
    """Update a row only if something changes; repeated rows cost half then."""
    held, new = table_of(kind).c, insert.excluded
    changes = merged_columns(kind, held, new, least, greatest)
    if not changes:
        return insert.on_conflict_do_nothing(index_elements=kind.primary_key)
    return insert.on_conflict_do_update(
        index_elements=kind.primary_key, set_=dict(changes), where=or_(*change_conditions(kind, held, new))
    )


def merged_columns(
    kind: RowKind, held: Any, new: Any, least: Callable[..., Any], greatest: Callable[..., Any]
) -> list[tuple[str, ColumnElement[Any]]]:
    """Return the update of each column. The columns of a group come before its stamp, because MySQL assigns one after
    the other and later expressions see earlier results."""
    changes: list[tuple[str, ColumnElement[Any]]] = [
        (name, (least if name == "first" else greatest)(held[name], new[name])) for name in kind.time_columns
    ]
    for name in _changing_maxima(kind):
        changes += [(name, func.coalesce(greatest(held[name], new[name]), held[name], new[name]))]
    for group in kind.groups:
        stamp = stamp_name(group.name)
        wins = _wins(group, held[stamp], new[stamp])
        names: Sequence[str] = [*(field.name for field in group.columns), stamp]
        changes += [(name, case((wins, new[name]), else_=held[name])) for name in names]
    if kind.has_bits:
        changes.append(("bits", held.bits.op("|")(new.bits)))
    return changes


def _changing_maxima(kind: RowKind) -> list[str]:
    return [] if kind.is_immutable else [field.name for field in kind.maxima]


def change_conditions(kind: RowKind, held: Any, new: Any) -> list[ColumnElement[bool]]:
    """Return the conditions under which a row changes."""
    changes: list[ColumnElement[bool]] = [
        new[name] < held[name] if name == "first" else new[name] > held[name] for name in kind.time_columns
    ]
    for name in _changing_maxima(kind):
        changes += [new[name] > held[name], and_(held[name].is_(None), new[name].is_not(None))]
    stamps = [(group, stamp_name(group.name)) for group in kind.groups]
    changes += [_wins(group, held[stamp], new[stamp]) for group, stamp in stamps]
    if kind.has_bits:
        changes.append(held.bits.op("|")(new.bits) != held.bits)
    return changes


def _wins(group: ColumnGroup, held: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether the new group replaces the stored one. It has no bound parameters: MySQL's client combines rows
    into one statement and knows only the rows' parameters."""
    if group.precedence is Precedence.NEWEST:
        return new > held
    return and_(_is_set(new), or_(not_(_is_set(held)), new < held))


def _is_set(stamp: ColumnElement[Any]) -> ColumnElement[bool]:
    return func.length(stamp) > literal_column("0")


@cache
def upsert_text(kind: RowKind, dialect: str) -> str:
    """Return the upsert for `executemany` with the values of rows."""
    insert = upsert(kind, dialect).values({name: BindParameter(name) for name in column_names(kind)})
    return _text(insert, dialect)


def staging_name(kind: RowKind) -> str:
    """Return the name of the temporary table of a kind."""
    return f"merging_{kind.name}"


@cache
def merge_staged_text(kind: RowKind) -> str:
    """Return the statement that merges the temporary table into the real one, in the order of all writers: so they
    can't deadlock, not even across partitions."""
    names = column_names(kind)
    staged = table(staging_name(kind), *map(column, names), schema="pg_temp")
    rows = select(*(staged.c[name] for name in names)).order_by(*(staged.c[name] for name in kind.primary_key))
    return _text(merging_postgres(kind, postgresql.insert(table_of(kind)).from_select(names, rows)), "postgresql")


def _text(statement: Insert, dialect: str) -> str:
    return str(statement.compile(dialect=_DIALECTS[dialect]))


ColumnUpdates: TypeAlias = "Callable[[Any, Any], Sequence[tuple[str, ColumnElement[Any]]]]"
"""Given the stored and the new columns, returns the update of each column. A column that others depend on comes last,
because MySQL assigns them one after the other."""


def insert_or_update(
    connection: Connection, table: Table, rows: Sequence[dict[str, Any]], changes: ColumnUpdates
) -> None:
    """Insert rows, or update those that exist. Rows are sorted by primary key, so that transactions can't deadlock."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    ordered = sorted(rows, key=lambda row: [row[key] for key in keys])
    connection.execute(_own_upsert(connection.dialect.name, table, keys, changes), ordered)


def _own_upsert(dialect: str, table: Table, keys: Sequence[str], changes: ColumnUpdates) -> Any:
    if dialect in MYSQL:
        into = mysql.insert(table)
        changed = list(changes(table.c, into.inserted))
        return into.on_duplicate_key_update(changed or [(keys[0], table.c[keys[0]])])
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    changed = list(changes(table.c, insert.excluded))
    if not changed:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=dict(changed))


def keep_existing(_: Any, __: Any) -> list[tuple[str, ColumnElement[Any]]]:
    """Leave existing rows as they are."""
    return []


def keep_greatest(by: str, *others: str) -> ColumnUpdates:
    """Update `by` only to greater values, and `others` together with it."""

    def changes(held: Any, new: Any) -> list[tuple[str, ColumnElement[Any]]]:
        return [(name, case((new[by] > held[by], new[name]), else_=held[name])) for name in (*others, by)]

    return changes
