"""Runs a pipeline: polls mini-batches while others are stored, waits for outages, and finishes what it has when it is
asked to stop.

After a failure of a process, or when the store was set back, it discards what is under way and reads again from the
store's offsets.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

from headwater.consumers.retrying import Retrier, StopRequested
from headwater.consumers.sources import EventSource, SourceBatch
from headwater.consumers.writer.metrics import WriterMetrics, record_batch, record_lag, record_set_back
from headwater.consumers.writer.pipeline import STORE, BatchResult, Pipeline
from headwater.consumers.writer.processes.worker_process import WorkerDiedError
from headwater.errors import TransientError
from headwater.lineage.bulk import BusPartition, StoreSetBack

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 5.0
"""How often the lag is measured while events come, because that asks the broker for each partition."""
_REST_SECONDS: Final = 2.0
"""Seconds without a poll before partitions are paused. Pausing discards prefetched records."""
_MORE_SECONDS: Final = 0.02
"""How long a poll waits for more, where something is there."""
_MOST_DEATHS: Final = 3
"""So many deaths of processes without a stored batch end the writer: the next one would be the same."""
_EVENT_BYTES: Final = 500
"""The memory of an event without its bytes."""


class _InFlight(NamedTuple):
    """A mini-batch that is being processed."""

    batch: SourceBatch
    task: asyncio.Task[BatchResult]

    @property
    def failure(self) -> BaseException | None:
        return self.task.exception() if self.task.done() and not self.task.cancelled() else None


class Runner:
    """Runs one writer. It calls the source from one task at a time."""

    def __init__(
        self,
        source: EventSource,
        pipeline: Pipeline,
        *,
        most: int = 5_000,
        idle: float = 0.1,
        interval: float = 0.1,
        until_end: bool = False,
    ) -> None:
        """A mini-batch has at most `most` events for each process that maps. One that isn't full begins at once where
        nothing is under way, else `interval` seconds after the one before it."""
        self.metrics = WriterMetrics()
        self._source = source
        self._pipeline = pipeline
        self._most = most * pipeline.readers
        self._idle = idle
        self._interval = interval
        self._until_end = until_end
        self._stop = asyncio.Event()
        self._halt = asyncio.Event()
        """Once it is set, nothing waits for bus or store any more."""
        self._retrier = Retrier(self.metrics, self._halt)
        self._pending = SourceBatch()
        """What is polled, and not begun yet."""
        self._in_flight = deque[_InFlight]()
        self._looked_at = 0.0
        self._deaths = 0
        """Since a batch was stored."""

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Finish what was polled, and end. Call it from the event loop's thread."""
        self._stop.set()
        self._halt.set()

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested. TerminalErrors are raised: somebody has
        to change something first."""
        threads = ThreadPoolExecutor(self._pipeline.threads, "headwater-writer")
        asyncio.get_running_loop().set_default_executor(threads)
        with suppress(StopRequested):
            while not await self._run_round():
                if self._stop.is_set():
                    return
                self._halt.clear()
                await self._retrier.run(STORE, self._source.rewind)

    async def _run_round(self) -> bool:
        """Process events until a failure. Return False where all that isn't stored has to be read again."""
        is_set_back = False
        try:
            await self._pipeline.begin(self._retrier)
            await self._process_all()
        except StoreSetBack as e:
            record_set_back(self.metrics, e)
            is_set_back = True
        except WorkerDiedError as e:
            self._record_death(e)
        else:
            return True
        finally:
            await self._end_round()
        if is_set_back:
            self._pipeline.start_over()
        # A source reports a gap once, so gaps are kept.
        discarded = [*(each.batch for each in self._in_flight), self._pending]
        self._pending = SourceBatch(gaps=tuple(gap for each in discarded for gap in each.gaps))
        self._in_flight.clear()
        return False

    async def _end_round(self) -> None:
        """Wait until nothing is under way, and confirm what was stored after all."""
        self._halt.set()
        self._pipeline.halt()
        await asyncio.gather(*(each.task for each in self._in_flight), return_exceptions=True)
        await self._pipeline.end()
        await self._confirm()

    async def _process_all(self) -> None:
        with suppress(StopRequested):  # by whoever waited for the bus: what was polled is finished
            await self._poll_until_stopped()
        await self._wait_until(lambda: not self._in_flight)

    async def _poll_until_stopped(self) -> None:
        was_quiet = False
        while not self._stop.is_set():
            await self._gather()
            if self._pending:
                await self._wait_until(self._has_room)
                self._begin()
            await self._confirm()
            is_quiet = not self._in_flight
            if is_quiet:
                await self._measure_lag()
            if self._until_end and is_quiet and was_quiet and await asyncio.to_thread(self._source.lag) == 0:
                return
            was_quiet = is_quiet

    def _begin(self) -> None:
        """Have what is pending processed."""
        batch, self._pending = self._pending, SourceBatch()
        previous = self._in_flight[-1].task if self._in_flight else None
        task = asyncio.create_task(self._pipeline.process(batch, previous))
        self._in_flight.append(_InFlight(batch, task))

    async def _gather(self) -> None:
        """Poll until there is enough for a batch. While others are under way, the next one gathers on."""
        deadline = time.monotonic() + self._interval
        while not self._stop.is_set() and not self._is_full():
            await self._poll(_MORE_SECONDS if self._pending else self._idle)
            await self._confirm()
            self._raise_failure()
            is_due = not self._in_flight or (self._pipeline.can_map and time.monotonic() >= deadline)
            if not self._pending or (is_due and self._has_room()):
                return

    async def _poll(self, wait: float) -> None:
        most = self._most - len(self._pending.records)
        batch = await self._retrier.run("the bus", lambda: self._source.poll(most, wait))
        self.metrics.has_polled = True
        self.metrics.outage = getattr(self._source, "outage", None)
        self.metrics.polled += len(batch.records)
        self._pending = join(self._pending, batch)

    def _is_full(self) -> bool:
        records = self._pending.records
        size = sum(_EVENT_BYTES + len(each.data) for each in records)
        return len(records) >= self._most or size >= self._pipeline.most_bytes

    def _has_room(self) -> bool:
        return len(self._in_flight) < self._pipeline.most_in_flight

    async def _wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait for batches. The source has to rest meanwhile, or the group removes this member."""
        while not holds():
            self._raise_failure()
            tasks = [each.task for each in self._in_flight]
            done, _ = await asyncio.wait(tasks, timeout=_REST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                with suppress(TransientError):  # the next poll says so too
                    await asyncio.to_thread(self._source.rest)
            await self._confirm()
        self._raise_failure()

    def _raise_failure(self) -> None:
        for each in self._in_flight:
            if each.failure is not None:
                raise each.failure

    async def _confirm(self) -> None:
        """Record batches that are stored, and confirm their offsets. They are stored in order."""
        while self._in_flight and self._in_flight[0].task.done():
            if self._in_flight[0].failure is not None:
                return
            batch, task = self._in_flight.popleft()
            self._deaths = 0
            record_batch(self.metrics, batch, task.result())
            if batch.next:
                await asyncio.to_thread(self._source.done, batch.next)
            if time.monotonic() >= self._looked_at + _LOOK_SECONDS:
                await self._measure_lag()

    async def _measure_lag(self) -> None:
        await asyncio.to_thread(record_lag, self.metrics, self._source)
        self._looked_at = time.monotonic()

    def _record_death(self, error: WorkerDiedError) -> None:
        self.metrics.deaths += 1
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS:
            raise error
        _LOG.warning("%s; what wasn't stored is read again", error)


def join(one: SourceBatch, other: SourceBatch) -> SourceBatch:
    """Return one batch of two that follow each other."""
    if not one:
        return other
    return SourceBatch(
        (*one.records, *other.records),
        _greatest(one.next, other.next),
        (*one.gaps, *other.gaps),
        _greatest(one.ends, other.ends),
    )


def _greatest(one: Mapping[BusPartition, int], other: Mapping[BusPartition, int]) -> dict[BusPartition, int]:
    """A partition that was lost and given back may begin again further back."""
    return {**one, **{partition: max(at, one.get(partition, at)) for partition, at in other.items()}}
