"""Has instants read, flushed and completed. Several are under way at once; they are completed in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final

from headwater.consumers.retrying import Retrier
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.coordinated.bucket_writer import FlushReply
from headwater.consumers.writer.coordinated.instants import Instant, Splitter
from headwater.consumers.writer.coordinated.slice_reader import ReadRequest
from headwater.consumers.writer.coordinated.timeline import Timeline
from headwater.consumers.writer.coordinated.worker_process import WorkerProcess
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.reporting import log_dead_letters
from headwater.lineage.bulk import MergeResult, WriterMark
from headwater.lineage.sql.errors import StoreDataError

_STORE: Final = "the store"


class Reader:
    """A reading process, whose turn it is, and what it isn't told yet."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.turn = asyncio.Lock()
        self.news: list[bytes] = []
        """Ids of immutable rows that the store has since the last request."""

    def take_news(self) -> list[bytes]:
        news, self.news = self.news, []
        return news


class BucketProcess:
    """The process of a bucket, the mark that it counts, and whose turn it is."""

    def __init__(self, process: WorkerProcess, mark: WriterMark) -> None:
        self.process = process
        self.mark = mark
        self.turn = asyncio.Lock()


class InstantProcessor:
    """Processes instants with a set of processes, until one fails. It has to be closed then."""

    def __init__(
        self, timeline: Timeline, readers: list[Reader], buckets: list[BucketProcess], metrics: WriterMetrics
    ) -> None:
        self.changed: Final = asyncio.Event()
        """Set whenever a process is idle again, or an instant is completed or has failed."""
        self.halt: Final = asyncio.Event()
        """Once it is set, nothing waits for the store to come back."""
        self.in_flight: Final[dict[int, Instant]] = {}
        """The instants that aren't completed, by number."""
        self.completed: Final = deque[SourceBatch]()
        self.failure: BaseException | None = None
        self._timeline = timeline
        self._readers = readers
        self._buckets = buckets
        self._processes = [each.process for each in readers] + [each.process for each in buckets]
        self._metrics = metrics
        self._retrier = Retrier(metrics, self.halt)
        self._splitter = Splitter(len(readers))
        self._turn = asyncio.Lock()
        self._tasks = set[asyncio.Task[None]]()
        self._last: asyncio.Task[None] | None = None
        self._epoch: int | None = None

    @property
    def has_idle_reader(self) -> bool:
        return not all(each.turn.locked() for each in self._readers)

    @property
    def memory(self) -> int:
        """About how much memory instants take."""
        return sum(each.memory for each in self.in_flight.values())

    def begin(self, number: int, batch: SourceBatch) -> None:
        instant = self.in_flight[number] = Instant(number, batch)
        self._last = asyncio.create_task(self._process(instant, self._last))
        self._tasks.add(self._last)
        self._last.add_done_callback(self._end)

    async def close(self) -> None:
        """End all processes, and wait until nothing is under way any more."""
        self.halt.set()
        for each in self._processes:
            each.kill()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for each in self._processes:
            await asyncio.to_thread(each.close)

    async def _process(self, instant: Instant, previous: asyncio.Task[None] | None) -> None:
        if instant.batch.records:
            parts = zip(self._readers, self._splitter.split(instant.batch.records), strict=True)
            await _all([*(self._read(instant, *each) for each in parts if each[1]), self._open(instant)])
            await _all([self._flush(instant, self._buckets[number], share) for number, share in instant.shares()])
        if previous is not None:
            await previous
        async with self._turn:
            merged = await self._retrier.run(_STORE, partial(self._timeline.complete, instant))
        self._record(instant, merged)

    async def _read(self, instant: Instant, reader: Reader, records: Sequence[BusRecord]) -> None:
        async with reader.turn:
            request = ReadRequest(records, self._epoch, reader.take_news())
            instant.parts.append(await asyncio.to_thread(reader.process.call, request))
        self.changed.set()

    async def _open(self, instant: Instant) -> None:
        async with self._turn:
            instant.epoch = await self._retrier.run(_STORE, partial(self._timeline.open, instant))
        if instant.epoch != self._epoch:
            self._epoch = instant.epoch
            for each in self._readers:
                each.news.clear()

    async def _flush(self, instant: Instant, bucket: BucketProcess, share: bytes) -> None:
        """Flush a share. One that the database refuses is written by events when the instant is completed."""
        async with bucket.turn:
            try:
                flushed: FlushReply = await self._retrier.run(_STORE, lambda: bucket.process.call(share))
            except StoreDataError:
                instant.must_rewrite = True
                return
        bucket.mark.acknowledge(flushed.number)
        self._metrics.rows += flushed.rows
        self._metrics.retries += flushed.retries
        self._metrics.record_merge(flushed.seconds, flushed.rows)

    def _record(self, instant: Instant, merged: MergeResult) -> None:
        metrics, letters = self._metrics, (*instant.dead_letters, *merged.refused)
        for part in instant.parts:
            metrics.cache_hits += part.left_out
            if not instant.must_rewrite and instant.epoch == self._epoch:
                for each in self._readers:
                    each.news += part.new
        metrics.batches += 1
        metrics.instants += 1
        metrics.events += len(instant.batch.records)
        metrics.rows += merged.rows
        metrics.retries += merged.retries
        metrics.record_dead_letters(letters)
        log_dead_letters(letters)
        times = [each.append_time for each in instant.batch.records if each.append_time]
        metrics.stored_until = max(times, default=metrics.stored_until)
        for process in self._processes:
            metrics.cpu_seconds[process.name] = process.cpu_seconds
        self.completed.append(instant.batch)
        del self.in_flight[instant.number]

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        self.failure = self.failure or error
        self.changed.set()


async def _all(work: Sequence[Awaitable[None]]) -> None:
    """Wait until all has ended, and raise the first error."""
    for each in await asyncio.gather(*work, return_exceptions=True):
        if each is not None:
            raise each
