"""Records dispatched to a durable listener and not yet acknowledged; rejects impossible acknowledgements."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from headwater.errors import TerminalError
from headwater.spi import SpoolPosition


class InvalidAcknowledgementError(TerminalError):
    """An acknowledgement that goes back, or beyond what was dispatched."""


class _OutstandingBatch(NamedTuple):
    end: SpoolPosition
    time: int
    records: int
    size: int


class OutstandingRecords:
    """The unacknowledged batches of one instance of a listener."""

    def __init__(self) -> None:
        self.acknowledged: SpoolPosition | None = None
        self.count = 0
        self.size = 0
        self._batches: deque[_OutstandingBatch] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def oldest_time(self) -> int | None:
        """When the oldest record was appended that isn't answered for, in microseconds."""
        return self._batches[0].time if self._batches else None

    def add(self, end: SpoolPosition, time: int, count: int, size: int) -> None:
        """A batch is being handed over."""
        self._batches.append(_OutstandingBatch(end, time, count, size))
        self.count += count
        self.size += size

    def acknowledge(self, answer: SpoolPosition | None) -> bool:
        """Whether the answer moved. A BrokenWordError where it is none that could be given."""
        before = self.acknowledged
        if answer == before:
            return False
        if answer is None or (before is not None and answer < before):
            raise InvalidAcknowledgementError(f"it answered {answer} after {before}: an answer never goes back")
        if not self._batches or answer > self._batches[-1].end:
            raise InvalidAcknowledgementError(f"it answered {answer}, and was handed nothing that far")
        self.acknowledged = answer
        while self._batches and self._batches[0].end <= answer:
            done = self._batches.popleft()
            self.count -= done.records
            self.size -= done.size
        return True

    def reset(self) -> None:
        """The listener raised: nothing above its answer counts as handed over."""
        self._batches.clear()
        self.count = self.size = 0
