"""Rows that one process packs and another one writes: bytes of PostgreSQL's COPY, or tuples where there are few rows or
another database. Bytes cost a fraction of rows to hand over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Integer, LargeBinary, SmallInteger

from headwater.lineage.bulk.packing import RowTuple, group_by_kind
from headwater.lineage.rows import KINDS, Row, RowKind
from headwater.lineage.sql.tables import table_of

FEW: Final = 60
"""Up to this many rows are quicker as the parameters of a statement."""
_KIND_OF: Final = {kind.name: kind for kind in KINDS}
_NULL: Final = struct.pack(">i", -1)
_LENGTH: Final = struct.Struct(">i").pack


class PackedRows(NamedTuple):
    """Rows of one kind, of different keys, sorted by id."""

    name: str
    """The kind's name."""
    total: int
    rows: Sequence[RowTuple]
    """All rows, unless they are in `copied`."""
    copied: bytes = b""
    """The rows as tuples of a binary COPY."""

    @property
    def kind(self) -> RowKind:
        return _KIND_OF[self.name]

    def ordered(self) -> Sequence[RowTuple]:
        return self.rows


def pack_rows(rows: Iterable[Row], *, as_copy: bool) -> list[PackedRows]:
    """Combine the rows of each key and pack them, in the order in which every transaction writes kinds. Raises what
    `transactions.DRIVER_DATA_ERRORS` names for a value that can't be sent. `as_copy` is for PostgreSQL."""
    return [
        PackedRows(pile.kind.name, len(tuples), (), copy_tuples(pile.kind, tuples))
        if as_copy and len(tuples) > FEW
        else PackedRows(pile.kind.name, len(tuples), tuples)
        for pile in group_by_kind(rows)
        for tuples in [pile.ordered()]
    ]


def copy_tuples(kind: RowKind, rows: Iterable[RowTuple]) -> bytes:
    """Return rows as tuples of PostgreSQL's binary COPY: the number of fields, and each with its length."""
    fields = _fields(kind)
    count = struct.pack(">h", len(fields))
    return b"".join(
        count + b"".join([_NULL if value is None else pack(value) for pack, value in zip(fields, row, strict=True)])
        for row in rows
    )


@cache
def _fields(kind: RowKind) -> tuple[Callable[[Any], bytes], ...]:
    """For each column, what makes its value's length and bytes."""
    return tuple(_field(column.type) for column in table_of(kind).c)


def _field(column: object) -> Callable[[Any], bytes]:
    if isinstance(column, LargeBinary):
        return _bytes_field
    for number, form, size in ((SmallInteger, ">ih", 2), (BigInteger, ">iq", 8), (Integer, ">ii", 4)):
        if isinstance(column, number):
            return _number_field(struct.Struct(form).pack, size)
    return _text_field


def _number_field(pack: Callable[[int, int], bytes], size: int) -> Callable[[int], bytes]:
    return lambda value: pack(size, value)


def _bytes_field(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _text_field(value: str) -> bytes:
    return _bytes_field(value.encode())
