"""Logs what librdkafka reports, without repetitions: it reports every attempt to connect."""

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


class RepeatFilter:
    """Recognizes messages that were logged recently. Numbers in them, such as durations, make no difference."""

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


class LibrdkafkaLogger:
    """The `logger` of a client. librdkafka calls it while the client is polled, on that thread."""

    def __init__(self, once: RepeatFilter | None = None) -> None:
        self._once = once or RepeatFilter()

    def log(self, level: int, text: str, *arguments: object) -> None:
        line = text % arguments
        shown = level if self._once.is_new(line) else logging.DEBUG
        if _LOG.isEnabledFor(shown):
            _LOG.log(shown, "%s", redact(line))
