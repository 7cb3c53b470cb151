"""What an answer over HTTP means for the events that were sent: they arrived, come again later, or never can.

All forwarders that speak HTTP judge by this, so that they retry alike.
"""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Final

from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import redacted_excerpt

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


def _excerpt(body: str) -> str:
    words = redacted_excerpt(body, _EXCERPT)
    return f" ({words})" if words else ""
