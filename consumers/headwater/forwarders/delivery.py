"""Sends events to a target until it has them: retries by class of error, and finds the events that can't be sent.

A target that answers one event with an error that looks temporary, for ever, would stop all that come behind it. So
when a batch has failed for a while its events are tried one by one: one that fails while the target takes others is a
dead letter. Events of its key wait for that, so that their order stays. It needs a forwarder with a preview, which says
of which events anything is sent.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from headwater.errors import TerminalError, TransientError
from headwater.events.redaction import redact
from headwater.forwarders.api import BusEvent, Forwarder, PreviewableForwarder, RefusedEventsError
from headwater.forwarders.http_delivery import LONGEST_RETRY_AFTER
from headwater.forwarders.isolation import Attempt, DeliveryResult, EventIsolation, UnsentEvent, asks_to_wait
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.lineage.bulk import DeadLetterReason

_LOG: Final = logging.getLogger(__name__)
MOST_FAULTS: Final = 100
"""After so many events in a row that the forwarder fails on, the fault isn't in the events."""
_MOST_FAILURES: Final = 3
"""After so many failures in a row a retry of dead letters is left for later."""
_TARGET: Final = "the target"


@dataclass(frozen=True)
class Waits:
    """How long to wait before the same events are sent again, in seconds; each time twice as long."""

    shortest: float = 0.1
    longest: float = 30.0
    shortest_terminal: float = 60.0
    """Where somebody has to change something."""
    longest_terminal: float = 600.0


class _TargetAwayError(TransientError):
    """The target is away, busy or slow."""

    def __init__(self, message: str, cause: BaseException) -> None:
        super().__init__(message)
        self.retry_after: Final[float | None] = getattr(cause, "retry_after", None)
        self.is_overload: Final = asks_to_wait(cause)


class _ForwarderFault(Exception):  # noqa: N818 - it isn't seen outside
    """The forwarder raised what is neither a TransientError nor a TerminalError."""


Selector: TypeAlias = Callable[[Sequence[BusEvent]], Sequence[BusEvent]]
Pause: TypeAlias = Callable[[float], Awaitable[None]]


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
        isolate_after: float | None = None,
    ) -> None:
        """`pause` waits, or raises an error that ends the delivery. After each wait `still_wanted` is asked which
        events are to be sent: others may have taken some over. A batch that has failed for `isolate_after` seconds is
        tried event by event; None means never."""
        self._forwarder = forwarder
        self._metrics = metrics
        self._timeout = timeout
        self._pause = pause
        self._still_wanted = still_wanted
        self._waits = waits or Waits()
        self._most_faults = most_faults
        self._isolate_after = isolate_after
        self._faults = 0
        self._transient = self._waits.shortest
        self._taken: Sequence[BusEvent] = ()
        """The events of the last call that the target took."""

    async def send(self, events: Sequence[BusEvent], *, has_postponed: bool = False) -> DeliveryResult:
        """Return when the target has all events but those that are returned. With `has_postponed` some of them were
        postponed before."""
        try:
            result = await self._send_together(events, is_suspect=has_postponed)
        except _ForwarderFault:
            result = DeliveryResult()
        else:
            self._faults = 0
            return result
        for index, event in enumerate(events):
            alone = await self._send_alone(event)
            result.unsent += alone.unsent
            if alone.postponed:  # the target isn't well: the rest waits for it, in order
                result.postponed = list(events[index:])
                break
        return result

    async def try_once(self, events: Sequence[BusEvent]) -> tuple[DeliveryResult, bool]:
        """Send events once, together, else one by one until it fails on several in a row. Return also whether the
        target took any, which says whether those that are postponed failed because of themselves."""
        try:
            return DeliveryResult(await self._call(events)), True
        except (TransientError, TerminalError, _ForwarderFault):
            result, taken, failures = DeliveryResult(), False, 0
        for index, each in enumerate(events):
            attempt = await self._try_to_take(each)
            result.unsent += attempt.unsent
            failures = 0 if attempt.error is None else failures + 1
            if attempt.error is not None:
                result.postponed.append(each)
            taken = taken or (attempt.is_taken and self._has_message(each))
            if failures == _MOST_FAILURES:
                result.postponed += events[index + 1 :]
                break
        return result, taken

    async def _send_alone(self, event: BusEvent) -> DeliveryResult:
        """Send one event. If the forwarder fails on it, and on so many others, wait instead of giving it up."""
        wait = self._waits.shortest_terminal
        while True:
            result, fault = await self._try_alone(event)
            if not fault:
                self._faults = 0
                return result
            self._faults += 1
            if self._faults <= self._most_faults:
                return DeliveryResult([UnsentEvent(event, DeadLetterReason.FAULT, fault)])
            self._record_wait(f"it failed on {self._most_faults} events in a row, so the fault isn't theirs: {fault}")
            wait = await self._wait(wait, self._waits.longest_terminal)

    async def _try_alone(self, event: BusEvent) -> tuple[DeliveryResult, str]:
        """Return what the target refused, and how the forwarder failed."""
        try:
            return await self._send_together([event]), ""
        except _ForwarderFault as e:
            return DeliveryResult(), str(e)

    async def _send_together(self, events: Sequence[BusEvent], *, is_suspect: bool = False) -> DeliveryResult:
        """Try until the target has the events, refuses some, or takes others than these. Raise a fault of the
        forwarder."""
        terminal, began = self._waits.shortest_terminal, time.monotonic()
        isolate_at = began if is_suspect else self._isolation_time(began)
        has_waited = False
        while events := self._still_wanted(events):
            try:
                unsent = await self._call(events)
            except TransientError as e:
                await self._wait_on(e)
                if time.monotonic() >= isolate_at:
                    result = await self._isolate(events)
                    if result is not None:
                        return result
                    isolate_at = 2 * time.monotonic() - began + self._waits.longest
            except TerminalError as e:
                self._record_wait(f"{e}; somebody has to change that")
                terminal = await self._wait(terminal, self._waits.longest_terminal)
            else:
                if has_waited:
                    _LOG.warning("the target of %s is back after %.0f s", self._metrics.name, time.monotonic() - began)
                return DeliveryResult(unsent)
            has_waited = True
        self._metrics.waiting_for = None
        return DeliveryResult()

    def _isolation_time(self, began: float) -> float:
        return float("inf") if self._isolate_after is None else began + self._isolate_after

    async def _call(self, events: Sequence[BusEvent]) -> list[UnsentEvent]:
        """Call the forwarder once, and return what was refused. Whatever looks temporary is a TransientError."""
        self._metrics.beat()
        try:
            await asyncio.wait_for(self._forwarder.handle(events), self._timeout)
        except RefusedEventsError as e:
            return self._refused(events, e)
        except (TransientError, OSError, asyncio.TimeoutError, MemoryError) as e:
            self._record_wait(self._words(e))
            raise _TargetAwayError(self._words(e), e) from e
        except TerminalError:
            raise
        except Exception as e:
            self._metrics.waits_by["fault"] += 1
            words = f"{type(e).__name__}: {e}"
            self._metrics.record_error(str(redact(words)))
            _LOG.warning("%s failed on events", self._metrics.name, exc_info=e)
            raise _ForwarderFault(words) from e
        self._transient = self._waits.shortest
        self._taken = events
        self._metrics.waiting_for = None
        self._metrics.record_sent(len(events))
        return []

    async def _isolate(self, events: Sequence[BusEvent]) -> DeliveryResult | None:
        """Try events alone. Return None if the target takes none of them: then it isn't because of one."""
        if not isinstance(self._forwarder, PreviewableForwarder):
            return None
        isolation = EventIsolation(self._try_to_take, self._wait_on, self._has_message, self._taken)
        if len(events) > 1 and not await isolation.probe(events):
            return None
        result = await isolation.send(events)
        for each in result.unsent:
            _LOG.warning("%s: the target takes other events, and fails on one", self._metrics.name)
            self._metrics.record_error(each.error)
        self._metrics.waiting_for = None
        return result

    async def _try_to_take(self, event: BusEvent) -> Attempt:
        """Send one event once."""
        if not self._still_wanted([event]):
            return Attempt()
        try:
            unsent = await self._call([event])
        except TransientError as e:
            return Attempt(error=e)
        except _ForwarderFault as e:
            return Attempt([UnsentEvent(event, DeadLetterReason.FAULT, str(e))])
        except TerminalError as e:
            return Attempt(error=_TargetAwayError(str(e), e))
        return Attempt(unsent, is_taken=not unsent)

    def _has_message(self, event: BusEvent) -> bool:
        """Return whether the forwarder sends anything for the event, as its preview says."""
        if not isinstance(self._forwarder, PreviewableForwarder):
            return False
        try:
            return next(iter(self._forwarder.preview(event.event)), None) is not None
        except Exception:  # noqa: BLE001 - a plug-in can fail in any way
            return False

    async def _wait_on(self, error: TransientError) -> None:
        self._transient = await self._wait(_retry_after(error) or self._transient, self._waits.longest)

    def _refused(self, events: Sequence[BusEvent], error: RefusedEventsError) -> list[UnsentEvent]:
        """Tell the refused events from the others, which the target has."""
        self._metrics.waiting_for = None
        wrong = [index for index in error.reasons if not 0 <= index < len(events)]
        if wrong or not error.reasons:
            raise _ForwarderFault(f"it refused events {wrong} of a batch of {len(events)}")
        self._metrics.waits_by["refused"] += 1
        self._metrics.record_error(str(redact(str(error))))
        self._metrics.record_sent(len(events) - len(error.reasons))
        return [
            UnsentEvent(events[index], DeadLetterReason.REFUSED, why) for index, why in sorted(error.reasons.items())
        ]

    def _words(self, error: BaseException) -> str:
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


def _retry_after(error: BaseException) -> float | None:
    asked: float | None = getattr(error, "retry_after", None)
    return None if asked is None else min(asked, LONGEST_RETRY_AFTER)
