"""Sends events to a target until it has them: retries by class of error, and finds the events that can't be sent."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.errors import TerminalError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.api import BusEvent, Forwarder, RefusedEventsError
from headwater.forwarders.dead_letters import LetterReason
from headwater.forwarders.metrics import ForwarderMetrics

_LOG: Final = logging.getLogger(__name__)
MOST_FAULTS: Final = 100
"""After so many events in a row that the forwarder fails on, the fault isn't in the events."""
_TARGET: Final = "the target"


@dataclass(frozen=True)
class Waits:
    """How long to wait before the same events are sent again, in seconds; each time twice as long."""

    shortest: float = 0.1
    longest: float = 30.0
    shortest_terminal: float = 60.0
    """Where somebody has to change something."""
    longest_terminal: float = 600.0


class UnsentEvent:
    """An event that the target will never have, with the reason."""

    def __init__(self, event: BusEvent, reason: LetterReason, error: str) -> None:
        self.event: Final = event
        self.reason: Final = reason
        self.error: Final = str(redact(error))


class _ForwarderFault(Exception):  # noqa: N818 - it isn't seen outside
    """The forwarder raised what is neither a TransientError nor a TerminalError."""


Selector = Callable[[Sequence[BusEvent]], Sequence[BusEvent]]
Pause = Callable[[float], Awaitable[None]]


class BatchDelivery:
    """Sends events for one forwarder, one batch at a time."""

    def __init__(
        self,
        forwarder: Forwarder,
        metrics: ForwarderMetrics,
        *,
        timeout: float,
        pause: Pause,
        still_wanted: Selector,
        waits: Waits | None = None,
        most_faults: int = MOST_FAULTS,
    ) -> None:
        """`pause` waits, or raises an error that ends the delivery. After each wait `still_wanted` is asked which
        events are to be sent: others may have taken some over."""
        self._forwarder = forwarder
        self._metrics = metrics
        self._timeout = timeout
        self._pause = pause
        self._still_wanted = still_wanted
        self._waits = waits or Waits()
        self._most_faults = most_faults
        self._faults = 0

    async def send(self, events: Sequence[BusEvent]) -> list[UnsentEvent]:
        """Return when the target has all events but those that are returned."""
        try:
            unsent = await self._send_together(events)
        except _ForwarderFault:
            unsent = []
        else:
            self._faults = 0
            return unsent
        for event in events:
            unsent += await self._send_alone(event)
        return unsent

    async def _send_alone(self, event: BusEvent) -> list[UnsentEvent]:
        """Send one event. If the forwarder fails on it, and on so many others, wait instead of giving it up."""
        wait = self._waits.shortest_terminal
        while True:
            unsent, fault = await self._try_alone(event)
            if not fault:
                self._faults = 0
                return unsent
            self._faults += 1
            if self._faults <= self._most_faults:
                return [UnsentEvent(event, LetterReason.FAULT, fault)]
            self._record_wait(f"it failed on {self._most_faults} events in a row, so the fault isn't theirs: {fault}")
            wait = await self._wait(wait, self._waits.longest_terminal)

    async def _try_alone(self, event: BusEvent) -> tuple[list[UnsentEvent], str]:
        """Return what the target refused, and how the forwarder failed."""
        try:
            return await self._send_together([event]), ""
        except _ForwarderFault as e:
            return [], str(e)

    async def _send_together(self, events: Sequence[BusEvent]) -> list[UnsentEvent]:
        """Try until the target has the events, or refuses some. Raise a fault of the forwarder."""
        transient, terminal, began = self._waits.shortest, self._waits.shortest_terminal, time.monotonic()
        has_waited = False
        while events := self._still_wanted(events):
            self._metrics.beat()
            try:
                await asyncio.wait_for(self._forwarder.handle(events), self._timeout)
            except RefusedEventsError as e:
                return self._refused(events, e)
            except (TransientError, OSError, asyncio.TimeoutError, MemoryError) as e:
                self._record_wait(self._words(e))
                asked = getattr(e, "retry_after", None)
                transient = await self._wait(asked or transient, self._waits.longest)
            except TerminalError as e:
                self._record_wait(f"{e}; somebody has to change that")
                terminal = await self._wait(terminal, self._waits.longest_terminal)
            except Exception as e:
                self._metrics.waits_by["fault"] += 1
                words = f"{type(e).__name__}: {e}"
                self._metrics.record_error(str(redact(words)))
                _LOG.warning("%s failed on events", self._metrics.name, exc_info=e)
                raise _ForwarderFault(words) from e
            else:
                self._metrics.record_sent(len(events))
                break
            has_waited = True
        self._metrics.waiting_for = None
        if has_waited:
            _LOG.warning("the target of %s is back after %.0f s", self._metrics.name, time.monotonic() - began)
        return []

    def _refused(self, events: Sequence[BusEvent], error: RefusedEventsError) -> list[UnsentEvent]:
        """Tell the refused events from the others, which the target has."""
        self._metrics.waiting_for = None
        wrong = [index for index in error.reasons if not 0 <= index < len(events)]
        if wrong or not error.reasons:
            raise _ForwarderFault(f"it refused events {wrong} of a batch of {len(events)}")
        self._metrics.waits_by["refused"] += 1
        self._metrics.record_error(str(redact(str(error))))
        self._metrics.record_sent(len(events) - len(error.reasons))
        return [UnsentEvent(events[index], LetterReason.REFUSED, why) for index, why in sorted(error.reasons.items())]

    def _words(self, error: Exception) -> str:
        if isinstance(error, asyncio.TimeoutError) and not str(error):
            return f"no answer within {self._timeout:g} s"
        return str(error) or type(error).__name__

    def _record_wait(self, words: str) -> None:
        before, safe = self._metrics.waiting_for, str(redact(words))
        self._metrics.record_wait(_TARGET, safe)
        if self._metrics.waiting_for != before:
            _LOG.warning("%s waits for its target: %s", self._metrics.name, safe)

    async def _wait(self, seconds: float, longest: float) -> float:
        """Wait, and return how long to wait the next time."""
        await self._pause(seconds * random.uniform(0.5, 1))  # noqa: S311 - no secret
        return min(2 * seconds, longest)
