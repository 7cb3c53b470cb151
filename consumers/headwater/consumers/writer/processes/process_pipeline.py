"""The pipeline in several processes: some read events, others write rows, and this one keeps order.

It neither maps events nor writes their rows, so one interpreter is enough for many reading processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from headwater.consumers.retrying import Retrier
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.pipeline import STORE, BatchResult, Pipeline, Transaction
from headwater.consumers.writer.processes.bucket_writer import BucketWriterRole, FlushReply
from headwater.consumers.writer.processes.instants import Instant, Splitter
from headwater.consumers.writer.processes.slice_reader import ReadRequest, SliceReaderRole
from headwater.consumers.writer.processes.timeline import Timeline
from headwater.consumers.writer.processes.worker_process import WorkerProcess, WorkerRole
from headwater.consumers.writer.record_reader import MAX_INVALID, RecordReader
from headwater.lineage.bulk import DatabaseBulkMeta, MergeResult, WriterMark, WriterMarks
from headwater.lineage.sql.errors import StoreDataError
from headwater.lineage.store.options import StoreOptions

_READER_BYTES: Final = 4 << 20
"""With so many bytes of events for each reader an instant is full."""
_MOST_BYTES: Final = 32 << 20


class _Turns:
    """A process, and whose turn it is."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process: Final = process
        self.turn: Final = asyncio.Lock()

    async def call(self, request: Any) -> Any:
        return await asyncio.to_thread(self.process.call, request)


class _Reader(_Turns):
    """A reading process, and what it isn't told yet."""

    def __init__(self, process: WorkerProcess) -> None:
        super().__init__(process)
        self.news: list[bytes] = []
        """Ids of immutable rows that the store has since the last request."""

    def take_news(self) -> list[bytes]:
        news, self.news = self.news, []
        return news


class _Bucket(_Turns):
    """The process of a bucket, and the mark that it counts."""

    def __init__(self, process: WorkerProcess, mark: WriterMark) -> None:
        super().__init__(process)
        self.mark: Final = mark


class ProcessPipeline(Pipeline):
    """Has instants read, flushed and completed. Several are under way at once; they are completed in order."""

    most_in_flight = 3
    """One is flushed while the next one is read, and another one waits for readers."""

    def __init__(
        self,
        meta: DatabaseBulkMeta,
        options: StoreOptions,
        group: str,
        kind: str,
        topic: str,
        *,
        processes: int,
        most_invalid: int = MAX_INVALID,
        marks: WriterMarks | None = None,
        start: Callable[[str, WorkerRole], WorkerProcess] = WorkerProcess,
    ) -> None:
        """`meta` and `options` are of the same store. `marks` are those of a writer that also marks when it reads
        offsets. `start` starts a process."""
        self.readers = processes
        self.buckets: Final = max(2, processes // 2)
        self.most_bytes = min(processes * _READER_BYTES, _MOST_BYTES)
        self.threads = self.readers + self.buckets + 8
        self.meta: Final = meta
        self._options = options
        self._marks = marks or WriterMarks()
        self._role = SliceReaderRole(kind, topic, most_invalid, self.buckets)
        self._start = start
        self.timeline: Final = Timeline(meta, RecordReader(kind, topic), kind, group, self._marks)
        self._readers: list[_Reader] = []
        self._buckets: list[_Bucket] = []
        self._number = 0

    async def begin(self, retrier: Retrier) -> None:
        await super().begin(retrier)
        self._turn = asyncio.Lock()
        self._epoch: int | None = None
        self._splitter = Splitter(self.readers)
        self._readers = [_Reader(self._start(f"reader-{number}", self._role)) for number in range(self.readers)]
        self._buckets = [self._new_bucket(number) for number in range(self.buckets)]
        await retrier.run(STORE, self.timeline.give_up_orphans)

    def _new_bucket(self, number: int) -> _Bucket:
        mark = self._marks.new()
        return _Bucket(self._start(f"bucket-{number}", BucketWriterRole(self._options, mark.id)), mark)

    @property
    def _processes(self) -> list[WorkerProcess]:
        return [each.process for each in (*self._readers, *self._buckets)]

    @property
    def can_map(self) -> bool:
        return not all(each.turn.locked() for each in self._readers)

    def halt(self) -> None:
        for each in self._processes:
            each.kill()

    async def end(self) -> None:
        for each in self._processes:
            await asyncio.to_thread(each.close)
        self._readers, self._buckets = [], []

    def start_over(self) -> None:
        self._marks.start_over()

    async def process(self, batch: SourceBatch, previous: asyncio.Task[Any] | None) -> BatchResult:
        self._number += 1
        instant, flushed = Instant(self._number, batch), list[FlushReply]()
        if batch.records:
            parts = zip(self._readers, self._splitter.split(batch.records), strict=True)
            await _all([*(self._read(instant, *each) for each in parts if each[1]), self._open(instant)])
            shares = instant.shares()
            await _all([self._flush(instant, self._buckets[number], share, flushed) for number, share in shares])
        if previous is not None:
            await previous
        async with self._turn:
            merged = await self._retrier.run(STORE, partial(self.timeline.complete, instant))
        self._tell_readers(instant)
        return self._result(instant, flushed, merged)

    async def _read(self, instant: Instant, reader: _Reader, records: Sequence[BusRecord]) -> None:
        async with reader.turn:
            request = ReadRequest(records, self._epoch, reader.take_news())
            instant.parts.append(await reader.call(request))

    async def _open(self, instant: Instant) -> None:
        async with self._turn:
            instant.epoch = await self._retrier.run(STORE, partial(self.timeline.open, instant))
        if instant.epoch != self._epoch:
            self._epoch = instant.epoch
            for each in self._readers:
                each.news.clear()

    async def _flush(self, instant: Instant, bucket: _Bucket, share: bytes, replies: list[FlushReply]) -> None:
        """Flush a share. One that the database refuses is written by events when the instant is completed."""
        async with bucket.turn:
            try:
                reply: FlushReply = await self._retrier.run(STORE, partial(bucket.process.call, share))
            except StoreDataError:
                instant.must_rewrite = True
                return
        bucket.mark.acknowledge(reply.number)
        replies.append(reply)

    def _tell_readers(self, instant: Instant) -> None:
        """Tell all readers which immutable rows the store has now."""
        if not instant.must_rewrite and instant.epoch == self._epoch:
            for reader in self._readers:
                for part in instant.parts:
                    reader.news += part.new

    def _result(self, instant: Instant, flushed: Sequence[FlushReply], merged: MergeResult) -> BatchResult:
        return BatchResult(
            merged.rows + sum(each.rows for each in flushed),
            merged.retries + sum(each.retries for each in flushed),
            (*instant.dead_letters, *merged.refused),
            sum(each.left_out for each in instant.parts),
            [Transaction(each.seconds, each.rows) for each in flushed],
            {each.name: each.cpu_seconds for each in self._processes},
        )


async def _all(work: Sequence[Awaitable[None]]) -> None:
    """Wait until all has ended, and raise the first error."""
    for each in await asyncio.gather(*work, return_exceptions=True):
        if each is not None:
            raise each
