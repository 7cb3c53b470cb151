"""Counters of the bus and its listeners, and frozen reports of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from headwater.listeners.bus.durations import DELIVERY_BOUNDS, DurationHistogram, DurationRecorder
from headwater.listeners.bus.listener_errors import ListenerErrors

T = TypeVar("T")


class ListenerState(str, Enum):
    """The state of a listener."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    """It failed and is tried again soon, or it reported a problem that it goes on after by itself, and hasn't yet."""
    SUSPENDED = "suspended"
    FAILED = "failed"
    """It can't be made, and isn't tried again."""
    CLOSED = "closed"
    GIVEN_UP = "given up"
    """A call hadn't come back when the bus had to stop."""

    @property
    def is_stopped(self) -> bool:
        """Whether waiting for it makes no sense now."""
        return self in {ListenerState.SUSPENDED, ListenerState.FAILED, ListenerState.CLOSED, ListenerState.GIVEN_UP}


@dataclass(frozen=True)
class ListenerReport:
    """One listener, so far."""

    name: str
    durable: bool | None
    """None until it is made for the first time."""
    state: ListenerState
    received: int
    """Events that it received, counted again where they were delivered again."""
    acknowledged: int
    """Events that it answered for, each once, or that it received and didn't fail at; those too of dead drivers."""
    lag: int
    """Events that it hasn't dealt with."""
    lag_seconds: float
    """How old the oldest of those is."""
    missed: int
    """By a plain one, because it was too slow or suspended."""
    lost: int
    """By a durable one, at most, because the spool reached its limit or is damaged."""
    dead_letters: int
    """Events that it refused for ever: they lie in its dead letters."""
    received_after: DurationHistogram
    """How long events of this driver took until it received them for the first time."""
    acknowledged_after: DurationHistogram
    """How long they took until it answered for them."""
    failures: int
    """How often it raised."""
    errors: Mapping[str, int]
    """What it raised, by type, and the problems that it reported, by cause."""
    calls: int
    seconds: float
    """In all calls together."""
    longest_call: float
    last_error: str

    def __str__(self) -> str:
        words = [f"{self.name} ({self.state.value}): {self.received} received, {self.lag} not dealt with"]
        words += [f"the oldest {self.lag_seconds:.1f} s old"] if self.lag and self.lag_seconds else []
        words += [f"{self.missed} missed"] if self.missed else []
        words += [f"{self.dead_letters} dead letters"] if self.dead_letters else []
        causes = ", ".join(f"{count} {cause}" for cause, count in sorted(self.errors.items()))
        words += [f"errors: {causes}, the last: {self.last_error}"] if self.errors else []
        return ", ".join(words)


@dataclass(frozen=True)
class IntakeReport:
    """What came in, so far."""

    emitted: Mapping[str, int]
    """Events by family."""
    broken: Mapping[str, int]
    """What no event could be made of, by kind."""
    gaps: Mapping[str, int]
    """Gaps emitted, by reason."""
    missed: Mapping[str, int]
    """How many events those say are missing, where they know, by reason."""
    spool_bytes: int
    """About how much the spool holds."""
    append: DurationHistogram
    """Writing to the spool, one for each event in it."""
    emit: DurationHistogram
    """All of emitting, on the thread that emits."""


@dataclass(frozen=True)
class SpoolShipment:
    """A dead driver's spool on its way to its listeners."""

    spool: Path
    listeners: tuple[ListenerReport, ...]


@dataclass(frozen=True)
class ShipperReport:
    """The process in which listeners with native clients work."""

    pid: int | None
    """None while there is none."""
    restarts: int
    """How often it died and was started again."""


@dataclass(frozen=True)
class BusReport:
    """The bus, so far."""

    emitted: int
    refused: int
    """Events that the spool didn't take."""
    spool: Path | None
    listeners: tuple[ListenerReport, ...]
    intake: IntakeReport
    shipped: int
    """Spools of dead drivers that were delivered, and are gone."""
    shipper: ShipperReport | None = None
    """None where all listeners work in the driver."""

    @property
    def is_delivered(self) -> bool:
        """Whether all that was emitted is dealt with by everybody."""
        return not self.refused and all(listener.lag == 0 and listener.missed == 0 for listener in self.listeners)

    def __str__(self) -> str:
        where = f" in {self.spool}" if self.spool else ""
        head = f"{self.emitted} events emitted, {self.refused} refused{where}"
        return "; ".join([head, *map(str, self.listeners)])


class ListenerMeter:
    """Counts what happens to one listener; written by its thread alone, but for `errors`."""

    def __init__(self, errors: ListenerErrors) -> None:
        self.errors = errors
        self.received = 0
        self.failures = 0
        self.calls = 0
        self.seconds = 0.0
        self.longest = 0.0
        self.received_after, self.acknowledged_after = (
            DurationRecorder(DELIVERY_BOUNDS),
            DurationRecorder(DELIVERY_BOUNDS),
        )

    def measure(self, call: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            return call()
        finally:
            took = time.monotonic() - began
            self.calls += 1
            self.seconds += took
            self.longest = max(self.longest, took)

    def record_failure(self, error: BaseException) -> None:
        self.failures += 1
        self.errors.record_exception(error)


class ProgressSignal:
    """Wakes threads that wait for listeners to progress."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = 0

    def notify(self) -> None:
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        with self._changed:
            self._waiting += 1
            try:
                deadline = time.monotonic() + timeout
                while not condition():
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return False
                    self._changed.wait(min(left, 0.05))  # `notify` looks at the counter without the lock
                return True
            finally:
                self._waiting -= 1
