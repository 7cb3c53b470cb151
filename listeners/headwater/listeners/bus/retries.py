"""What retries need: growing pauses, and a log that writes a repeated message once."""

from __future__ import annotations


class OnceLogger:
    """Of one kind of trouble: for one thread."""

    def __init__(self) -> None:
        self._last: str | None = None

    def is_new(self, words: str) -> bool:
        """Whether this isn't what was said last."""
        is_new_text = words != self._last
        self._last = words
        return is_new_text

    def reset(self) -> None:
        """The trouble is over: when it comes again that is news."""
        self._last = None


class Backoff:
    """How long to wait before the next try."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def next(self) -> float:
        """Seconds: twice those before, up to the longest."""
        pause, self._next = self._next, min(2 * self._next, self._longest)
        return pause

    def reset(self) -> None:
        self._next = self._first
