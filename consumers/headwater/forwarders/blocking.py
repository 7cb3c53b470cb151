"""A forwarder whose target's calls block: they have a thread, and whoever waits for them doesn't block."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final, Protocol

from headwater.errors import HeadwaterError
from headwater.events import Event
from headwater.forwarders.api import BusEvent, RefusedEventsError
from headwater.forwarders.http_responses import RefusedContentError
from headwater.spi import CheckResult


class BlockingTarget(Protocol):
    """What a forwarder sends to."""

    def check(self) -> Iterable[CheckResult]: ...

    def close(self) -> None: ...


class BlockingForwarder(ABC):
    """Sends one batch at a time. Of a batch that is refused each event is sent alone, to find which it is."""

    def __init__(self, target: BlockingTarget) -> None:
        self._checked: Final = target
        self._sending: Final = threading.Lock()

    @abstractmethod
    def send_together(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        """Send events in order. Stop where they aren't wanted any more: the batch comes again."""

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        cancelled = threading.Event()
        try:
            await asyncio.to_thread(self._send, [each.event for each in batch], lambda: not cancelled.is_set())
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def check(self) -> AsyncIterator[CheckResult]:
        try:
            for result in await asyncio.to_thread(lambda: list(self._checked.check())):
                yield result
        except HeadwaterError as e:
            yield CheckResult.error("target", str(e))

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._sending:
            self._checked.close()

    def _send(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        with self._sending:
            if not is_wanted():  # it was cancelled while it waited for the batch before
                return
            try:
                self.send_together(events, is_wanted)
            except RefusedContentError as e:
                refused = {0: str(e)} if len(events) == 1 else self._send_alone(events, is_wanted)
                if refused:
                    raise RefusedEventsError(refused) from e

    def _send_alone(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> dict[int, str]:
        reasons = {index: self._refusal(event, is_wanted) for index, event in enumerate(events)}
        return {index: reason for index, reason in reasons.items() if reason is not None}

    def _refusal(self, event: Event, is_wanted: Callable[[], bool]) -> str | None:
        """Send one event, and return why it is refused."""
        try:
            self.send_together([event], is_wanted)
        except RefusedContentError as e:
            return str(e)
        return None
