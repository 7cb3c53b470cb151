"""What librdkafka says of itself goes the way of all other lines, and isn't said over and over: it tells each attempt
to connect, twenty times a second while something is asked of a broker that is away.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final

from headwater.events.redaction import redact

_LOG: Final = logging.getLogger(__name__)
_AGAIN_SECONDS: Final = 600.0
_MOST: Final = 1_000
_NUMBERS: Final = re.compile(r"\d+")


class Once:
    """What was said lately needn't be said; how long something took makes no difference."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}

    def is_new(self, text: str) -> bool:
        now, about = self._clock(), _NUMBERS.sub("0", text)
        if now - self._said.get(about, -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return False
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said[about] = now
        return True


class Lines:
    """The `logger` of a client. It is called while the client is polled, on the thread that polls; what nobody polls
    keeps its lines."""

    def __init__(self, once: Once | None = None) -> None:
        self._once = once or Once()

    def log(self, level: int, text: str, *arguments: object) -> None:
        line = text % arguments
        shown = level if self._once.is_new(line) else logging.DEBUG
        if _LOG.isEnabledFor(shown):
            _LOG.log(shown, "%s", redact(line))
