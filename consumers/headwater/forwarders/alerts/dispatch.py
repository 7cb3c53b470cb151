"""Brings alerts from the outbox to their destinations, each at its own pace: one that is away delays no other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from headwater.errors import HeadwaterError, TerminalError
from headwater.events.redaction import redact
from headwater.forwarders.alerts.destinations import Destination
from headwater.forwarders.alerts.store import AlertStore, OutboxMessage
from headwater.forwarders.http_responses import RefusedContentError

_LOG: Final = logging.getLogger(__name__)
_SHORTEST: Final = 1.0
_LONGEST: Final = 300.0
_SHORTEST_TERMINAL: Final = 60.0
_LONGEST_TERMINAL: Final = 600.0


class Dispatcher:
    """Delivers the alerts of one destination, in order."""

    def __init__(
        self, name: str, destination: Destination, store: AlertStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name: Final = name
        self.destination: Final = destination
        self.error: str | None = None
        """Why it waits, if it does."""
        self._store = store
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._due_at = 0.0
        self._wait = 0.0

    def start(self) -> None:
        """Deliver what there is in a task of its own, unless it does so already, or waits after a failure."""
        if (self._task is None or self._task.done()) and self._clock() >= self._due_at:
            self._task = asyncio.get_running_loop().create_task(self._deliver())

    async def settle(self) -> None:
        """Wait until it has delivered what it could."""
        if self._task is not None:
            await self._task

    async def close(self, timeout: float) -> None:
        """Let it finish; what it can't deliver in that time is delivered by the next process."""
        if self._task is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._task, timeout)
        await self.destination.close()

    async def _deliver(self) -> None:
        try:
            await self._deliver_all()
        except Exception as e:  # noqa: BLE001 - a fault here must not end the forwarder
            self._delay(e, _SHORTEST_TERMINAL, _LONGEST_TERMINAL)
            _LOG.exception("alerts for %s can't be delivered", self.name)

    async def _deliver_all(self) -> None:
        while messages := self._store.messages(self.name):
            for each in messages:
                if not await self._send(each):
                    return
        self.error = None

    async def _send(self, message: OutboxMessage) -> bool:
        """Return whether the next may be sent."""
        try:
            await self.destination.send(message.body)
        except RefusedContentError as e:
            _LOG.error("%s refuses an alert: %s", self.name, redact(str(e)))
            self._store.settle_message(message.id, str(redact(str(e))))
            return True
        except HeadwaterError as e:
            if isinstance(e, TerminalError):
                self._delay(e, _SHORTEST_TERMINAL, _LONGEST_TERMINAL)
            else:
                self._delay(e, _SHORTEST, _LONGEST)
            return False
        self._store.settle_message(message.id)
        self._wait = 0.0
        return True

    def _delay(self, error: Exception, shortest: float, longest: float) -> None:
        self._wait = min(max(2 * self._wait, shortest), longest)
        asked = getattr(error, "retry_after", None)
        self._due_at = self._clock() + max(self._wait, min(asked or 0.0, longest))
        self.error = f"alerts wait for {self.name}: {redact(str(error) or type(error).__name__)}"
