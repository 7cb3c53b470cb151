"""What belongs to an instant: the events of one batch, and what reading processes made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.processes.slice_reader import ReadReply
from headwater.lineage.bulk import DeadLetter

_FULL: Final = 1.1
"""How much larger than the average a part may be."""
_MOST_KEYS: Final = 100_000


@dataclass
class Instant:
    """An instant until it is completed. Its events are kept, because they may have to be written again."""

    number: int
    batch: SourceBatch
    epoch: int | None = None
    """The store's epoch before anything of the instant was written."""
    parts: list[ReadReply] = field(default_factory=list)
    """What each reading process made of its part of the events."""
    must_rewrite: bool = False
    """Whether its events have to be written again, because a row was refused or omitted rows may be gone."""

    def shares(self) -> list[tuple[int, bytes]]:
        """Return what has to be written, by buckets, once the instant is read and opened."""
        self.must_rewrite = any(each.is_refused or (each.left_out and each.epoch != self.epoch) for each in self.parts)
        return [] if self.must_rewrite else [share for each in self.parts for share in each.shares.items()]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        return [letter for each in self.parts for letter in each.dead_letters]


class Splitter:
    """Splits records into parts for so many processes.

    Records of one key, which is a job or a dataset, are for one process, because each process learns the shapes of its
    events. A key moves where its process has more to do than others.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._process_of: dict[bytes, int] = {}

    def split(self, records: Sequence[BusRecord]) -> list[list[BusRecord]]:
        if len(self._process_of) > _MOST_KEYS:
            self._process_of.clear()
        parts: list[list[BusRecord]] = [[] for _ in range(self._count)]
        most, process_of = _FULL * len(records) / self._count, self._process_of
        for record in records:
            key = record.key or b"%d" % record.partition.number
            number = process_of.get(key)
            if number is None or len(parts[number]) >= most:
                number = process_of[key] = min(range(self._count), key=lambda each: len(parts[each]))
            parts[number].append(record)
        return parts
