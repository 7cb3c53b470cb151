"""Rows as all ways into a database take them: as tuples of columns, by kind, in the order in which every transaction
writes them. Processes hand them to each other in this form, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.lineage.rows import Row, RowBatch, RowKind, combine_rows
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.rows.tables import KIND_OF
from headwater.lineage.sql.upsert import ORDER, upsert_text


class PackedRows(NamedTuple):
    """Rows of one kind, of different keys."""

    name: str
    """The kind's name."""
    rows: list[RowTuple]
    """Sorted by primary key."""

    @property
    def kind(self) -> RowKind:
        return KIND_OF[self.name]


def pack_rows(rows: Iterable[Row]) -> list[PackedRows]:
    """Combine the rows of each key, and pack them in the order in which every transaction writes kinds and rows: two
    that meet can't deadlock."""
    tables = rows.tables if isinstance(rows, RowBatch) else _tables_of(rows)
    return [
        PackedRows(name, sorted(tables[name], key=KIND_OF[name].pick_primary_key))
        for name in sorted(tables, key=ORDER.__getitem__)
        if tables[name]
    ]


def _tables_of(rows: Iterable[Row]) -> dict[str, list[RowTuple]]:
    """Combine the rows of each key."""
    by_kind: dict[str, dict[bytes, Row]] = {}
    for row in rows:
        of_kind = by_kind.setdefault(row.kind.name, {})
        known = of_kind.setdefault(row.id, row)
        if known is not row:
            of_kind[row.id] = combine_rows(known, row)
    return {name: [row.values for row in of_kind.values()] for name, of_kind in by_kind.items()}


def execute_many(connection: Connection, packed: PackedRows) -> None:
    """Merge rows with the driver's `executemany`: SQLite's way, and PostgreSQL's for a few rows."""
    connection.exec_driver_sql(upsert_text(packed.kind, connection.dialect.name), packed.rows)
