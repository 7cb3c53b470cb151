"""What is polled, in pieces: what becomes of one is bounded, however long its events are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headwater.consumers.sources import Batch, Taken

_MOST: Final = 5_000
"""Events in a piece."""


def slices(batch: Batch, most_bytes: int) -> Iterator[Batch]:
    """Only the last one says what comes next: until then rows are ahead of it, and never behind."""
    pieces = list(_pieces(batch.records, most_bytes)) or [()]
    for piece in pieces[:-1]:
        yield Batch(tuple(piece))
    yield Batch(tuple(pieces[-1]), batch.next, batch.holes, batch.ends)


def _pieces(records: Sequence[Taken], most_bytes: int) -> Iterator[Sequence[Taken]]:
    begin, size = 0, 0
    for place, record in enumerate(records):
        if place > begin and (size + len(record.data) > most_bytes or place - begin >= _MOST):
            yield records[begin:place]
            begin, size = place, 0
        size += len(record.data)
    if records:
        yield records[begin:]


class Portion:
    """How many events are to be polled at once, so that they are about as long as two pieces."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._bytes = 2 * most_bytes
        self.count = min(most, 100)

    def seen(self, records: Sequence[Taken]) -> None:
        if records:
            each = max(1, sum(len(record.data) for record in records) // len(records))
            self.count = max(1, min(self._most, self._bytes // each))
