"""How long things take, counted into buckets: cheap enough for the thread of a job.

For retries: growing pauses, and a log that writes a repeated message once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.events.clock import wall_micros
from headwater.journal import JournalRecord


class OnceLogger:
    """Of one kind of trouble: for one thread."""

    def __init__(self) -> None:
        self._last: str | None = None

    def is_new(self, words: str) -> bool:
        """Whether this isn't what was said last."""
        is_new_text = words != self._last
        self._last = words
        return is_new_text

    def reset(self) -> None:
        """The trouble is over: when it comes again that is news."""
        self._last = None


class Backoff:
    """How long to wait before the next try."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def next(self) -> float:
        """Seconds: twice those before, up to the longest."""
        pause, self._next = self._next, min(2 * self._next, self._longest)
        return pause

    def reset(self) -> None:
        self._next = self._first


_MICROS: Final = 1_000_000
CALL_BOUNDS: Final = (
    *(5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4),
    *(1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0),
)
"""Bounds, in seconds, for what a job's own thread waits for."""
DELIVERY_BOUNDS: Final = (
    1e-3,
    5e-3,
    1e-2,
    2.5e-2,
    5e-2,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
    3600.0,
)
"""Bounds, in seconds, for what happens to an event behind that thread."""


@dataclass(frozen=True)
class DurationHistogram:
    """So many took so long, each counted below the first bound that it isn't above; those above all stand last."""

    bounds: Sequence[float]
    counts: Sequence[int]
    seconds: float
    """All of them together."""

    @property
    def count(self) -> int:
        return sum(self.counts)

    def __add__(self, other: DurationHistogram) -> DurationHistogram:
        """Both together; they have the same bounds."""
        counts = tuple(map(sum, zip(self.counts, other.counts, strict=True)))
        return DurationHistogram(self.bounds, counts, self.seconds + other.seconds)


class DurationRecorder:
    """Counts for one thread, or under a lock; any other may look."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    @property
    def snapshot(self) -> DurationHistogram:
        return DurationHistogram(self._bounds, tuple(self._counts), self._seconds)

    def record(self, seconds: float) -> None:
        """A wall clock that was set back makes less than nothing of a while: it counts as none."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        if seconds > 0:
            self._seconds += seconds


class DeliveryTimes:
    """The records of a spool on their way to one listener: when each was handed to it, and when it answered. A record
    that comes again counts once. For that listener's thread."""

    def __init__(self, received: DurationRecorder, acknowledged: DurationRecorder) -> None:
        self._received = received
        self._acknowledged = acknowledged
        self._last_offset = -1
        self._waiting: deque[tuple[int, int]] = deque()

    def start(self, records: Iterable[JournalRecord]) -> None:
        """They are being handed over."""
        now = wall_micros()
        for record in records:
            self._waiting.append((record.offset, record.time))
            if record.offset > self._last_offset:
                self._last_offset = record.offset
                self._received.record((now - record.time) / _MICROS)

    def acknowledge(self, position: int | None = None) -> None:
        """All up to that offset are dealt with; all there are without one."""
        now = wall_micros()
        while self._waiting and (position is None or self._waiting[0][0] <= position):
            self._acknowledged.record((now - self._waiting.popleft()[1]) / _MICROS)

    def reset(self) -> None:
        """What wasn't answered for is handed over again."""
        self._waiting.clear()


_MOST: Final = 2_000


class RecordAges:
    """One thread notes; any may ask."""

    def __init__(self) -> None:
        self._marks: tuple[tuple[int, int], ...] = ()

    def record(self, next_offset: int, micros: int) -> None:
        """The journal is that long now. Of a journal that grew for long the older marks lie farther apart."""
        before = self._marks
        if before and before[-1][0] == next_offset:  # it didn't grow: what comes next is younger than this
            before = before[:-1]
        elif len(before) >= _MOST:
            before = (*before[: _MOST // 2 : 2], *before[_MOST // 2 :])
        self._marks = (*before, (next_offset, micros))

    def of(self, offset: int) -> float:
        """Seconds since this record was appended, at most; 0 where nothing was noted before it."""
        marks = self._marks
        index = bisect_right(marks, (offset, 1 << 63)) - 1
        return max(0.0, (wall_micros() - marks[index][1]) / _MICROS) if index >= 0 else 0.0
