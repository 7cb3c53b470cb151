"""A producer's time: microseconds that never go back, whatever the wall clock does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from headwater.events.scalars import EPOCH


def wall_micros() -> int:
    """Microseconds since the epoch by this machine's clock."""
    return time.time_ns() // 1000


def micros_of(moment: datetime) -> int:
    """The exact microseconds since the epoch of an aware datetime."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment_of(micros: int) -> datetime:
    """The datetime in UTC of microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=micros)


class ProducerClock:
    """Thread-safe. Equal times are possible (the sequence orders those), earlier ones are not."""

    def __init__(self, wall: Callable[[], int] = wall_micros) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._behind = 0
        self._last = 0

    def now(self) -> int:
        """Microseconds since the epoch."""
        with self._lock:
            self._last = max(self._last, self._wall() + self._behind)
            return self._last

    def observe(self, micros: int) -> None:
        """The bus says that it is at least this late: if the own clock is behind, it is behind by the difference from
        now on, so that what is told next isn't dated before what the bus already holds."""
        with self._lock:
            self._behind = max(self._behind, micros - self._wall())
            self._last = max(self._last, micros)
