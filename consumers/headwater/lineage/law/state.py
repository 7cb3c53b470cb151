"""Rows in memory, and the digest of rows wherever they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from headwater.lineage.rows.kinds import Kind, Row, merged
from headwater.lineage.rows.values import encoded


def collapsed(rows: Iterable[Row]) -> dict[bytes, Row]:
    """One row for each key, by its id."""
    found: dict[bytes, Row] = {}
    for row in rows:
        known = found.get(row.id)
        found[row.id] = row if known is None else merged(known, row)
    return found


class State:
    """A store of rows in memory: what every other one has to equal."""

    def __init__(self) -> None:
        self._rows: dict[bytes, Row] = {}

    def merge(self, rows: Iterable[Row]) -> None:
        for number, row in collapsed(rows).items():
            known = self._rows.get(number)
            self._rows[number] = row if known is None else merged(known, row)

    def rows(self, kind: Kind | None = None) -> Iterator[Row]:
        return (row for row in self._rows.values() if kind is None or row.kind == kind)

    def digest(self) -> str:
        digest = Digest()
        for row in self.rows():
            digest.add(row)
        return digest.text


class Digest:
    """A number for a set of rows, in whatever order they come: two stores that have the same rows have the same."""

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0

    def add(self, row: Row) -> None:
        told = [None if each is None else encoded((each.stamp, *each.values)) for each in row.groups]
        content = encoded((row.kind.name, *row.key, *row.fixed, *row.span, *told, row.bits))
        self._sum += int.from_bytes(blake2b(content, digest_size=16).digest(), "big")
        self._count += 1

    @property
    def text(self) -> str:
        return f"{self._sum % (1 << 128):032x}-{self._count}"
