"""Iterate in an event loop over an iterator that blocks, such as the rows of a query."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_FIRST_PORTION, _LARGEST_PORTION = 16, 1024
"""The first portion is small, so that the first rows come soon."""
_GROWTH: Final = 4


async def iterate_in_thread(start: Callable[[], Iterator[T]]) -> AsyncGenerator[T]:
    """Yield what the iterator yields, fetched in portions on worker threads.

    Closing the generator early (`contextlib.aclosing`), or cancelling it, closes the iterator too, even while a thread
    is fetching from it.
    """
    source, size = _PortionReader(start), _FIRST_PORTION
    try:
        while portion := await asyncio.to_thread(source.take, size):
            size = min(size * _GROWTH, _LARGEST_PORTION)
            for each in portion:
                yield each
    finally:
        await asyncio.shield(asyncio.to_thread(source.close))


class _PortionReader(Generic[T]):
    """Reads an iterator for one thread at a time. Once closed it starts nothing more."""

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
