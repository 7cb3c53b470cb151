"""The coordinator: polls and maps events, distributes their rows to buckets, and completes instants one after the
other. While one instant waits for its buckets, the next one collects events.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Final

from headwater.consumers.sources import EventSource, SourceBatch
from headwater.consumers.writer.bus_gaps import gap_rows
from headwater.consumers.writer.coordinated.bucket_writer import BucketWriter
from headwater.consumers.writer.coordinated.buckets import Assigner, Bucket
from headwater.consumers.writer.coordinated.connections import StoreConnection
from headwater.consumers.writer.coordinated.instants import OpenInstant
from headwater.consumers.writer.coordinated.limits import ROW_BYTES, CoordinatorLimits, PollSize, split_batch
from headwater.consumers.writer.coordinated.timeline import Timeline
from headwater.consumers.writer.known_rows import KnownRows
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.record_reader import MAX_INVALID, RecordReader
from headwater.consumers.writer.reporting import log_dead_letters, record_lag, record_set_back
from headwater.consumers.writer.retrying import Retrier, StopRequested
from headwater.lineage.bulk import StoreSetBack, WriterMarks
from headwater.lineage.rows import Row

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 5.0
"""How often the lag is measured."""
_IDLE_SECONDS: Final = 0.02
"""An instant is closed when the bus delivers nothing for this long."""
_REST_AFTER: Final = 1.0
"""Seconds without a poll before partitions are paused. Pausing discards prefetched records."""
_WATCH_SECONDS: Final = 0.5
_CLOSE_SECONDS: Final = 5.0


class Coordinator:
    """Runs one writer. It calls the source from one task at a time. One connection writes the timeline, each other one
    a bucket."""

    def __init__(
        self,
        source: EventSource,
        connection: StoreConnection,
        connections: Sequence[StoreConnection],
        group: str,
        limits: CoordinatorLimits | None = None,
        *,
        most: int = 5_000,
        idle: float = 0.1,
        until_end: bool = False,
        most_invalid: int = MAX_INVALID,
        marks: WriterMarks | None = None,
    ) -> None:
        """`marks` are those of a writer that also marks when it reads offsets."""
        self.metrics = WriterMetrics()
        self.limits: Final = limits or CoordinatorLimits()
        self._source = source
        self._connection = connection
        self._idle = idle
        self._until_end = until_end
        self._stop = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._retrier = Retrier(self.metrics, self._stop)
        self.index: Final = KnownRows()
        self._reader = RecordReader(source.kind, source.topic, most_invalid=most_invalid, known=self.index)
        self.timeline: Final = Timeline(connection, self._reader, source.kind, group)
        self._marks = marks or WriterMarks()
        for each in (connection, *connections):
            each.mark = self._marks.new()
        self._connections = tuple(connections)
        self._writers: list[BucketWriter] = []
        self._assigner = Assigner(())
        self._make_writers()
        self._portion = PollSize(most, self.limits.slice_bytes)
        self._number = 0
        self._open: OpenInstant | None = None
        self._closing: OpenInstant | None = None
        self._completion: asyncio.Task[None] | None = None
        self._done: list[OpenInstant] = []
        """Completed instants that aren't reported to the source yet."""
        self._gaps: list[Row] = []
        """Rows of gaps that no instant has yet, also of those that were discarded."""
        self._look_at = 0.0
        self._outage: str | None = None

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def waiting(self) -> list[int]:
        """How many rows of each bucket aren't acknowledged."""
        return [each.bucket.waiting for each in self._writers]

    def stop(self) -> None:
        """Finish what was polled, and end. Call it from any thread."""
        if self._loop is None:
            self._stop.set()
        else:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop.set)

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested. TerminalErrors are raised: somebody has
        to change something first."""
        self._loop = asyncio.get_running_loop()
        watching = asyncio.create_task(self._watch())
        try:
            with suppress(StopRequested):
                await self._process_until_stopped()
            await self._report_to_source()
        finally:
            watching.cancel()
            if self._completion is not None:
                self._completion.cancel()
            await asyncio.to_thread(self._release)

    async def _process_until_stopped(self) -> None:
        while True:
            for each in self._writers:
                each.start()
            try:
                return await self._process_all()
            except StoreSetBack as e:
                await self._start_over(e)
                if self._stop.is_set():
                    return None

    async def _start_over(self, error: StoreSetBack) -> None:
        """Discard all instants, and read again from the store's offsets. Gaps are kept, because a source reports them
        once."""
        record_set_back(self.metrics, error)
        if self._completion is not None:
            self._wake()
            await asyncio.wait([self._completion])  # it finds the same
            self._completion.exception()
            self._completion = None
        self._gaps += [row for each in (self._open, self._closing) if each is not None for row in each.gaps]
        self._open = self._closing = None
        self._done.clear()
        for each in self._writers:
            await asyncio.to_thread(each.close, _CLOSE_SECONDS)
        self._count()
        self._make_writers()
        self._marks.start_over()
        self.index.forget()
        await self._retrier.run("the store", self._source.rewind)

    def _make_writers(self) -> None:
        self._writers = [self._writer(number, each) for number, each in enumerate(self._connections)]
        self._assigner = Assigner([each.bucket for each in self._writers])

    async def _process_all(self) -> None:
        await self._retrier.run("the store", self.timeline.give_up_orphans)
        was_empty = False
        while not self._stop.is_set():
            batch = await self._poll()
            if batch:
                await self._process(batch)
            await self._advance(is_idle=not batch)
            is_empty = not batch and self._open is None and self._closing is None
            if self._until_end and is_empty and was_empty and await asyncio.to_thread(self._source.lag) == 0:
                return
            was_empty = is_empty
        while self._open is not None or self._closing is not None:
            await self._advance(is_idle=True)
            await self._wait_for_notification()

    async def _poll(self) -> SourceBatch:
        wait = self._idle if self._open is None else min(self._idle, _IDLE_SECONDS)
        batch = await self._retrier.run("the bus", lambda: self._source.poll(self._portion.count, wait))
        self.metrics.has_polled = True
        self.metrics.outage = getattr(self._source, "outage", None)
        self.metrics.polled += len(batch.records)
        self._portion.update(batch.records)
        return batch

    async def _process(self, batch: SourceBatch) -> None:
        self._gaps += chain.from_iterable(gap_rows(each, self._source.topic) for each in batch.gaps)
        for piece in split_batch(batch, self.limits.slice_bytes):
            await self._wait_for_memory()
            # REQUESTED is written while the slice is mapped; no row goes to a bucket before
            epoch = self.index.epoch
            reading = asyncio.create_task(asyncio.to_thread(self._reader.read, piece.records))
            try:
                instant = await self._open_instant()
            finally:
                await asyncio.wait([reading])  # the reader is for one thread at a time
            read = reading.result()
            gaps, self._gaps = self._gaps, []
            instant.add(piece, read, gaps, epoch)
            self._assigner.assign(chain(read.rows, gaps))
            await self._advance(is_idle=False)

    async def _wait_for_memory(self) -> None:
        """Wait while too much memory is in use. The source has to rest meanwhile, or the group removes this member."""
        rest_at = time.monotonic() + _REST_AFTER
        while self._memory_in_use() >= self.limits.buffer_bytes:
            for each in self._writers:
                each.bucket.request_flush()
            await self._advance(is_idle=True)
            if time.monotonic() >= rest_at:
                await self._retrier.run("the bus", self._source.rest)
                rest_at = time.monotonic() + _REST_AFTER
            await self._wait_for_notification()
            self._stop_if_stuck()

    def _stop_if_stuck(self) -> None:
        """Stop at once if the store was set back, or doesn't answer. What isn't stored comes again."""
        if self._marks.is_set_back:
            raise StoreSetBack
        if self._stop.is_set() and any(each.trouble for each in self._writers):
            raise StopRequested

    def _memory_in_use(self) -> int:
        """Return the approximate memory in use."""
        kept = sum(each.bytes for each in (self._open, self._closing) if each is not None)
        return kept + ROW_BYTES * sum(self.waiting)

    async def _open_instant(self) -> OpenInstant:
        if self._open is None:
            number = self._number = self._number + 1
            epoch = await self._retrier.run("the store", lambda: self.timeline.open(number))
            self.index.set_epoch(epoch)
            begins = [each.bucket.end for each in self._writers]
            self._open = OpenInstant(number, epoch, begins, opened=time.monotonic())
        return self._open

    async def _advance(self, *, is_idle: bool) -> None:
        """Close the open instant if it is due, and collect results."""
        if self._completion is not None and self._completion.done():
            finished, self._completion = self._completion, None
            finished.result()
        for each in self._writers:
            if each.failure is not None:
                raise each.failure
        await self._report_to_source()
        instant = self._open
        if instant is None or self._closing is not None:
            return
        if is_idle or time.monotonic() - instant.opened >= self.limits.interval or self._stop.is_set():
            instant.ends = [each.bucket.request_flush() for each in self._writers]
            self._open, self._closing = None, instant
            self._completion = asyncio.create_task(self._finish(instant))

    async def _finish(self, instant: OpenInstant) -> None:
        await self._retrier.run("the store", lambda: self.timeline.close(instant))
        while not self._is_acknowledged(instant):
            await self._wait_for_notification()
            self._stop_if_stuck()
        ranges = zip(self._writers, instant.begins, instant.ends, strict=True)
        instant.must_rewrite |= any(each.bucket.was_refused(begin, end) for each, begin, end in ranges)
        merged = await self._retrier.run("the store", partial(self.timeline.complete, instant))
        if not instant.must_rewrite:
            self.index.add(instant.new, instant.epoch)
        metrics = self.metrics
        metrics.batches += 1
        metrics.events += len(instant.records)
        metrics.instants += 1
        dead_letters = (*instant.dead_letters, *merged.refused)
        metrics.record_dead_letters(dead_letters)
        log_dead_letters(dead_letters)
        metrics.retries += merged.retries
        metrics.cache_hits = self.index.hits
        metrics.rows += merged.rows
        metrics.stored_until = instant.stored_until or metrics.stored_until
        self._done.append(instant)
        self._closing = None
        self._wake()

    def _is_acknowledged(self, instant: OpenInstant) -> bool:
        return all(each.bucket.stored >= end for each, end in zip(self._writers, instant.ends, strict=True))

    async def _wait_for_notification(self) -> None:
        """Wait for a notification, at most a second."""
        notified = asyncio.get_running_loop().create_future()
        self._waiting.append(notified)
        await asyncio.wait([notified], timeout=1)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def _report_to_source(self) -> None:
        done, self._done = self._done, []
        for each in done:
            if each.next:
                await asyncio.to_thread(self._source.done, each.next)
        if time.monotonic() >= self._look_at:
            await asyncio.to_thread(record_lag, self.metrics, self._source)
            self._look_at = time.monotonic() + _LOOK_SECONDS

    async def _watch(self) -> None:
        """Abort late connections, count flushes, and log troubles of bucket writers."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self.metrics.beat()
            self._connection.abort_if_late()
            for each in self._writers:
                each.connection.abort_if_late()
            self._count()
            self._log_outage()

    def _count(self) -> None:
        for each in self._writers:
            flushes, each.flushes = each.flushes, []
            for merged, seconds in flushes:
                self.metrics.rows += merged.rows
                self.metrics.retries += merged.retries
                self.metrics.record_merge(seconds, merged.rows)

    def _log_outage(self) -> None:
        """Log an outage once, when it begins and when it ends."""
        trouble = next((each.trouble for each in self._writers if each.trouble), None)
        if trouble is not None and trouble != self._outage:
            self.metrics.record_wait("the store", trouble)
            _LOG.warning("waiting for the store: %s", trouble)
        if trouble is not None:  # the retrier may have cleared it
            self.metrics.waiting_for = f"the store: {trouble}"
        if trouble is None and self._outage is not None:
            self.metrics.waiting_for = None
            _LOG.warning("the store is back")
        self._outage = trouble

    def _writer(self, number: int, connection: StoreConnection) -> BucketWriter:
        return BucketWriter(number, Bucket(self.limits.bucket_rows), connection, self._notify)

    def _notify(self) -> None:
        """Wake the coordinator. Bucket writers call it from their threads."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _release(self) -> None:
        for each in self._writers:
            each.close(_CLOSE_SECONDS)
        self._connection.close()
        self._count()
