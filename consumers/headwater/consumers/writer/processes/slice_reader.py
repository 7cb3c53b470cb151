"""In a reading process: maps events to rows, and packs these by buckets."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headwater.consumers.sources import BusRecord
from headwater.consumers.writer.known_rows import KnownRows
from headwater.consumers.writer.record_reader import ReadResult, RecordReader
from headwater.lineage.bulk import DeadLetter, pack_rows
from headwater.lineage.bulk.transactions import DRIVER_DATA_ERRORS
from headwater.lineage.rows import Row
from headwater.lineage.rows.tables import TOMBSTONE


class ReadRequest(NamedTuple):
    """A part of the events of an instant."""

    records: Sequence[BusRecord]
    epoch: int | None
    """The store's epoch, as far as the coordinator knows."""
    known: Sequence[bytes]
    """Ids of immutable rows that the store has at this epoch, since the last request."""


class ReadReply(NamedTuple):
    """What became of them."""

    shares: Mapping[int, bytes]
    """By bucket, for its process; nobody else looks into them."""
    dead_letters: Sequence[DeadLetter]
    new: Sequence[bytes]
    """Ids of the immutable rows among the packed ones."""
    left_out: int
    """How many rows were omitted because the store has them at `epoch`."""
    epoch: int | None
    is_refused: bool = False
    """Whether a value can't be sent. Nothing is packed then."""


@dataclass(frozen=True)
class SliceReaderRole:
    """The settings of a reading process."""

    kind: str
    topic: str
    most_invalid: int
    buckets: int

    def start(self) -> SliceReader:
        return SliceReader(self)


class SliceReader:
    """Maps and packs. It knows which immutable rows the store has, and names that came before."""

    def __init__(self, role: SliceReaderRole) -> None:
        self._role = role
        self._known = KnownRows()
        self._reader = RecordReader(role.kind, role.topic, most_invalid=role.most_invalid, known=self._known)

    def __call__(self, request: ReadRequest) -> ReadReply:
        if request.epoch is not None:
            self._known.set_epoch(request.epoch)
            self._known.add(request.known, request.epoch)
        read = self._reader.read(request.records)
        left_out = len(read.left_out)
        try:
            shares = self._packed(read)
        except DRIVER_DATA_ERRORS:
            return ReadReply({}, read.dead_letters, (), left_out, request.epoch, is_refused=True)
        return ReadReply(shares, read.dead_letters, [row.id for row in read.new], left_out, request.epoch)

    def _packed(self, read: ReadResult) -> dict[int, bytes]:
        count = self._role.buckets
        rows: list[list[Row]] = [[] for _ in range(count)]
        for row in read.rows:
            rows[0 if row.kind == TOMBSTONE else bucket_of(row.id, count)].append(row)
        return {
            number: pickle.dumps(pack_rows(share), pickle.HIGHEST_PROTOCOL)
            for number, share in enumerate(rows)
            if share
        }


def bucket_of(number: bytes, buckets: int) -> int:
    """Return the bucket of a row's id. Only tombstones have the first one, because each of them locks the store's
    epoch."""
    return number[-1] % buckets
