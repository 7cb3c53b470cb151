"""What one task hands to another one over Spark's shuffle: rows, dead letters and positions, for each bucket.

A row's bucket is a hash of its id, so rows of one key meet in one task. That task merges them and alone writes them: no
two tasks of a micro-batch write one row.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headwater.consumers.sources import BusRecord, OffsetGap
from headwater.consumers.writer.coordinated.slice_reader import bucket_of
from headwater.lineage.bulk import DeadLetter
from headwater.lineage.rows import KINDS, Row, combine_rows
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.rows.tables import TOMBSTONE

SCHEMA: Final = "key int, data binary"
"""What goes through the shuffle: a bucket's key, and a share of it."""
_KIND_OF: Final = {kind.name: kind for kind in KINDS}
_MASK: Final = 0xFFFFFFFF
_SEED: Final = 42


class Reached(NamedTuple):
    """How far a partition was read."""

    events: int
    first: int
    """The offset of its first record."""
    last: int
    """The offset of its last record."""
    append_time: int | None
    """Of the last record."""


class Share(NamedTuple):
    """What becomes of some records in one bucket. Only the first bucket has positions, gaps and tombstones."""

    rows: Mapping[str, Sequence[RowTuple]]
    letters: Sequence[DeadLetter] = ()
    reached: Mapping[int, Reached] = {}
    """By the number of the partition."""
    gaps: Sequence[OffsetGap] = ()

    def pack(self) -> bytes:
        return pickle.dumps(tuple(self), pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def unpack(data: bytes | bytearray) -> Share:
        return Share(*pickle.loads(data))  # noqa: S301 - a task of the same query packed it


def shares_of(rows: Iterable[Row], buckets: int) -> list[Share]:
    """Distribute rows over buckets. Tombstones all have the first one."""
    tuples: list[dict[str, list[RowTuple]]] = [{} for _ in range(buckets)]
    for row in rows:
        number = 0 if row.kind == TOMBSTONE else bucket_of(row.id, buckets)
        tuples[number].setdefault(row.kind.name, []).append(row.values)
    return [Share(each) for each in tuples]


class MergedShares:
    """The rows of a bucket, one of each key."""

    def __init__(self) -> None:
        self.rows: dict[bytes, Row] = {}
        self.tombstones: dict[bytes, Row] = {}
        self.letters: list[DeadLetter] = []
        self.size = 0
        """About how many bytes of memory they take."""

    def add(self, share: Share, size: int) -> None:
        for name, some in share.rows.items():
            kind = _KIND_OF[name]
            into = self.tombstones if kind == TOMBSTONE else self.rows
            for values in some:
                _merge(into, Row(kind, values))
        self.letters += share.letters
        self.size += size


def _merge(into: dict[bytes, Row], row: Row) -> None:
    held = into.get(row.id)
    into[row.id] = row if held is None else combine_rows(held, row)


def reached_by(records: Sequence[BusRecord]) -> dict[int, Reached]:
    """Return how far each partition was read."""
    found: dict[int, Reached] = {}
    for each in records:
        number = each.partition.number
        known = found.get(number)
        new = Reached(1, each.offset, each.offset, each.append_time)
        found[number] = new if known is None else furthest(known, new)
    return found


def furthest(one: Reached, other: Reached) -> Reached:
    """Return how far a partition was read by two parts of its records."""
    last = one if one.last > other.last else other
    return last._replace(events=one.events + other.events, first=min(one.first, other.first))


def shuffle_keys(buckets: int) -> list[int]:
    """Return a key for each bucket, so that Spark puts each of them into a partition of its own.

    Spark distributes rows by a hash, which would put several buckets into one partition and leave others empty.
    """
    found: dict[int, int] = {}
    for key in _numbers():
        found.setdefault(murmur3(key) % buckets, key)
        if len(found) == buckets:
            return [found[number] for number in range(buckets)]
    raise AssertionError


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def murmur3(value: int) -> int:
    """Return the hash by which Spark distributes rows with this value in a column of type int."""
    mixed = _rotate(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    hashed = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    hashed ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ hashed >> shift) * factor & _MASK
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
