"""Iterators that wait for a database, for an event loop that doesn't."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_FIRST, _MOST = 16, 1024
"""How many come at once: few, so that the first ones are there soon, then more."""
_GROWTH: Final = 4


async def streamed(start: Callable[[], Iterator[T]]) -> AsyncGenerator[T]:
    """What an iterator gives, fetched in portions on threads. Closed early (`contextlib.aclosing`), or cancelled, it
    closes the iterator, whatever a thread is just doing with it."""
    source, size = _Source(start), _FIRST
    try:
        while portion := await asyncio.to_thread(source.take, size):
            size = min(size * _GROWTH, _MOST)
            for each in portion:
                yield each
    finally:
        await asyncio.shield(asyncio.to_thread(source.close))


class _Source(Generic[T]):
    """An iterator that one thread at a time uses; a thread that comes after it was closed begins nothing."""

    def __init__(self, start: Callable[[], Iterator[T]]) -> None:
        self._start = start
        self._rows: Iterator[T] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def take(self, count: int) -> list[T]:
        with self._lock:
            if self._is_closed:
                return []
            if self._rows is None:
                self._rows = self._start()
            return list(islice(self._rows, count))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            close = getattr(self._rows, "close", None)
            if close is not None:
                close()
