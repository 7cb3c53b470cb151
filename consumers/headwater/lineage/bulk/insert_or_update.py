"""Upserts of the writer's own tables, in each database's dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Table, case
from sqlalchemy.dialects import mysql, postgresql, sqlite

from headwater.lineage.sql.upsert import MYSQL

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
    connection.execute(_statement(connection.dialect.name, table, keys, changes), ordered)


def _statement(dialect: str, table: Table, keys: Sequence[str], changes: ColumnUpdates) -> Any:
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
