"""Retries with backoff: logs an outage once, and stops when the process is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from headwater.errors import TransientError

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)
_SHORTEST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 15.0


class StopRequested(Exception):  # noqa: N818 - no fault
    """The process was asked to stop while it waited for something to come back."""


class WaitMetrics(Protocol):
    """Where waits are recorded."""

    waiting_for: str | None

    def beat(self) -> None:
        """Record that the loop makes progress."""
        ...

    def record_wait(self, what: str, why: str) -> None:
        """Record that something isn't available."""
        ...


class Retrier:
    """Retries TransientErrors. Other errors are raised at once."""

    def __init__(self, metrics: WaitMetrics, stop: asyncio.Event) -> None:
        self._metrics = metrics
        self._stop = stop

    async def run(self, what: str, work: Callable[[], T]) -> T:
        """Run `work` on a thread until it succeeds, and return its result. `what` names what is waited for."""
        wait, before, began = _SHORTEST_WAIT, "", time.monotonic()
        while True:
            self._metrics.beat()
            try:
                done = await asyncio.to_thread(work)
            except TransientError as e:
                self._away(what, str(e), before)
                before = str(e)
            else:
                if before:
                    self._back(what, began)
                return done
            await self._pause(wait * random.uniform(0.5, 1))  # noqa: S311 - no secret
            wait = min(2 * wait, _LONGEST_WAIT)

    def _away(self, what: str, words: str, before: str) -> None:
        self._metrics.record_wait(what, words)
        if words != before:
            _LOG.warning("waiting for %s: %s", what, words)

    def _back(self, what: str, began: float) -> None:
        self._metrics.waiting_for = None
        _LOG.warning("%s is back after %.0f s", what, time.monotonic() - began)

    async def _pause(self, seconds: float) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
            raise StopRequested
