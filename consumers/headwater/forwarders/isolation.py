"""Finds the events of a batch that a target fails on, while it takes others.

It is because of the event only if it fails between two that the target takes: a target can be away for a while and
come back. Where no other comes behind it, one that the target has already is sent again, which changes nothing there.
Only an event of which a message is really sent shows anything: many kinds become no message at all, and those
"arrive" at a target that is away, too. An answer that asks to wait says nothing about the event either.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from headwater.errors import TransientError
from headwater.events.redaction import redact
from headwater.forwarders.api import BusEvent
from headwater.lineage.bulk import DeadLetterReason

_ALONE: Final = 3
"""So often an event is tried alone, before it is one that the target fails on."""
_PROBES: Final = 10
"""So many events are tried alone to see whether the target takes any."""


class UnsentEvent:
    """An event that the target will never have, with the reason."""

    def __init__(self, event: BusEvent, reason: DeadLetterReason, error: str) -> None:
        self.event: Final = event
        self.reason: Final = reason
        self.error: Final = str(redact(error))


@dataclass
class DeliveryResult:
    """What became of events that the target doesn't have."""

    unsent: list[UnsentEvent] = field(default_factory=list)
    """It will never have these."""
    postponed: list[BusEvent] = field(default_factory=list)
    """It failed on these, or on one of their key, and nobody knows yet whether that is because of them: send them again
    together with the next ones."""


class Attempt(NamedTuple):
    """What became of an event that was sent once, alone."""

    unsent: Sequence[UnsentEvent] = ()
    error: TransientError | None = None
    is_taken: bool = False
    """Whether the target has it. It isn't sent, for example, where another process reads its partition now."""


Taker: TypeAlias = Callable[[BusEvent], Awaitable[Attempt]]
Waiter: TypeAlias = Callable[[TransientError], Awaitable[None]]
MessageTest: TypeAlias = Callable[[BusEvent], bool]
"""Returns whether a message is sent for an event."""


class EventIsolation:
    """Sends the events of a batch one by one, to find those that the target fails on while it takes others."""

    def __init__(self, take: Taker, wait: Waiter, has_message: MessageTest, taken: Sequence[BusEvent] = ()) -> None:
        """`taken` are events that the target took before these, the newest last."""
        self._taken = [each for each in taken if has_message(each)][-1:]
        self._take = take
        self._wait = wait
        self._has_message = has_message
        self._result = DeliveryResult()
        self._done: set[int] = set()
        """The events, by `id`, that the target has or refused."""

    async def probe(self, events: Sequence[BusEvent]) -> bool:
        """Return whether the target takes any of some events, each of which is the first of its key."""
        firsts = {_key_of(event): event for event in reversed(events)}.values()
        sent = [first for first in firsts if self._has_message(first)]
        for each in random.sample(sent, min(_PROBES, len(sent))):
            if await self._try(each) is None:
                return True
        return False

    async def send(self, events: Sequence[BusEvent]) -> DeliveryResult:
        """Send all, in order. One that fails is a dead letter once another one was taken after it."""
        failed: dict[int, tuple[BusEvent, TransientError]] = {}
        blocked: set[object] = set()
        for event in events:
            if id(event) in self._done or _key_of(event) in blocked:
                continue
            error = await self._try_some_times(event)
            if error is None:
                if self._taken == [event]:
                    await self._give_up(failed)
                continue
            blocked.add(_key_of(event))
            if not asks_to_wait(error):
                failed[id(event)] = event, error
        if failed and self._taken and await self._takes_again():
            await self._give_up(failed)
        self._result.postponed = [event for event in events if id(event) not in self._done]
        return self._result

    async def _give_up(self, failed: dict[int, tuple[BusEvent, TransientError]]) -> None:
        """Make dead letters of events that fail between two that the target takes. One was taken just now; before that
        the target may have been away."""
        for number, (event, _) in list(failed.items()):
            error = await self._try(event)
            if error is None:
                del failed[number]
            elif not asks_to_wait(error) and await self._takes_again():
                words = f"it failed {_ALONE + 1} times alone, while the target took others: {error}"
                self._result.unsent.append(UnsentEvent(event, DeadLetterReason.STUCK, words))
                self._done.add(number)
                del failed[number]

    async def _try_some_times(self, event: BusEvent) -> TransientError | None:
        error: TransientError | None = None
        for _ in range(_ALONE):
            error = await self._try(event)
            if error is None or asks_to_wait(error):
                break
        return error

    async def _takes_again(self) -> bool:
        """Send once more what the target took last."""
        return (await self._send_once(self._taken[-1])).is_taken

    async def _send_once(self, event: BusEvent) -> Attempt:
        """Wait after a failure, whatever comes next: a target that is overloaded isn't asked for each event in turn."""
        attempt = await self._take(event)
        if attempt.error is not None:
            await self._wait(attempt.error)
        return attempt

    async def _try(self, event: BusEvent) -> TransientError | None:
        attempt = await self._send_once(event)
        if attempt.error is None:
            self._result.unsent += attempt.unsent
            self._done.add(id(event))
        if attempt.is_taken and self._has_message(event):
            self._taken = [event]
        return attempt.error


def _key_of(event: BusEvent) -> object:
    return event.record.partition, event.record.key


def asks_to_wait(error: BaseException) -> bool:
    """Return whether an error is an answer that asks to come again later."""
    return getattr(error, "retry_after", None) is not None or bool(getattr(error, "is_overload", False))
