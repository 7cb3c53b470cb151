"""What one task hands to another one over Spark's shuffle: rows, dead letters and positions, for each bucket.

A row's bucket is a hash of its id, so rows of one key meet in one task. That task merges them and alone writes them: no
two tasks of a micro-batch write one row.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from headwater.consumers.sources import BusRecord, OffsetGap
from headwater.consumers.writer.processes.slice_reader import bucket_of
from headwater.lineage.bulk import DeadLetter, PackedRows
from headwater.lineage.rows import Row, RowKind, combine_rows
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.rows.tables import KIND_OF, TOMBSTONE
from headwater.lineage.sql.upsert import ORDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA: Final = "key int, data binary"
"""What goes through the shuffle: a bucket's key, and a share of it."""
_ENOUGH_KEYS: Final = 2_000
"""Spark's hash puts these into as many as 64 partitions without leaving one out: 435 are enough."""
T = TypeVar("T")


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
    """What the shares of a bucket say, with one row of each key. Most keys come once, and stay the tuples they are."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.reached: dict[int, Reached] = {}
        self.gaps: list[OffsetGap] = []
        self.size = 0
        """About how many bytes of memory the rows take."""
        self._tables: dict[str, dict[bytes, RowTuple]] = {}

    def add(self, share: Share, size: int) -> None:
        for name, some in share.rows.items():
            held = self._tables.setdefault(name, {})
            for values in some:
                known = held.setdefault(values[0], values)
                if known is not values and known != values:
                    held[values[0]] = _combine(KIND_OF[name], known, values)
        self.letters += share.letters
        self.gaps += share.gaps
        add_reached(self.reached, share.reached)
        self.size += size

    @property
    def rows(self) -> list[PackedRows]:
        """All rows but tombstones, in the order in which every transaction writes them."""
        tables = {name: held for name, held in self._tables.items() if name != TOMBSTONE.name}
        return [
            PackedRows(name, sorted(tables[name].values(), key=KIND_OF[name].pick_primary_key))
            for name in sorted(tables, key=ORDER.__getitem__)
        ]

    @property
    def tombstones(self) -> list[Row]:
        """The driver writes them when all else is written."""
        return [Row(TOMBSTONE, values) for values in self._tables.get(TOMBSTONE.name, {}).values()]


def _combine(kind: RowKind, one: RowTuple, other: RowTuple) -> RowTuple:
    return combine_rows(Row(kind, one), Row(kind, other)).values


def reached_by(records: Sequence[BusRecord]) -> dict[int, Reached]:
    """Return how far each partition was read."""
    found: dict[int, Reached] = {}
    for each in records:
        add_reached(found, {each.partition.number: Reached(1, each.offset, each.offset, each.append_time)})
    return found


def furthest(one: Reached, other: Reached) -> Reached:
    """Return how far a partition was read by two parts of its records."""
    last = one if one.last > other.last else other
    return last._replace(events=one.events + other.events, first=min(one.first, other.first))


def add_reached(known: dict[T, Reached], more: Mapping[T, Reached]) -> None:
    """Add to how far partitions were read."""
    for partition, each in more.items():
        known[partition] = furthest(known[partition], each) if partition in known else each


def shuffle_keys(spark: SparkSession, buckets: int) -> list[int]:
    """Return a key for each bucket, so that Spark puts each of them into a partition of its own.

    Spark distributes rows by a hash, which would put several buckets into one partition and leave others empty.
    """
    key = "CAST(id AS INT)"
    hashed = spark.range(_ENOUGH_KEYS).selectExpr(key, f"pmod(hash({key}), {buckets})")
    keys = {bucket: number for number, bucket in hashed.collect()}
    return [keys[number] for number in range(buckets)]
