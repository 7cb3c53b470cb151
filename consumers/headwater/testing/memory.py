"""Listeners that bring what they receive into memory, for tests of what happens around listeners.

In a driver, name one of the factories in its configuration; what arrives is found by the listener's name, in whichever
session of this process it was called from:

    spark.headwater.listeners  seen=headwater.testing.memory:DurableMemoryFactory

    events = await_arrival("seen", lambda events: any(event.kind == "Committed" for event in events))
    forget("seen")

`MemoryFactory` is the same for a plain listener, which may miss events where it can't keep up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from headwater.errors import TransientError
from headwater.events.envelope import Event, EventId
from headwater.spi import Application, EventRecord, ListenerContext, RecordBatch, SpoolPosition

T = TypeVar("T")
_APPLICATION: Final = Application("application_0", "test")
_PATIENCE: Final = 30.0
_targets: Final[dict[str, MemoryTarget[Any]]] = {}
_targets_lock: Final = threading.Lock()


class RefusedError(TransientError):
    """The target was made to refuse."""


class MemoryTarget(Generic[T]):
    """Where memory listeners bring things. Several can bring to one, which can be made to refuse, or not to answer."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._refuses = False
        self._answers = threading.Event()
        self._answers.set()

    def bring(self, items: list[T], timeout: float) -> bool:
        """True when they have arrived; False where there was no answer in that many seconds, and then they haven't."""
        if self._refuses:
            raise RefusedError("this target refuses everything until refusing() ends")
        if not self._answers.wait(timeout):
            return False
        self.items.extend(items)
        return True

    @contextmanager
    def refusing(self) -> Generator[None]:
        """Whatever is brought is refused."""
        self._refuses = True
        try:
            yield
        finally:
            self._refuses = False

    @contextmanager
    def stalling(self) -> Generator[None]:
        """Whoever brings something waits for an answer."""
        self._answers.clear()
        try:
            yield
        finally:
            self._answers.set()


class MemoryListener:
    """A plain listener."""

    def __init__(self, target: MemoryTarget[Event] | None = None) -> None:
        self.target: MemoryTarget[Event] = MemoryTarget() if target is None else target
        self.missed = 0
        self.is_closed = False
        self._received = 0
        self._delivered = 0
        self._waiting: list[Event] = []

    @property
    def events(self) -> list[Event]:
        """What has arrived at the target."""
        return self.target.items

    def on_event(self, event: Event) -> None:
        self._received += 1
        self._waiting.append(event)
        self.flush(0)

    def on_missed(self, count: int) -> None:
        self.missed += count

    def flush(self, timeout: float) -> None:
        brought = _delivered(self.target, self._waiting, timeout)
        self._delivered += len(brought)

    def close(self, timeout: float) -> bool:
        with suppress(RefusedError):
            self.flush(timeout)
        self.is_closed = True
        return self._delivered == self._received


class DurableMemoryListener:
    """A durable listener."""

    def __init__(self, target: MemoryTarget[EventRecord] | None = None) -> None:
        self.target: MemoryTarget[EventRecord] = MemoryTarget() if target is None else target
        self.is_closed = False
        self._handed: SpoolPosition | None = None
        self._dealt_with: SpoolPosition | None = None
        self._waiting: list[EventRecord] = []

    @property
    def records(self) -> list[EventRecord]:
        """What has arrived at the target."""
        return self.target.items

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self._handed = batch.end
        self._waiting.extend(batch)
        return self.flush(0)

    def flush(self, timeout: float) -> SpoolPosition | None:
        brought = _delivered(self.target, self._waiting, timeout)
        if brought:
            self._dealt_with = brought[-1].position
        return self._dealt_with

    def close(self, timeout: float) -> bool:
        with suppress(RefusedError):
            self.flush(timeout)
        self.is_closed = True
        return self._dealt_with == self._handed


def target_of(name: str) -> MemoryTarget[Any]:
    """Where the listeners of this name, which the factories below make, bring things: one for the whole process."""
    with _targets_lock:
        return _targets.setdefault(name, MemoryTarget())


def arrived(name: str) -> list[Event]:
    """The events that arrived for a listener of this name, in order; a second copy of one is left out."""
    first: dict[EventId, Event | EventRecord] = {}
    for item in list(target_of(name).items):
        first.setdefault(item.event_id, item)
    events = (each.event if isinstance(each, EventRecord) else each for each in first.values())
    return [event for event in events if isinstance(event, Event)]


def await_arrival(name: str, enough: Callable[[list[Event]], bool], timeout: float = _PATIENCE) -> list[Event]:
    """What arrived, as soon as it is enough; a TimeoutError tells what there was by then."""
    deadline = time.monotonic() + timeout
    while not enough(events := arrived(name)):
        if time.monotonic() > deadline:
            kinds = ", ".join(event.kind for event in events) or "nothing"
            raise TimeoutError(f"not enough arrived at {name} within {timeout:g} s, only: {kinds}")
        time.sleep(0.01)
    return events


def forget(name: str) -> None:
    """Begin anew under this name; listeners that are at work go on bringing things there."""
    target_of(name).items.clear()


class MemoryFactory:
    """Makes plain listeners; see the top of this module."""

    def create(self, context: ListenerContext) -> MemoryListener:
        return MemoryListener(target_of(context.name))


class DurableMemoryFactory:
    """Makes durable listeners; see the top of this module."""

    def create(self, context: ListenerContext) -> DurableMemoryListener:
        return DurableMemoryListener(target_of(context.name))


class MemoryClock:
    """A clock that notes what it receives."""

    def __init__(self) -> None:
        self.observed: list[int] = []

    def observe(self, micros: int) -> None:
        self.observed.append(micros)


@dataclass(frozen=True)
class MemoryContext:
    """What a factory is given, for tests of factories: MemoryContext("kafka", {"bootstrap.servers": …}, executor)."""

    name: str
    configuration: Mapping[str, str]
    executor: Executor
    application: Application = _APPLICATION
    clock: MemoryClock = field(default_factory=MemoryClock)
    problems: list[tuple[str, str]] = field(default_factory=list)
    """What `report_problem` was called with: cause and detail."""

    @property
    def prefix(self) -> str:
        return f"spark.headwater.{self.name}."

    def report_problem(self, cause: str, detail: str) -> None:
        self.problems.append((cause, detail))


def _delivered(target: MemoryTarget[T], waiting: list[T], timeout: float) -> list[T]:
    """Bring what waits, and return it if it arrived. What is refused doesn't wait any more: it is handed over again."""
    items = list(waiting)
    try:
        if items and not target.bring(items, timeout):
            return []
    except RefusedError:
        waiting.clear()
        raise
    waiting.clear()
    return items
