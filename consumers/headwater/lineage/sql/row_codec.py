"""Reads rows from their tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.rows import KINDS, Row, RowKind
from headwater.lineage.rows.memory import RowDigest
from headwater.lineage.sql.tables import column_names, table_of


def decode_row(kind: RowKind, values: Any) -> Row:
    """Return the row of values by the names of their columns."""
    return Row(kind, tuple([_plain(values[name]) for name in column_names(kind)]))


def select_rows(connection: Connection, kind: RowKind) -> Iterator[Row]:
    """Stream all rows of a kind."""
    found = connection.execute(select(table_of(kind)), execution_options={"yield_per": 1_000})
    return (Row(kind, tuple(map(_plain, values))) for values in found)


def store_digest(connection: Connection) -> str:
    """Return the digest of all rows that events wrote. The writer's own tables aren't part of it."""
    digest = RowDigest()
    for kind in KINDS:
        for row in select_rows(connection, kind):
            digest.add(row)
    return digest.text


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value
