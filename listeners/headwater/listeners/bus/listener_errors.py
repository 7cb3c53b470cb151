"""Errors of one listener by cause: exceptions it raised, and problems it reported while it went on."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from headwater.events.redaction import redacted_excerpt

_LOG = logging.getLogger(__name__)
_MAX_DETAIL_LENGTH: Final = 500
_MAX_CAUSE_LENGTH: Final = 64
_MAX_CAUSES: Final = 50
OTHER_CAUSES: Final = "other"
"""Stands for all causes beyond the first fifty: who makes them up as he goes fills neither memory nor a dashboard."""
_MAX_LOGGED: Final = 20
_REPEAT_SECONDS: Final = 60.0
_NUMBERS: Final = re.compile(r"\d+")


class ListenerErrors:
    """Counts errors of one listener across all its instances. Thread-safe, for callbacks of client libraries too."""

    def __init__(self, listener: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.last = ""
        """The last error, in one line."""
        self._listener = listener
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._is_failing = False
        self._is_logged = False
        self._logged: dict[str, float] = {}

    @property
    def is_failing(self) -> bool:
        """Whether the listener reported a problem and hasn't progressed since."""
        return self._is_failing

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts by cause: the reported cause, or the type of the exception."""
        with self._lock:
            return dict(self._counts)

    def record_exception(self, error: BaseException) -> None:
        """Count an exception that the listener raised or caused."""
        with self._lock:
            self._count(type(error).__name__)
            self.last = describe_error(error)

    def report_problem(self, cause: str, detail: str) -> None:
        """Count a problem that the listener recovers from by itself, and log it if it is new.

        It is new if nothing like it was logged since the listener last progressed. Numbers in the detail are ignored,
        and so are problems that come and go within a minute.
        """
        cause = redacted_excerpt(cause, _MAX_CAUSE_LENGTH)
        detail = redacted_excerpt(detail, _MAX_DETAIL_LENGTH)
        with self._lock:
            self._count(cause)
            self.last = f"{cause}: {detail}"
            if not self._is_failing:
                self._start_failing()
            is_new = self._is_new(f"{cause}: {_NUMBERS.sub('', detail)}")
            self._is_logged = self._is_logged or is_new
        if is_new:
            _LOG.warning("listener %s reported a problem and goes on: %s: %s", self._listener, cause, detail)

    def clear(self) -> bool:
        """Note that the listener progressed; return whether to log that, because the problem was logged."""
        if not self._is_failing:
            return False
        with self._lock:
            is_said, self._is_logged, self._is_failing = self._is_logged, False, False
        return is_said

    def _count(self, cause: str) -> None:
        known = cause in self._counts or len(self._counts) < _MAX_CAUSES
        self._counts[cause if known else OTHER_CAUSES] += 1

    def _start_failing(self) -> None:
        """Trouble, where there was none: what was said a while ago may be said again."""
        self._is_failing = True
        recent = self._clock() - _REPEAT_SECONDS
        self._logged = {words: when for words, when in self._logged.items() if when > recent}

    def _is_new(self, words: str) -> bool:
        if words in self._logged or len(self._logged) >= _MAX_LOGGED:
            return False
        self._logged[words] = self._clock()
        return True


def describe_error(error: BaseException) -> str:
    """One line."""
    return redacted_excerpt(f"{type(error).__name__}: {error}", _MAX_DETAIL_LENGTH)
