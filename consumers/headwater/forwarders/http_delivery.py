"""Delivers events by calls that block, as those of HTTP clients do: in a thread, so that others go on meanwhile.

What an answer over HTTP means for the events that were sent: they arrived, come again later, or never can. All
forwarders that speak HTTP judge by this, so that they retry alike.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Final, Protocol, TypeVar

from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events import Event
from headwater.events.redaction import redacted_excerpt
from headwater.forwarders.api import BusEvent, RefusedEventsError
from headwater.spi import CheckResult

R_ = TypeVar("R_")

_EXCERPT: Final = 300
_REFUSED: Final = {400, 413, 422}
_BUSY: Final = {408, 425, 429}
_OVERLOAD: Final = {*_BUSY, 503}
_NEVER: Final = {501, 505}
"""Errors of a server that don't pass by themselves."""
_ADVICE: Final = {
    401: "give it valid credentials",
    403: "give this user the right to write",
    404: "correct the URL: there is nothing at this path",
    405: "correct the URL: this path takes no such request",
    407: "give the proxy valid credentials",
    410: "correct the URL: there is nothing any more at this path",
    415: "correct the URL: this path takes other content",
}


LONGEST_RETRY_AFTER: Final = 600.0
"""No target is left alone for longer than these seconds, whatever it asks for."""


class BusyTargetError(TransientError):
    """The target is busy or away; `retry_after` is for how many seconds it is left alone, or None."""

    def __init__(self, message: str, retry_after: float | None = None, *, is_overload: bool = False) -> None:
        """`is_overload` says that the answer asks to come again, and so says nothing about what was sent.

        A `retry_after` of more than LONGEST_RETRY_AFTER is cut to that, and the message says so.
        """
        if retry_after is not None and retry_after > LONGEST_RETRY_AFTER:
            message += f" and asks to be left alone for {retry_after:,.0f} s: it is tried again within 10 minutes"
            retry_after = LONGEST_RETRY_AFTER
        super().__init__(message)
        self.retry_after: Final = retry_after
        self.is_overload: Final = is_overload


class RefusedContentError(TerminalError):
    """The target refuses what is in a message: the same one will never be accepted."""


def response_error(
    target: str, status: int, *, retry_after: str | None = None, body: str = "", now: datetime | None = None
) -> HeadwaterError | None:
    """Return the error that an answer is, None if the target has what was sent.

    `retry_after` is the header of that name, `body` what the server says. An answer that isn't 2xx is never taken for
    a success: a client that follows a redirect to a page for logging in gets 200 there.
    """
    if 200 <= status < 300:
        return None
    message = f"{target} answers {status}{_excerpt(body)}"
    if status in _REFUSED:
        return RefusedContentError(message)
    if status in _BUSY or (status >= 500 and status not in _NEVER):
        return BusyTargetError(message, seconds_to_wait(retry_after, now), is_overload=status in _OVERLOAD)
    if 300 <= status < 400:
        return TerminalError(f"{message}: correct the URL, redirects aren't followed")
    return TerminalError(f"{message}: {_ADVICE.get(status, 'ask who runs it')}")


def seconds_to_wait(retry_after: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None for anything else."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        until = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
        return max(0.0, (until - (now or datetime.now(timezone.utc))).total_seconds())
    except (ValueError, OverflowError):
        return None


def keep_authorization(request: R_) -> R_:
    """Let a request of requests have the header that it has, as `auth` of a session.

    Without an `auth` requests takes one out of ~/.netrc in its place.
    """
    return request


def _excerpt(body: str) -> str:
    words = redacted_excerpt(body, _EXCERPT)
    return f" ({words})" if words else ""


class BlockingTarget(Protocol):
    """What a forwarder sends to."""

    def check(self) -> Iterable[CheckResult]: ...

    def close(self) -> None: ...


class BlockingForwarder(ABC):
    """A forwarder whose target's calls block. It sends one batch at a time, in a thread."""

    def __init__(self, target: BlockingTarget) -> None:
        self._checked: Final = target
        self._sending: Final = threading.Lock()

    @abstractmethod
    def deliver(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> dict[int, str]:
        """Send events in order, and return why the target refuses some of them, by their places in the sequence.

        Stop where they aren't wanted any more: the batch comes again.
        """

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
            if refused := self.deliver(events, is_wanted):
                raise RefusedEventsError(refused)


class BatchForwarder(BlockingForwarder):
    """Sends a batch together. If it is refused, each of its events is sent alone, to find which it is."""

    @abstractmethod
    def send_together(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> None:
        """Send events in order. Stop where they aren't wanted any more: the batch comes again."""

    def deliver(self, events: Sequence[Event], is_wanted: Callable[[], bool]) -> dict[int, str]:
        try:
            self.send_together(events, is_wanted)
        except RefusedContentError as e:
            if len(events) == 1:
                return {0: str(e)}
            alone = [self.deliver([event], is_wanted) for event in events]
            return {index: refused[0] for index, refused in enumerate(alone) if refused}
        return {}
