"""Connections of one's own into a store, which are cut where nobody answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from typing_extensions import Self

from headwater.lineage.bulk import NOTHING, BulkLineageMeta, DatabaseBulkMeta, Instant, Merged, Told, Work
from headwater.lineage.listener.cutting import Cutter
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import Target

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)
_SERVER_SECONDS: Final = 900.0
"""A server gives up a statement after this by itself: nobody waits for it any more."""
_MOST_SECONDS: Final = 1_800.0


class Lane:
    """Of a `BulkLineageMeta` what a bucket or the timeline needs, each call in so many seconds or broken off."""

    def __init__(self, bulk: BulkLineageMeta, cut: Callable[[], None], seconds: float) -> None:
        """`cut` has whoever waits for an answer get a TransientError."""
        self._bulk = bulk
        self._cut = cut
        self._seconds = self._allowed = seconds
        self._began: dict[int, float] = {}

    @classmethod
    def into(cls, target: Target, seconds: float) -> Self:
        """Nothing is connected yet."""
        engine = engine_for(target)
        return cls(DatabaseBulkMeta(engine, target.words), Cutter(engine, _SERVER_SECONDS).cut, seconds)

    def merge(self, work: Work) -> Merged:
        return self._in_time(lambda: self._bulk.merge(work))

    def merge_events(self, events: Sequence[Told], work: Work = NOTHING) -> Merged:
        return self._in_time(lambda: self._bulk.merge_events(events, work))

    def epoch(self) -> int:
        return self._in_time(self._bulk.epoch)

    def unfinished(self) -> list[Instant]:
        return self._in_time(lambda: list(self._bulk.unfinished()))

    def cut_if_late(self) -> None:
        """From another thread. Next time it may take twice as long: whoever is slow would never come to an end."""
        now = time.monotonic()
        if any(now - began > self._allowed for began in [*self._began.values()]):
            _LOG.warning("the store hasn't answered for %.0f s: that is broken off, and repeated", self._allowed)
            self._allowed = min(2 * self._allowed, _MOST_SECONDS)
            self.cut()

    def cut(self) -> None:
        self._began.clear()
        self._cut()

    def close(self) -> None:
        self._bulk.close()

    def _in_time(self, work: Callable[[], T]) -> T:
        thread = threading.get_ident()
        self._began[thread] = time.monotonic()
        try:
            done = work()
        finally:
            self._began.pop(thread, None)
        self._allowed = self._seconds
        return done
