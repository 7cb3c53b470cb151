"""A log that says a thing once, however often it comes."""

from __future__ import annotations


class News:
    """Of one kind of trouble: for one thread."""

    def __init__(self) -> None:
        self._last: str | None = None

    def is_news(self, words: str) -> bool:
        """Whether this isn't what was said last."""
        is_news = words != self._last
        self._last = words
        return is_news

    def over(self) -> None:
        """The trouble is over: when it comes again that is news."""
        self._last = None
