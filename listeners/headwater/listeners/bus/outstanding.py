"""What a durable listener was handed and hasn't answered for, and whether its answers can be true."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from headwater.errors import TerminalError
from headwater.spi import Position


class BrokenWordError(TerminalError):
    """An answer that no listener may give."""


class _Handed(NamedTuple):
    end: Position
    time: int
    records: int
    size: int


class Outstanding:
    """The account of one instance of a listener."""

    def __init__(self) -> None:
        self.answer: Position | None = None
        self.count = 0
        self.size = 0
        self._batches: deque[_Handed] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def oldest(self) -> int | None:
        """When the oldest record was appended that isn't answered for, in microseconds."""
        return self._batches[0].time if self._batches else None

    def hand(self, end: Position, time: int, count: int, size: int) -> None:
        """A batch is being handed over."""
        self._batches.append(_Handed(end, time, count, size))
        self.count += count
        self.size += size

    def answered(self, answer: Position | None) -> bool:
        """Whether the answer moved. A BrokenWordError where it is none that could be given."""
        before = self.answer
        if answer == before:
            return False
        if answer is None or (before is not None and answer < before):
            raise BrokenWordError(f"it answered {answer} after {before}: an answer never goes back")
        if not self._batches or answer > self._batches[-1].end:
            raise BrokenWordError(f"it answered {answer}, and was handed nothing that far")
        self.answer = answer
        while self._batches and self._batches[0].end <= answer:
            done = self._batches.popleft()
            self.count -= done.records
            self.size -= done.size
        return True

    def give_up(self) -> None:
        """The listener raised: nothing above its answer counts as handed over."""
        self._batches.clear()
        self.count = self.size = 0
