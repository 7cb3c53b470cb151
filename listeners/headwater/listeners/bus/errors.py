"""What goes wrong with a listener: what it raises, and what it tells itself while it goes on. Counted by cause."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

_LOG = logging.getLogger(__name__)
_LONGEST_DETAIL: Final = 500
_LONGEST_CAUSE: Final = 64
_CAUSES: Final = 50
OTHER: Final = "other"
"""Stands for all causes beyond the first fifty: who makes them up as he goes fills neither memory nor a dashboard."""
_SAID: Final = 20
_QUIET: Final = 60.0
_NUMBERS: Final = re.compile(r"\d+")


class Errors:
    """Of one listener, over all its instances. Any thread may call, a callback of a client's library too."""

    def __init__(self, listener: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.last = ""
        """The last one, in one line."""
        self._listener = listener
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._is_present = False
        self._is_said = False
        self._said: dict[str, float] = {}

    @property
    def is_present(self) -> bool:
        """Whether the listener told of trouble, and hasn't got on since."""
        return self._is_present

    @property
    def counts(self) -> Mapping[str, int]:
        """How often, by cause: as told, or the type of what was raised."""
        with self._lock:
            return dict(self._counts)

    def raised(self, error: BaseException) -> None:
        """The listener raised it, or it came up on its behalf."""
        with self._lock:
            self._count(type(error).__name__)
            self.last = words_of(error)

    def told(self, cause: str, detail: str) -> None:
        """The listener tells of trouble that it goes on after by itself. It is logged where nothing like it was since
        all was well; numbers in it make no difference, and neither does trouble that comes and goes within a minute."""
        cause, detail = _line(cause)[:_LONGEST_CAUSE], _line(detail)[:_LONGEST_DETAIL]
        with self._lock:
            self._count(cause)
            self.last = f"{cause}: {detail}"
            if not self._is_present:
                self._begin()
            is_news = self._is_news(f"{cause}: {_NUMBERS.sub('', detail)}")
            self._is_said = self._is_said or is_news
        if is_news:
            _LOG.warning("listener %s has trouble, and goes on by itself: %s: %s", self._listener, cause, detail)

    def over(self) -> bool:
        """The listener got on; whether the log is to say so, because it said what the trouble was."""
        if not self._is_present:
            return False
        with self._lock:
            is_said, self._is_said, self._is_present = self._is_said, False, False
        return is_said

    def _count(self, cause: str) -> None:
        known = cause in self._counts or len(self._counts) < _CAUSES
        self._counts[cause if known else OTHER] += 1

    def _begin(self) -> None:
        """Trouble, where there was none: what was said a while ago may be said again."""
        self._is_present = True
        recent = self._clock() - _QUIET
        self._said = {words: when for words, when in self._said.items() if when > recent}

    def _is_news(self, words: str) -> bool:
        if words in self._said or len(self._said) >= _SAID:
            return False
        self._said[words] = self._clock()
        return True


def words_of(error: BaseException) -> str:
    """One line."""
    return _line(f"{type(error).__name__}: {error}")[:_LONGEST_DETAIL]


def _line(text: str) -> str:
    return " ".join(str(text).split())
