"""When a forwarder that acts as time passes is called, and what it is told of the bus."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from headwater.errors import TransientError
from headwater.events import Event
from headwater.forwarders import runner as module
from headwater.forwarders.api import BusEvent, PeriodicForwarder
from headwater.forwarders.http_delivery import BatchForwarder
from headwater.forwarders.runner import ForwarderRunner
from headwater.spi import CheckResult
from tests.kit.forwarders.stage import LONG, MemoryBus, MemorySource, Stage, commit, until


class Clockwork:
    """Records what it is told at each tick, and how many events it had then."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ticks: list[tuple[int, datetime | None]] = []
        self.received = 0
        self._error = error

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        self.received += len(batch)

    async def tick(self, caught_up_at: datetime | None) -> None:
        self.ticks.append((self.received, caught_up_at))
        if self._error is not None:
            raise self._error


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    created = Stage(tmp_path)
    yield created
    created.state.close()


async def _run_until(runner: ForwarderRunner, condition: Callable[[], bool]) -> None:
    task = asyncio.create_task(runner.run())
    await until(condition)
    runner.stop()
    await asyncio.wait_for(task, LONG)


def test_what_is_unread_is_not_caught_up_with(stage: Stage) -> None:
    for number in range(1, 26):
        stage.bus.append(commit(number))
    forwarder, began = Clockwork(), datetime.now(timezone.utc)
    assert isinstance(forwarder, PeriodicForwarder)
    stage.forward(forwarder, batch="10")
    assert [each for each in forwarder.ticks if each[1] is None] == [(10, None), (20, None), (25, None)]
    received, caught_up_at = forwarder.ticks[-1]
    assert received == 25
    assert caught_up_at is not None
    assert began <= caught_up_at <= datetime.now(timezone.utc)


def test_a_bus_that_is_away_confirms_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemorySource, "outage", "the broker is away", raising=False)
    forwarder = Clockwork()
    asyncio.run(_run_until(stage.runner(forwarder, until_end=False), lambda: len(forwarder.ticks) > 2))
    assert {caught_up_at for _, caught_up_at in forwarder.ticks} == {None}


def test_a_tick_that_fails_stops_nothing(stage: Stage) -> None:
    stage.bus.append(commit(1))
    forwarder = Clockwork(TransientError("no room at https://etl:hunter2hunter2@db.example"))
    runner = stage.runner(forwarder, until_end=False)
    asyncio.run(_run_until(runner, lambda: len(forwarder.ticks) > 2))
    assert forwarder.received == 1
    assert stage.committed == {0: 1}
    assert "no room at" in str(runner.metrics.last_error)
    assert "hunter2" not in str(runner.metrics.last_error)


# What a forwarder whose target blocks does with a call that is cancelled while another one is under way.


class NoTarget:
    def check(self) -> Iterator[CheckResult]:
        yield from ()

    def close(self) -> None:
        """There is nothing to close."""


class Blocked(BatchForwarder):
    def __init__(self) -> None:
        super().__init__(NoTarget())
        self.sent: list[Event] = []
        self.began, self.goes_on = threading.Event(), threading.Event()

    def send_together(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        self.began.set()
        assert self.goes_on.wait(60)
        self.sent += events


def test_a_batch_that_was_cancelled_while_it_waited_is_not_sent() -> None:
    """It comes again, and by then newer events of its keys may have been sent."""
    forwarder, bus = Blocked(), MemoryBus()
    first, second = ([BusEvent(event, bus.append(event))] for event in (commit(1), commit(2)))

    async def go() -> None:
        under_way = asyncio.create_task(forwarder.handle(first))
        await until(forwarder.began.is_set)
        waiting = asyncio.create_task(forwarder.handle(second))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        forwarder.goes_on.set()
        await under_way
        await forwarder.close()

    asyncio.run(go())
    assert forwarder.sent == [commit(1)]
