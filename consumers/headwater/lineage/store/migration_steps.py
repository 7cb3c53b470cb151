"""Steps of migrations. Each does nothing if it is done already.

MySQL commits each DDL statement, so an interrupted migration is half done. Running it again completes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from alembic import op
from sqlalchemy import Column, inspect
from sqlalchemy.exc import SAWarning


def add_column(table: str, column: Column[Any]) -> None:
    if column.name not in _columns(table):
        op.add_column(table, column)


def drop_column(table: str, name: str) -> None:
    if name in _columns(table):
        op.drop_column(table, name)


def create_table(name: str, *parts: Any, **options: Any) -> None:
    if not inspect(op.get_bind()).has_table(name):
        op.create_table(name, *parts, **options)


def drop_table(name: str) -> None:
    if inspect(op.get_bind()).has_table(name):
        op.drop_table(name)


def create_index(name: str, table: str, columns: Sequence[Any], **options: Any) -> None:
    if name not in _indexes(table):
        op.create_index(name, table, columns, **options)


def drop_index(name: str, table: str) -> None:
    if name in _indexes(table):
        op.drop_index(name, table_name=table)


def _columns(table: str) -> set[str]:
    return {column["name"] for column in inspect(op.get_bind()).get_columns(table)}


def _indexes(table: str) -> set[str | None]:
    """Return the names of a table's indexes. SQLAlchemy skips SQLite's expression indexes with a warning; the PIP-5
    views have some, and migrations don't touch them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        return {index["name"] for index in inspect(op.get_bind()).get_indexes(table)}
