"""Runs a pipeline: polls and prepares a batch while the previous one is merged, waits for outages, and finishes what it
has when it is asked to stop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from headwater.consumers.retrying import Retrier, StopRequested
from headwater.consumers.sources import EventSource, OffsetGap, SourceBatch
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.plain_pipeline import BatchResult, PreparedBatch
from headwater.consumers.writer.reporting import record_batch, record_lag, record_set_back
from headwater.lineage.bulk import StoreSetBack

_LOOK_SECONDS: Final = 5.0
"""How often the lag is measured, which asks a broker."""


class HasBatch(Protocol):
    """A prepared batch."""

    @property
    def batch(self) -> SourceBatch: ...


class Pipeline(Protocol):
    """`prepare` is for one thread at a time, `store` for another; it gets what `prepare` returned."""

    def prepare(self, batch: SourceBatch) -> Any: ...

    def store(self, prepared: Any) -> BatchResult:
        """Store the batch. If it raises an error, storing the same batch again must be safe. After StoreSetBack it has
        to be polled again."""
        ...

    def start_over(self) -> None:
        """Forget what the store had, after StoreSetBack."""
        ...


class Runner:
    """Runs one writer. It calls the source from one task at a time."""

    def __init__(
        self,
        source: EventSource,
        pipeline: Pipeline,
        *,
        most: int = 5_000,
        idle: float = 0.1,
        until_end: bool = False,
    ) -> None:
        self.metrics = WriterMetrics()
        self._source = source
        self._pipeline = pipeline
        self._most = most
        self._idle = idle
        self._until_end = until_end
        self._stop = asyncio.Event()
        self._retrier = Retrier(self.metrics, self._stop)
        self._look_at = 0.0
        self._gaps: tuple[OffsetGap, ...] = ()
        """Gaps of batches that were discarded."""

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Finish what was polled, and end. Call it from the event loop's thread."""
        self._stop.set()

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested. TerminalErrors are raised: somebody has
        to change something first."""
        with suppress(StopRequested):
            prepared = await self._prepare()
            while True:
                following = None if self._stop.is_set() else asyncio.create_task(self._prepare())
                try:
                    await self._store(prepared)
                except BaseException as e:
                    if following is not None:
                        await asyncio.wait([following])  # the source is for one thread at a time
                    if not isinstance(e, StoreSetBack):
                        raise
                    discarded = [prepared] if following is None else [prepared, following.result()]
                    await self._start_over(e, discarded)
                    prepared = await self._prepare()
                    continue
                if following is None:
                    await self._done(prepared.batch)
                    return
                coming = await following
                await self._done(prepared.batch, is_quiet=not coming.batch)
                if self._until_end and not prepared.batch and not coming.batch and await self._is_at_end():
                    return
                prepared = coming

    async def _start_over(self, error: StoreSetBack, discarded: Sequence[HasBatch]) -> None:
        """Read again from the store's offsets. Gaps are kept, because a source reports them once."""
        record_set_back(self.metrics, error)
        self._gaps = tuple(gap for each in discarded for gap in each.batch.gaps)
        self._pipeline.start_over()
        await self._retrier.run("the store", self._source.rewind)
        if self._stop.is_set():
            raise StopRequested

    async def _is_at_end(self) -> bool:
        """Return whether every record was polled."""
        return await asyncio.to_thread(self._source.lag) == 0

    async def _done(self, batch: SourceBatch, *, is_quiet: bool = True) -> None:
        """Confirm offsets. The lag is measured when the bus is idle, or else at intervals, because that asks the broker
        for each partition."""
        if batch.next:
            await asyncio.to_thread(self._source.done, batch.next)
        if time.monotonic() >= self._look_at + (0 if is_quiet else _LOOK_SECONDS):
            await asyncio.to_thread(record_lag, self.metrics, self._source)
            self._look_at = time.monotonic() + _LOOK_SECONDS

    async def _prepare(self) -> HasBatch:
        prepared: HasBatch = PreparedBatch()
        batch = await self._retrier.run("the bus", lambda: self._source.poll(self._most, self._idle))
        if self._gaps:
            batch, self._gaps = replace(batch, gaps=(*self._gaps, *batch.gaps)), ()
        self.metrics.has_polled = True
        self.metrics.outage = getattr(self._source, "outage", None)
        self.metrics.polled += len(batch.records)
        if batch:
            prepared = await asyncio.to_thread(self._pipeline.prepare, batch)
        return prepared

    async def _store(self, prepared: HasBatch) -> None:
        batch = prepared.batch
        if not batch:
            return
        began = time.monotonic()
        written = await self._retrier.run("the store", lambda: self._pipeline.store(prepared))
        record_batch(self.metrics, written, time.monotonic() - began)
        times = [each.append_time for each in batch.records if each.append_time]
        self.metrics.stored_until = max(times, default=self.metrics.stored_until)
