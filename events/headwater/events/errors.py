"""What can be wrong with bytes that should be an event, and with an event that should become bytes."""

from __future__ import annotations

from enum import Enum
from typing import Final

from headwater.errors import TerminalError


class Problem(str, Enum):
    """Why bytes aren't an event, for metrics and dead letters."""

    EMPTY = "empty"
    TOO_LARGE = "too large"
    UNKNOWN_FRAMING = "unknown framing"
    MALFORMED = "malformed"
    TRAILING_BYTES = "trailing bytes"
    INVALID = "invalid"
    BAD_SCHEMA = "bad schema"


MAX_WORDS: Final = 2_000


class DecodeError(TerminalError):
    """These bytes, or this text, are no event: `problem` says why, `offset` where.

    The message stays short, whatever the bytes hold.

    >>> str(DecodeError(Problem.EMPTY, "there are none"))
    "empty: these bytes can't be read as an event: there are none (at byte 0)"
    """

    def __init__(self, problem: Problem, message: str, *, offset: int = 0, kind: str | None = None) -> None:
        if len(message) > MAX_WORDS:  # libraries put whole schemas and values into theirs
            message = f"{message[:MAX_WORDS]}…"
        what = f"a {kind}" if kind else "an event"
        super().__init__(f"{problem.value}: these bytes can't be read as {what}: {message} (at byte {offset})")
        self.problem = problem
        self.offset = offset
        self.kind = kind


class EncodeError(TerminalError):
    """This event can't be written.

    >>> from headwater.events import Heartbeat, encode
    >>> encode(Heartbeat())
    Traceback (most recent call last):
    headwater.events.errors.EncodeError: this Heartbeat has no place in an order yet: let a Producer stamp it
    """


class EventTooLargeError(EncodeError):
    """This event takes more bytes than are allowed. A Producer leaves out what an event can do without."""
