"""Pauses that grow."""

from __future__ import annotations


class Pauses:
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
