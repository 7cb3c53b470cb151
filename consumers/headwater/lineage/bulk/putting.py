"""Insert or change, in each database's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Table, case
from sqlalchemy.dialects import mysql, postgresql, sqlite

from headwater.lineage.sql.upsert import MYSQL

Changes: TypeAlias = "Callable[[Any, Any], Sequence[tuple[str, ColumnElement[Any]]]]"
"""Of the columns that are held and those that are new, what becomes of each column that can change. What another one
looks at comes after it: MySQL gives each its value one after the other."""


def put(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], changes: Changes) -> None:
    """In order of what names them, which is the same in every transaction."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    ordered = sorted(rows, key=lambda row: [row[key] for key in keys])
    connection.execute(_statement(connection.dialect.name, table, keys, changes), ordered)


def _statement(dialect: str, table: Table, keys: Sequence[str], changes: Changes) -> Any:
    if dialect in MYSQL:
        into = mysql.insert(table)
        changed = list(changes(table.c, into.inserted))
        return into.on_duplicate_key_update(changed or [(keys[0], table.c[keys[0]])])
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    changed = list(changes(table.c, insert.excluded))
    if not changed:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=dict(changed))


def nothing(_: Any, __: Any) -> list[tuple[str, ColumnElement[Any]]]:
    """What is there stays."""
    return []


def forward(by: str, *others: str) -> Changes:
    """A column only grows, and others go with it."""

    def changes(held: Any, new: Any) -> list[tuple[str, ColumnElement[Any]]]:
        return [(name, case((new[by] > held[by], new[name]), else_=held[name])) for name in (*others, by)]

    return changes
