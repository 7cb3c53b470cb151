"""A durable listener for the shipper's process, led by files: what it got is in one, what it is to do in others."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from headwater.events import Event
from headwater.listeners.bus import Bus
from headwater.spi import Application, DurableListener, Listener, ListenerContext, RecordBatch, SpoolPosition
from tests.kit.bus.scripts import QUICK

HOLD, DIE, CLOCK = "hold", "die", "clock"
"""Files beside what it got: it waits while there is one; it sends itself the signal that stands in one; it has seen a
bus whose time stands in one."""


class Delivered(NamedTuple):
    """A record, and the process that got it."""

    pid: int
    event_id: str
    kind: str
    key: str
    detail: str


class FileListener(DurableListener):
    def __init__(self, context: ListenerContext) -> None:
        self._place = Path(context.configuration["place"])
        self._clock = context.clock

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        for record in batch:
            while (self._place / HOLD).exists():
                time.sleep(0.01)
            event: Any = record.event
            line = [os.getpid(), str(record.event_id), record.kind, record.key.hex(), getattr(event, "detail", "")]
            with (self._place / "got").open("a") as got:
                got.write(json.dumps(line) + "\n")
            self._die()
        if (self._place / CLOCK).exists():
            self._clock.observe(int((self._place / CLOCK).read_text()))
        return batch.end

    def _die(self) -> None:
        order = self._place / DIE
        if order.exists():
            number = int(order.read_text())
            order.unlink()
            os.kill(os.getpid(), number)
            signal.pause()


class FileFactory:
    def create(self, context: ListenerContext) -> FileListener:
        return FileListener(context)


class PlainListener(Listener):
    def on_event(self, event: Event) -> None:
        raise NotImplementedError


class PlainFactory:
    def create(self, context: ListenerContext) -> PlainListener:
        return PlainListener()


def delivered(place: Path) -> list[Delivered]:
    """What it got so far, in order, copies too."""
    got = place / "got"
    return [Delivered(*json.loads(line)) for line in got.read_text().splitlines()] if got.exists() else []


def shipper_conf(place: Path, **more: str) -> dict[str, str]:
    """A bus with this listener in a process of its own; `more` stands below spark.headwater, dots as underscores."""
    keys = {
        "spool.dir": str(place / "spools"),
        "spool.fsync": "none",
        "spool.linger": "0",
        "listeners": f"file={__name__}:FileFactory",
        "file.isolation": "process",
        "file.place": str(place),
        "file.password": "s3cr3t-of-the-listener",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return {f"spark.headwater.{key}": value for key, value in keys.items()}


@contextmanager
def shipper_bus(conf: Mapping[str, str]) -> Generator[Bus]:
    bus = Bus.open(conf, Application("application_1", "orders"), options=QUICK)
    try:
        yield bus
    finally:
        bus.stop(5)
