"""Connections to a store that are aborted when the server doesn't answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from typing_extensions import Self

from headwater.lineage.bulk import (
    EMPTY_BATCH,
    BulkLineageMeta,
    DatabaseBulkMeta,
    EventRows,
    MergeResult,
    WriteBatch,
    WriterInstant,
    WriterMark,
)
from headwater.lineage.listener.aborting import ConnectionAborter
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreAddress

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)
_SERVER_SECONDS: Final = 900.0
"""After this the server itself ends a statement, because nobody waits for it any more."""
_MOST_SECONDS: Final = 1_800.0


class StoreConnection:
    """The part of `BulkLineageMeta` that buckets and the timeline need, with a time limit for each call."""

    def __init__(self, bulk: BulkLineageMeta, abort: Callable[[], None], seconds: float) -> None:
        """`abort` makes waiting calls fail with a TransientError."""
        self._bulk = bulk
        self._abort = abort
        self._seconds = self._allowed = seconds
        self._began: dict[int, float] = {}
        self.mark: WriterMark | None = None
        """What each transaction of this connection counts up."""

    @classmethod
    def into(cls, target: StoreAddress, seconds: float) -> Self:
        """Return a connection to this address. It doesn't connect yet."""
        engine = engine_for(target)
        return cls(
            DatabaseBulkMeta(engine, target.words), ConnectionAborter(engine, _SERVER_SECONDS).abort_all, seconds
        )

    def merge(self, work: WriteBatch) -> MergeResult:
        return self._in_time(lambda: self._bulk.merge(replace(work, mark=self.mark)))

    def merge_events(self, events: Sequence[EventRows], work: WriteBatch = EMPTY_BATCH) -> MergeResult:
        return self._in_time(lambda: self._bulk.merge_events(events, replace(work, mark=self.mark)))

    def epoch(self) -> int:
        return self._in_time(self._bulk.epoch)

    def unfinished(self) -> list[WriterInstant]:
        return self._in_time(lambda: list(self._bulk.unfinished_instants()))

    def abort_if_late(self) -> None:
        """Abort a call that takes too long. Call it from another thread. The limit doubles each time, so that a slow
        server can finish eventually."""
        now = time.monotonic()
        if any(now - began > self._allowed for began in [*self._began.values()]):
            _LOG.warning("the store hasn't answered for %.0f s: the call is aborted and repeated", self._allowed)
            self._allowed = min(2 * self._allowed, _MOST_SECONDS)
            self.abort()

    def abort(self) -> None:
        self._began.clear()
        self._abort()

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
