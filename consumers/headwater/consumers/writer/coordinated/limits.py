"""Limits of the coordinated pipeline: when buckets are flushed, how much memory is used, how large a batch is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.consumers.sources import BusRecord, SourceBatch

ROW_BYTES: Final = 1_100
"""The memory of a row without its texts, which are counted with the event."""
EVENT_BYTES: Final = 500
"""The memory of an event without its bytes."""


@dataclass(frozen=True)
class CoordinatorLimits:
    """The settings of a coordinator."""

    buckets: int = 4
    """How many connections write at once."""
    interval: float = 0.1
    """Seconds after which an instant is closed. It closes earlier if the bus is idle, and later if the previous one
    isn't completed."""
    bucket_rows: int = 20_000
    """A bucket with this many rows is flushed within its instant."""
    buffer_bytes: int = 128 << 20
    """With this much memory in use nothing more is polled."""
    flush_seconds: float = 60.0
    """A flush that takes longer is aborted and repeated with twice the time."""
    slice_bytes: int = 2 << 20
    """How many bytes are mapped at once."""


_MOST: Final = 5_000
"""The most events of a slice."""


def split_batch(batch: SourceBatch, most_bytes: int) -> Iterator[SourceBatch]:
    """Split a batch into slices of limited size. Only the last slice has the next offsets, so offsets are never ahead
    of rows."""
    pieces = list(_pieces(batch.records, most_bytes)) or [()]
    for piece in pieces[:-1]:
        yield SourceBatch(tuple(piece))
    yield SourceBatch(tuple(pieces[-1]), batch.next, batch.gaps, batch.ends)


def _pieces(records: Sequence[BusRecord], most_bytes: int) -> Iterator[Sequence[BusRecord]]:
    begin, size = 0, 0
    for place, record in enumerate(records):
        if place > begin and (size + len(record.data) > most_bytes or place - begin >= _MOST):
            yield records[begin:place]
            begin, size = place, 0
        size += len(record.data)
    if records:
        yield records[begin:]


class PollSize:
    """Chooses how many events to poll at once, so that they are about as large as two slices."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._bytes = 2 * most_bytes
        self.count = min(most, 100)

    def update(self, records: Sequence[BusRecord]) -> None:
        if records:
            each = max(1, sum(len(record.data) for record in records) // len(records))
            self.count = max(1, min(self._most, self._bytes // each))
