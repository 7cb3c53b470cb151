"""Rows grouped by kind, in the order in which every transaction writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from sqlalchemy import Connection

from headwater.lineage.rows import KINDS, Row, RowKind, merge_by_key
from headwater.lineage.rows.columns import RowTuple, key_picker, packer
from headwater.lineage.rows.copy_format import CopyRows, copy_row, decode_copy_row
from headwater.lineage.rows.tables import EVENT_FACTS
from headwater.lineage.sql.upsert import ORDER, upsert_text

_KINDS: Final = {kind.name: kind for kind in KINDS}


class OrderedRows(Protocol):
    """Rows of one kind, all of different keys."""

    @property
    def kind(self) -> RowKind: ...

    def ordered(self) -> Sequence[RowTuple]:
        """Return the rows as column tuples, sorted by primary key. Every transaction writes in this order."""
        ...


class KindRows(NamedTuple):
    """Rows of one kind, all of different keys."""

    kind: RowKind
    rows: list[Row]
    copies: Sequence[bytes] = ()
    """Or all of them in COPY's format, sorted by primary key; `rows` is empty then."""

    def __len__(self) -> int:
        return len(self.rows) + len(self.copies)

    def is_for_copy(self) -> bool:
        """Return whether COPY's format is the quicker one for many rows: where they have it, or go into their table
        without a merge. Others are quicker as tuples, which a driver encodes."""
        return bool(self.copies) or self.kind in EVENT_FACTS

    def _unpacked(self) -> Iterable[Row]:
        return (decode_copy_row(self.kind, data) for data in self.copies)

    def ordered(self) -> list[RowTuple]:
        """Return the rows as column tuples, sorted by primary key. Every transaction writes in this order."""
        pack = packer(self.kind)
        return sorted([pack(row) for row in (*self.rows, *self._unpacked())], key=key_picker(self.kind))

    def ordered_copies(self) -> Sequence[bytes]:
        """Return the rows in COPY's format, sorted by primary key."""
        return self.copies or _ordered_copies(self.kind, self.rows, CopyRows())


def group_by_kind(rows: Iterable[Row], copies: CopyRows | None = None) -> list[KindRows]:
    """Combine the rows of each key, and group them by kind in the order in which every transaction writes them."""
    found: dict[str, KindRows] = {}
    for row in merge_by_key(rows).values():
        name = row.kind.name
        pile = found.get(name)
        if pile is None:
            pile = found[name] = KindRows(row.kind, [])
        pile.rows.append(row)
    copies = copies or CopyRows()
    for name in copies.kinds:
        rows_of_kind = found[name].rows if name in found else ()
        found[name] = KindRows(_KINDS[name], [], _ordered_copies(_KINDS[name], rows_of_kind, copies))
    return sorted(found.values(), key=lambda pile: ORDER[pile.kind.name])


def _ordered_copies(kind: RowKind, rows: Iterable[Row], copies: CopyRows) -> list[bytes]:
    """Combine rows of both forms. `copies` stay as they are: a transaction may be repeated."""
    if rows:
        combined = CopyRows()
        combined.by_kind[kind.name] = dict(copies.by_kind.get(kind.name, {}))
        for row in rows:
            combined.add(kind, row.id, copy_row(row))
        copies = combined
    return copies.ordered(kind)


def execute_many(connection: Connection, pile: OrderedRows) -> None:
    """Merge rows with the driver's `executemany`: SQLite's way, and PostgreSQL's for a few rows."""
    connection.exec_driver_sql(upsert_text(pile.kind, connection.dialect.name), list(pile.ordered()))
