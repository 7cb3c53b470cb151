"""What migrations are made of: each does nothing where it was done already.

MySQL keeps every change of a table at once, so a migration that broke off is half there; begun again, it does the rest.
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
    return {each["name"] for each in inspect(op.get_bind()).get_columns(table)}


def _indexes(table: str) -> set[str | None]:
    """On SQLite those of expressions are left out with a warning: the views have some, and they aren't touched here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        return {each["name"] for each in inspect(op.get_bind()).get_indexes(table)}
