"""A producer's time: microseconds that never go back, whatever the wall clock does.

Objects that must begin anew in a forked child: a lock may be held there by a thread that no longer exists.

UUIDs that sort by when they were made (version 7 of RFC 9562).
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID
from weakref import WeakSet

from headwater.events.scalars import EPOCH


class Forkable(Protocol):
    """Something with locks, or with an identity that two processes must not share."""

    def begin_in_child(self) -> None:
        """Called in a forked child before anything else runs there."""
        ...


_ALL: WeakSet[Forkable] = WeakSet()


def reset_after_fork(each: Forkable) -> None:
    """From now on, as long as it lives, it is called when it finds itself in a child."""
    _ALL.add(each)


def _in_child() -> None:
    for each in list(_ALL):
        each.begin_in_child()


os.register_at_fork(after_in_child=_in_child)


def uuid7(millis: int | None = None, random: bytes | None = None) -> UUID:
    """A new UUID of version 7; both arguments are for tests."""
    at = time.time_ns() // 1_000_000 if millis is None else millis
    noise = int.from_bytes(os.urandom(10) if random is None else random, "big")
    high, low = noise >> 68, noise & ((1 << 62) - 1)
    return UUID(int=(at & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (high & 0xFFF) << 64 | 0b10 << 62 | low)


_MICROSECOND: Final = timedelta(microseconds=1)
LATEST: Final = (datetime.max.replace(tzinfo=EPOCH.tzinfo) - EPOCH) // _MICROSECOND
"""The last microsecond that has a date."""
_OBSERVATIONS: Final = 16
_LATE_MICROS: Final = 60_000_000
"""How much acknowledgements that say the same can differ, because some come late."""


def wall_micros() -> int:
    """Microseconds since the epoch by this machine's clock."""
    return time.time_ns() // 1000


def micros_of(moment: datetime) -> int:
    """The exact microseconds since the epoch of an aware datetime."""
    return (moment - EPOCH) // _MICROSECOND


def moment_of(micros: int) -> datetime:
    """The datetime in UTC of microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=micros)


class ProducerClock:
    """Thread-safe. Equal times are possible (the sequence orders those), earlier ones are not."""

    def __init__(self, wall: Callable[[], int] = wall_micros) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._differences: deque[int] = deque([0], maxlen=_OBSERVATIONS)
        self._behind = 0
        self._last = 0
        reset_after_fork(self)

    def now(self) -> int:
        """Microseconds since the epoch."""
        with self._lock:
            self._last = min(max(self._last, self._wall() + self._behind), LATEST)
            return self._last

    def observe(self, micros: int) -> None:
        """The bus says that it is at least this late. If the own clock is behind, the difference is added from now on,
        so that what is reported next isn't dated before what the bus already holds.

        The last observations count, and what most of them say: one that says something else is wrong, not the clock.
        Of those within a minute of the median the greatest holds, because an acknowledgement can be late. A wall clock
        that was set right needs no help any more. What is no date is ignored.
        """
        if not 0 <= micros <= LATEST:
            return
        with self._lock:
            self._differences.append(micros - self._wall())
            ordered = sorted(self._differences)
            most = ordered[(len(ordered) - 1) // 2] + _LATE_MICROS
            self._behind = max(0, *(each for each in ordered if each <= most))

    def pass_over(self, micros: int) -> None:
        """From now on it is later than that."""
        with self._lock:
            self._last = max(self._last, micros + 1)

    def begin_in_child(self) -> None:
        """A forked child goes on from the same time."""
        self._lock = threading.Lock()
