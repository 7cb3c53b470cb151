"""Rows in memory, and a digest to compare stores by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from headwater.lineage.rows.model import Row, RowKind, RowTuple, combine_rows
from headwater.lineage.rows.tables import KIND_OF
from headwater.lineage.rows.values import encode


class RowBatch(Collection[Row]):
    """Rows by their kinds, one of each key. Nothing is made of a row until somebody asks for it."""

    def __init__(self, tables: Mapping[str, Sequence[RowTuple]]) -> None:
        self.tables: Final = tables

    def __iter__(self) -> Iterator[Row]:
        return (Row(KIND_OF[name], values) for name, rows in self.tables.items() for values in rows)

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)


def merge_by_key(rows: Iterable[Row]) -> dict[bytes, Row]:
    """Combine the rows of each key into one. Return them by id."""
    found: dict[bytes, Row] = {}
    for row in rows:
        known = found.get(row.id)
        found[row.id] = row if known is None else combine_rows(known, row)
    return found


class RowSet:
    """A store of rows in memory. Tests compare every other store with it."""

    def __init__(self) -> None:
        self._rows: dict[bytes, Row] = {}

    def merge(self, rows: Iterable[Row]) -> None:
        for number, row in merge_by_key(rows).items():
            known = self._rows.get(number)
            self._rows[number] = row if known is None else combine_rows(known, row)

    def rows(self, kind: RowKind | None = None) -> Iterator[Row]:
        return (row for row in self._rows.values() if kind is None or row.kind == kind)

    def digest(self) -> str:
        digest = RowDigest()
        for row in self.rows():
            digest.add(row)
        return digest.text


class RowDigest:
    """A checksum of a set of rows in any order: two stores with the same rows have the same digest."""

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0

    def add(self, row: Row) -> None:
        self.add_number(self.number_of(row))

    def add_number(self, number: int) -> None:
        """Add a row by its number."""
        self._sum += number
        self._count += 1

    @staticmethod
    def number_of(row: Row) -> int:
        """Return the number that stands for a row with all its values."""
        groups = [None if each is None else encode((each.stamp, *each.values)) for each in row.groups]
        content = encode((row.kind.name, *row.key, *row.maxima, *row.times, *groups, row.bits))
        return int.from_bytes(blake2b(content, digest_size=16).digest(), "big")

    @property
    def text(self) -> str:
        return f"{self._sum % (1 << 128):032x}-{self._count}"
