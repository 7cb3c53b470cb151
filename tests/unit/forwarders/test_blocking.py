"""What a forwarder whose target blocks does with a call that is cancelled while another one is under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence

from headwater.events import Event
from headwater.forwarders.api import BusEvent
from headwater.forwarders.blocking import BlockingForwarder
from headwater.spi import CheckResult
from tests.kit.forwarders.stage import MemoryBus, commit, until


class NoTarget:
    def check(self) -> Iterator[CheckResult]:
        yield from ()

    def close(self) -> None:
        """There is nothing to close."""


class Blocked(BlockingForwarder):
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
