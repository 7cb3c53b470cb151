"""The coordinator: polls the bus, forms instants of what comes, and has them processed by other processes.

It neither maps events nor writes their rows, so one interpreter is enough for many reading processes. After a failure
of a process, or when the store was set back, it discards what is under way and begins anew at the store's offsets.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from headwater.consumers.retrying import Retrier, StopRequested
from headwater.consumers.sources import EventSource, SourceBatch
from headwater.consumers.writer.coordinated.bucket_writer import BucketWriterRole
from headwater.consumers.writer.coordinated.instant_processor import BucketProcess, InstantProcessor, Reader
from headwater.consumers.writer.coordinated.instants import batch_bytes, join
from headwater.consumers.writer.coordinated.slice_reader import SliceReaderRole
from headwater.consumers.writer.coordinated.timeline import Timeline
from headwater.consumers.writer.coordinated.worker_process import WorkerDiedError, WorkerProcess, WorkerRole
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.record_reader import MAX_INVALID, RecordReader
from headwater.consumers.writer.reporting import record_lag, record_set_back
from headwater.errors import TransientError
from headwater.lineage.bulk import DatabaseBulkMeta, StoreSetBack, WriterMarks
from headwater.lineage.store.options import StoreOptions

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 5.0
"""How often the lag is measured."""
_REST_SECONDS: Final = 2.0
"""Seconds without a poll before partitions are paused. Pausing discards prefetched records."""
_MORE_SECONDS: Final = 0.02
"""How long a poll waits for more, where something is there."""
_MOST_DEATHS: Final = 3
"""So many deaths without a completed instant end the writer: the next one would be the same."""
_MOST_INSTANTS: Final = 3
"""How many instants are under way: one is flushed while the next one is read, and another one waits for readers."""


@dataclass(frozen=True)
class CoordinatorLimits:
    """The settings of a coordinator."""

    readers: int = 2
    """How many processes read events."""
    buckets: int = 2
    """How many processes write rows."""
    interval: float = 0.1
    """Seconds after which an instant begins that isn't full, while another one is under way. Without one it begins at
    once."""
    batch_bytes: int = 4 << 20
    """With so many bytes of events for each reader an instant is full."""
    buffer_bytes: int = 128 << 20
    """With so much memory in use no instant begins, unless it is the only one."""


class Coordinator:
    """Runs one writer. It calls the source from one task at a time."""

    def __init__(
        self,
        source: EventSource,
        meta: DatabaseBulkMeta,
        options: StoreOptions,
        group: str,
        limits: CoordinatorLimits | None = None,
        *,
        most: int = 5_000,
        idle: float = 0.1,
        until_end: bool = False,
        most_invalid: int = MAX_INVALID,
        marks: WriterMarks | None = None,
        start: Callable[[str, WorkerRole], WorkerProcess] = WorkerProcess,
    ) -> None:
        """`meta` and `options` are of the same store. Each reader gets `most` events of an instant. `marks` are those
        of a writer that also marks when it reads offsets. `start` starts a process."""
        self.metrics = WriterMetrics()
        self.limits: Final = limits or CoordinatorLimits()
        self._source = source
        self.meta: Final = meta
        self._options = options
        self._most = most * self.limits.readers
        self._idle = idle
        self._until_end = until_end
        self._most_invalid = most_invalid
        self._marks = marks or WriterMarks()
        self._start = start
        reader = RecordReader(source.kind, source.topic)
        self.timeline: Final = Timeline(meta, reader, source.kind, group, self._marks)
        self._stop = asyncio.Event()
        self._retrier = Retrier(self.metrics, self._stop)
        self._processor: InstantProcessor | None = None
        self._pending = SourceBatch()
        """What is polled, and in no instant yet."""
        self._number = 0
        self._look_at = 0.0
        self._deaths = 0
        """Since an instant was completed."""

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Finish what was polled, and end. Call it from the event loop's thread."""
        self._stop.set()
        if self._processor is not None:
            self._processor.halt.set()

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested. TerminalErrors are raised: somebody has
        to change something first."""
        threads = self.limits.readers + self.limits.buckets + 8
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, "headwater-coordinator"))
        with suppress(StopRequested):
            while not await self._run_round():
                if self._stop.is_set():
                    return
                await self._retrier.run("the store", self._source.rewind)

    async def _run_round(self) -> bool:
        """Process events with one set of processes. Return False where all that isn't completed has to be read
        again."""
        processor = self._processor = self._begin_processor()
        is_set_back = False
        try:
            await self._retrier.run("the store", self.timeline.give_up_orphans)
            await self._process_all(processor)
        except StoreSetBack as e:
            record_set_back(self.metrics, e)
            is_set_back = True
        except WorkerDiedError as e:
            self._record_death(e)
        else:
            return True
        finally:
            await processor.close()
            await self._confirm(processor)
        if is_set_back:
            self._marks.start_over()
        # A source reports a gap once, so gaps are kept.
        discarded = [*(each.batch for each in processor.in_flight.values()), self._pending]
        self._pending = SourceBatch(gaps=tuple(gap for each in discarded for gap in each.gaps))
        return False

    def _begin_processor(self) -> InstantProcessor:
        limits, source = self.limits, self._source
        role = SliceReaderRole(source.kind, source.topic, self._most_invalid, limits.buckets, self.meta.takes_copies())
        readers = [Reader(self._start(f"reader-{number}", role)) for number in range(limits.readers)]
        buckets = []
        for number in range(limits.buckets):
            mark = self._marks.new()
            process = self._start(f"bucket-{number}", BucketWriterRole(self._options, mark.id))
            buckets.append(BucketProcess(process, mark))
        return InstantProcessor(self.timeline, readers, buckets, self.metrics)

    async def _process_all(self, processor: InstantProcessor) -> None:
        with suppress(StopRequested):  # by whoever waited for the bus: what was polled is finished
            await self._poll_until_stopped(processor)
        await self._wait_until(processor, lambda: not processor.in_flight)

    async def _poll_until_stopped(self, processor: InstantProcessor) -> None:
        was_quiet = False
        while not self._stop.is_set():
            await self._gather(processor)
            if self._pending:
                await self._wait_until(processor, lambda: self._has_room(processor))
                self._number += 1
                processor.begin(self._number, self._pending)
                self._pending = SourceBatch()
            await self._confirm(processor)
            is_quiet = not processor.in_flight
            if self._until_end and is_quiet and was_quiet and await asyncio.to_thread(self._source.lag) == 0:
                return
            was_quiet = is_quiet

    async def _gather(self, processor: InstantProcessor) -> None:
        """Poll until there is enough for an instant. While others are under way, the next one gathers on."""
        deadline = time.monotonic() + self.limits.interval
        while not self._stop.is_set() and not self._is_full():
            await self._poll(_MORE_SECONDS if self._pending else self._idle)
            self._raise_failure(processor)
            is_due = not processor.in_flight or (processor.has_idle_reader and time.monotonic() >= deadline)
            if not self._pending or (is_due and self._has_room(processor)):
                return

    async def _poll(self, wait: float) -> None:
        most = self._most - len(self._pending.records)
        batch = await self._retrier.run("the bus", lambda: self._source.poll(most, wait))
        self.metrics.has_polled = True
        self.metrics.outage = getattr(self._source, "outage", None)
        self.metrics.polled += len(batch.records)
        self._pending = join(self._pending, batch)

    def _is_full(self) -> bool:
        size = batch_bytes(self._pending)
        return len(self._pending.records) >= self._most or size >= self.limits.batch_bytes * self.limits.readers

    def _has_room(self, processor: InstantProcessor) -> bool:
        is_small = len(processor.in_flight) < _MOST_INSTANTS and processor.memory < self.limits.buffer_bytes
        return is_small or not processor.in_flight

    async def _wait_until(self, processor: InstantProcessor, holds: Callable[[], bool]) -> None:
        """Wait for instants. The source has to rest meanwhile, or the group removes this member."""
        while not holds():
            self._raise_failure(processor)
            processor.changed.clear()
            try:
                await asyncio.wait_for(processor.changed.wait(), _REST_SECONDS)
            except asyncio.TimeoutError:
                with suppress(TransientError):  # the next poll says so too
                    await asyncio.to_thread(self._source.rest)
        self._raise_failure(processor)

    @staticmethod
    def _raise_failure(processor: InstantProcessor) -> None:
        if processor.failure is not None:
            raise processor.failure

    async def _confirm(self, processor: InstantProcessor) -> None:
        """Confirm the offsets of completed instants, and measure the lag."""
        while processor.completed:
            self._deaths = 0
            following = processor.completed.popleft().next
            if following:
                await asyncio.to_thread(self._source.done, following)
        if time.monotonic() >= self._look_at:
            await asyncio.to_thread(record_lag, self.metrics, self._source)
            self._look_at = time.monotonic() + _LOOK_SECONDS

    def _record_death(self, error: WorkerDiedError) -> None:
        self.metrics.deaths += 1
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS:
            raise error
        _LOG.warning("%s; what wasn't stored is read again", error)
