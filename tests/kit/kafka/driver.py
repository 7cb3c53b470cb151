"""A driver's bus with the kafka listener within the test: what it reported is remembered, and how long that took."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from headwater.journal import Files
from headwater.journal.files import OS_FILES
from headwater.listeners.bus import Bus, ListenerReport
from headwater.spi import Application
from tests.kit.events.drafts import many_drafts
from tests.kit.kafka.conf import OPTIONS
from tests.kit.kafka.ledger import SpooledEvent
from tests.kit.waiting import PATIENCE, until

LONGEST_TELL: Final = 1.0
"""Thousands of times what it takes: whoever waits for a broker, or for a thread that does, takes longer."""
MOST_SLOW_TELLS: Final = 0.1
"""Of all. Some may take longer, on a machine that stood still meanwhile: who waits for a broker does so each time."""
GRACE: Final = 30.0
"""By which a call may overstay its time where other processes want the processors too."""


class Driver:
    """Use `driver_of`."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.emitted: list[SpooledEvent] = []
        self.tells = 0
        self.slow_tells: list[float] = []
        """Seconds."""
        self._drafts = many_drafts(Random(7), large=False)

    def tell(self, count: int) -> list[SpooledEvent]:
        """So many events of several jobs and tables. Those that the spool took are remembered."""
        taken: list[SpooledEvent] = []
        for draft in islice(self._drafts, count):
            began = time.monotonic()
            events = self.bus.emit(draft)
            took = time.monotonic() - began
            self.tells += 1
            if took > LONGEST_TELL:
                self.slow_tells.append(took)
            taken += [SpooledEvent.of(event) for event in events]
        self.emitted += taken
        return taken

    def tell_for(self, seconds: float, pace: int = 10) -> None:
        """A few at a time, so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.tell(pace)
            time.sleep(0.05)  # the pace of what happens, which nobody waits for

    @property
    def kafka(self) -> ListenerReport:
        (report,) = self.bus.report().listeners
        return report

    def deliver(self) -> None:
        """Wait until everything is delivered."""
        assert not self.bus.faults, self.bus.faults
        self.until(lambda report: not report.lag, "delivering")  # a flush doesn't wait for who is set aside

    def until(self, condition: Callable[[ListenerReport], object], what: str) -> None:
        """Wait until the listener is so."""
        until(lambda: condition(self.kafka), lambda: f"{what}: {self.bus.report()}", PATIENCE)

    def until_it_says(self, *words: str) -> None:
        """Wait until its last error has one of these words."""
        self.until(lambda report: any(word in report.last_error for word in words), f"saying {' or '.join(words)}")


@contextmanager
def driver_of(conf: Mapping[str, str], *, files: Files = OS_FILES) -> Generator[Driver]:
    """A driver that emitted its events without waiting for anybody."""
    bus = Bus.open(conf, Application("application_1", "orders"), options=replace(OPTIONS, files=files))
    driver = Driver(bus)
    try:
        yield driver
    finally:
        bus.stop(5)
    allowed = max(2, MOST_SLOW_TELLS * driver.tells)
    assert len(driver.slow_tells) <= allowed, f"of {driver.tells} tells some took {driver.slow_tells} s"


def assert_stops_within(bus: Bus, seconds: float) -> bool:
    """What it answered."""
    began = time.monotonic()
    answer = bus.stop(seconds)
    took = time.monotonic() - began
    assert took < seconds + GRACE, f"stop took {took:.1f} s where {seconds} were given"
    return answer


def spool_of(bus: Bus) -> Path:
    assert bus.spool is not None
    return bus.spool
