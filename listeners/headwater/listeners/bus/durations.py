"""How long things take, counted into buckets: cheap enough for the thread of a job."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.events.clock import wall_micros
from headwater.journal import Record

_MICROS: Final = 1_000_000
CALLS: Final = (
    *(5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4),
    *(1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0),
)
"""Bounds, in seconds, for what a job's own thread waits for."""
JOURNEYS: Final = (
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
class Durations:
    """So many took so long, each counted below the first bound that it isn't above; those above all stand last."""

    bounds: Sequence[float]
    counts: Sequence[int]
    seconds: float
    """All of them together."""

    @property
    def count(self) -> int:
        return sum(self.counts)


class Stopwatch:
    """Counts for one thread, or under a lock; any other may look."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    @property
    def so_far(self) -> Durations:
        return Durations(self._bounds, tuple(self._counts), self._seconds)

    def note(self, seconds: float) -> None:
        """A wall clock that was set back makes less than nothing of a while: it counts as none."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        if seconds > 0:
            self._seconds += seconds


class Passage:
    """The records of a spool on their way to one listener: when each was handed to it, and when it answered. A record
    that comes again counts once. For that listener's thread."""

    def __init__(self, handed: Stopwatch, acknowledged: Stopwatch) -> None:
        self._handed = handed
        self._acknowledged = acknowledged
        self._handed_to = -1
        self._waiting: deque[tuple[int, int]] = deque()

    def hand(self, records: Iterable[Record]) -> None:
        """They are being handed over."""
        now = wall_micros()
        for record in records:
            self._waiting.append((record.offset, record.time))
            if record.offset > self._handed_to:
                self._handed_to = record.offset
                self._handed.note((now - record.time) / _MICROS)

    def answered(self, position: int | None = None) -> None:
        """All up to that offset are dealt with; all there are without one."""
        now = wall_micros()
        while self._waiting and (position is None or self._waiting[0][0] <= position):
            self._acknowledged.note((now - self._waiting.popleft()[1]) / _MICROS)

    def give_up(self) -> None:
        """What wasn't answered for is handed over again."""
        self._waiting.clear()
