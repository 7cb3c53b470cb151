"""A bus with listeners that a test makes up: each has a script, which its factory finds by its name."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from headwater.events.envelope import Event, EventId
from headwater.listeners.bus import Bus, BusOptions
from headwater.spi import Application, EventRecord, ListenerContext, RecordBatch, SpoolPosition

ENOUGH: Final = 2.0
"""Seconds for a stop at which one listener hangs, which takes all of them, and another ends as it should: on a busy
machine that takes a part of them."""
QUICK: Final = BusOptions(
    first_backoff=0.005,
    longest_backoff=0.02,
    attempts=3,
    suspended_seconds=0.05,
    linger_seconds=0.001,
    flush_slice=0.02,
    commit_interval=0.0,
    keep_interval=0.05,
    look_interval=0.1,
    stall_seconds=1.0,
)
"""As the real pauses, and shorter."""

Script = Callable[[ListenerContext], Any]
SCRIPTS: Final[dict[str, Script]] = {}


class ScriptFactory:
    """Makes what the script of this name makes."""

    def create(self, context: ListenerContext) -> Any:
        return SCRIPTS[context.name](context)


@contextmanager
def bus_of(
    spools: Path,
    scripts: Mapping[str, Script],
    configuration: Mapping[str, str] | None = None,
    options: BusOptions = QUICK,
) -> Generator[Bus]:
    """A bus with these listeners; it is stopped at the end, if the test didn't."""
    SCRIPTS.update(scripts)
    items = ",".join(f"{name}={__name__}:ScriptFactory" for name in scripts)
    keys = {"spool.dir": str(spools), "spool.fsync": "none", "listeners": items}
    keys |= configuration or {}
    conf = {key if key.startswith("spark.") else f"spark.headwater.{key}": value for key, value in keys.items()}
    bus = Bus.open(conf, Application("application_1", "orders"), options=options)
    try:
        yield bus
    finally:
        bus.stop(5)


def emit_all(bus: Bus, drafts: Iterable[Event]) -> list[Event]:
    """What was reported, in order."""
    emitted = [event for draft in drafts for event in bus.emit(draft)]
    assert emitted
    return emitted


def ids(events: Iterable[Event | EventRecord]) -> list[EventId]:
    return [event.event_id for event in events]


def firsts(events: Iterable[Event | EventRecord]) -> list[EventId]:
    """The first copies, in order."""
    return list(dict.fromkeys(ids(events)))


class Taking:
    """A durable listener that takes everything at once; tests change one of its methods."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.batches: list[list[SpoolPosition]] = []
        self.flushes: list[float] = []
        self.closes: list[float] = []

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self.batches.append([record.position for record in batch])
        self.records.extend(batch)
        return batch.end

    def flush(self, timeout: float) -> SpoolPosition | None:
        self.flushes.append(timeout)
        return self.records[-1].position if self.records else None

    def close(self, timeout: float) -> bool:
        self.closes.append(timeout)
        return True


class Hearing:
    """A plain listener that hears everything; tests change one of its methods."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.missed: list[int] = []
        self.flushes: list[float] = []
        self.closes: list[float] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def on_missed(self, count: int) -> None:
        self.missed.append(count)

    def flush(self, timeout: float) -> None:
        self.flushes.append(timeout)

    def close(self, timeout: float) -> bool:
        self.closes.append(timeout)
        return True
