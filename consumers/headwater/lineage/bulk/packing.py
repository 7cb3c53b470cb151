"""Rows as all ways into a database take them: as tuples of columns, by kind, in the order in which every transaction
writes them. Processes hand them to each other in this form, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sqlalchemy import Connection

from headwater.lineage.rows import KINDS, Row, RowKind, combine_rows
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.sql.upsert import ORDER, upsert_text

_KIND_OF: Final = {kind.name: kind for kind in KINDS}


class PackedRows(NamedTuple):
    """Rows of one kind, of different keys."""

    name: str
    """The kind's name."""
    rows: list[RowTuple]
    """Sorted by primary key."""

    @property
    def kind(self) -> RowKind:
        return _KIND_OF[self.name]


def pack_rows(rows: Iterable[Row]) -> list[PackedRows]:
    """Combine the rows of each key, and pack them in the order in which every transaction writes kinds and rows: two
    that meet can't deadlock."""
    by_kind: dict[str, dict[bytes, Row]] = {}
    for row in rows:
        of_kind = by_kind.setdefault(row.kind.name, {})
        known = of_kind.setdefault(row.id, row)
        if known is not row:
            of_kind[row.id] = combine_rows(known, row)
    return [
        PackedRows(name, sorted([row.values for row in by_kind[name].values()], key=_KIND_OF[name].pick_primary_key))
        for name in sorted(by_kind, key=ORDER.__getitem__)
    ]


def execute_many(connection: Connection, packed: PackedRows) -> None:
    """Merge rows with the driver's `executemany`: SQLite's way, and PostgreSQL's for a few rows."""
    connection.exec_driver_sql(upsert_text(packed.kind, connection.dialect.name), packed.rows)
