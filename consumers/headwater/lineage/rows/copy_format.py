"""Rows in the binary format of PostgreSQL's COPY: the number of columns, then each value behind its length.

Templates write most rows in this format without building them first. It is also how processes hand rows over.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, Final

from headwater.lineage.rows.columns import column_types, packer, row_of
from headwater.lineage.rows.model import Row, RowKind, combine_rows
from headwater.lineage.rows.values import HASH_BYTES, ColumnType

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""The beginning of a stream of rows, with no flags and no extension."""
_TRAILER: Final = b"\xff\xff"
"""The end of a stream of rows."""
NULL: Final = b"\xff\xff\xff\xff"
_LONG: Final = struct.Struct(">iq")
_TRUTH: Final = struct.Struct(">ih")
_LENGTH: Final = struct.Struct(">i")
_COUNT: Final = struct.Struct(">h")


class CopyRows:
    """Rows in COPY's format, by the name of their kind and by their id."""

    def __init__(self) -> None:
        self.by_kind: defaultdict[str, dict[bytes, bytes]] = defaultdict(dict)

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    @property
    def kinds(self) -> set[str]:
        """The names of the kinds that have rows."""
        return {name for name, some in self.by_kind.items() if some}

    def add(self, kind: RowKind, number: bytes, data: bytes) -> None:
        """Add a row. A row of the same key is combined with it."""
        rows = self.by_kind[kind.name]
        known = rows.get(number)
        rows[number] = data if known is None else combine_copies(kind, known, data)

    def split(self, buckets: int) -> list[CopyRows]:
        """Distribute the rows by the last bytes of their ids."""
        parts = [CopyRows() for _ in range(buckets)]
        for name, some in self.by_kind.items():
            of_kind = [each.by_kind[name] for each in parts]
            for row_id, data in some.items():
                of_kind[row_id[-1] % buckets][row_id] = data
        return parts

    def update(self, other: CopyRows, kinds: Mapping[str, RowKind]) -> None:
        """Add all rows of another one."""
        for name, some in other.by_kind.items():
            held = self.by_kind[name]
            if held.keys().isdisjoint(some):
                held.update(some)
                continue
            for number, data in some.items():
                self.add(kinds[name], number, data)

    def ordered(self, kind: RowKind) -> list[bytes]:
        """Return the rows of a kind, one of each key, sorted by primary key."""
        rows = self.by_kind.get(kind.name, {})
        by_id = [rows[number] for number in sorted(rows)]
        return sorted(by_id, key=itemgetter(owner_bytes(kind))) if kind.partition else by_id


def combine_copies(kind: RowKind, one: bytes, other: bytes) -> bytes:
    """Combine two rows of one key."""
    if one == other:
        return one
    return copy_row(combine_rows(decode_copy_row(kind, one), decode_copy_row(kind, other)))


@cache
def owner_bytes(kind: RowKind) -> slice:
    """Return where a row of a partitioned kind in COPY's format has the partition column and the owner, its first two
    key columns. They compare as bytes unless a number is negative, which no time is."""
    start = _COUNT.size + _LENGTH.size + HASH_BYTES + _LENGTH.size
    owner = 0 if kind.owner is None else _LENGTH.size + HASH_BYTES
    return slice(start, start + _LONG.size - _LENGTH.size + owner)


def column_count(count: int) -> bytes:
    """Return the beginning of a row."""
    return _COUNT.pack(count)


def copy_value(kind: ColumnType, value: Any) -> bytes:
    """Return a value behind its length."""
    return NULL if value is None else _ENCODERS[kind](value)


def _copy_bytes(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def copy_text(value: str) -> bytes:
    """Return a text behind its length."""
    return _copy_bytes(value.encode())


_ENCODERS: Final[dict[ColumnType, Callable[[Any], bytes]]] = {
    ColumnType.TEXT: copy_text,
    ColumnType.LONG: lambda value: _LONG.pack(_LONG.size - _LENGTH.size, value),
    ColumnType.TRUTH: lambda value: _TRUTH.pack(_TRUTH.size - _LENGTH.size, value),
    ColumnType.BINARY: _copy_bytes,
}


def copy_row(row: Row) -> bytes:
    values, types = packer(row.kind)(row), column_types(row.kind)
    return column_count(len(values)) + b"".join(map(copy_value, types, values))


def decode_copy_row(kind: RowKind, data: bytes) -> Row:
    """Return the row that `copy_row` encoded."""
    (row,) = decode_copy_rows(kind, data)
    return row


def decode_copy_rows(kind: RowKind, data: bytes) -> Iterator[Row]:
    """Yield rows that stand one behind the other."""
    types, at = column_types(kind), 0
    while at < len(data):
        at += _COUNT.size
        values = list[Any]()
        for column in types:
            (size,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            values.append(None if size < 0 else _decode(column, data[at : at + size]))
            at += max(size, 0)
        yield row_of(kind, values)


def _decode(kind: ColumnType, data: bytes) -> Any:
    if kind is ColumnType.BINARY:
        return data
    return data.decode() if kind is ColumnType.TEXT else int.from_bytes(data, "big", signed=True)


def copy_stream(rows: bytes) -> bytes:
    """Return a whole stream of rows, as COPY … FROM STDIN (FORMAT BINARY) takes it."""
    return b"".join((_SIGNATURE, rows, _TRAILER))
