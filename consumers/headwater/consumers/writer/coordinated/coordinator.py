"""A writer's life: what is polled is decoded, its rows are spread over buckets, and their writers flush them. Instants
follow one another; while one waits for its buckets the next one gathers, for as many intervals as that takes.
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

from headwater.consumers.sources import Batch, Source
from headwater.consumers.writer.accounts import look, tell_letters
from headwater.consumers.writer.coordinated.buckets import Assigner, Bucket
from headwater.consumers.writer.coordinated.flushing import BucketWriter
from headwater.consumers.writer.coordinated.instants import Gathered
from headwater.consumers.writer.coordinated.lanes import Lane
from headwater.consumers.writer.coordinated.limits import ROW_BYTES, Limits
from headwater.consumers.writer.coordinated.slices import Portion, slices
from headwater.consumers.writer.coordinated.timeline import Timeline
from headwater.consumers.writer.gaps import gap_rows
from headwater.consumers.writer.index import Index
from headwater.consumers.writer.patience import Patience, Stopped
from headwater.consumers.writer.reading import MOST_INVALID, Reader
from headwater.consumers.writer.vitals import Vitals

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 5.0
"""Between two looks at how much is still to be read."""
_IDLE_SECONDS: Final = 0.02
"""With nothing on the bus for so long an instant ends."""
_REST_AFTER: Final = 1.0
"""Seconds for which nothing is polled before partitions are paused: what was fetched ahead is thrown away by that."""
_WATCH_SECONDS: Final = 0.5
_LET_GO_SECONDS: Final = 5.0


class Coordinator:
    """One writer. All calls of the source are made one after the other; its own lane tells the timeline, and each other
    one is a bucket's."""

    def __init__(
        self,
        source: Source,
        lane: Lane,
        lanes: Sequence[Lane],
        group: str,
        limits: Limits | None = None,
        *,
        most: int = 5_000,
        idle: float = 0.1,
        until_end: bool = False,
        most_invalid: int = MOST_INVALID,
    ) -> None:
        self.vitals = Vitals()
        self.limits: Final = limits or Limits()
        self._source = source
        self._lane = lane
        self._idle = idle
        self._until_end = until_end
        self._stop = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._patience = Patience(self.vitals, self._stop)
        self.index: Final = Index()
        self._reader = Reader(source.kind, source.topic, most_invalid=most_invalid, known=self.index)
        self.timeline: Final = Timeline(lane, self._reader, source.kind, group)
        self._writers = [self._writer(number, each) for number, each in enumerate(lanes)]
        self._assigner = Assigner([each.bucket for each in self._writers])
        self._portion = Portion(most, self.limits.slice_bytes)
        self._number = 0
        self._open: Gathered | None = None
        self._closing: Gathered | None = None
        self._finishing: asyncio.Task[None] | None = None
        self._done: list[Gathered] = []
        """What the source isn't told of yet."""
        self._look_at = 0.0
        self._trouble: str | None = None

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def waiting(self) -> list[int]:
        """Of each bucket how many rows aren't acknowledged."""
        return [each.bucket.waiting for each in self._writers]

    def stop(self) -> None:
        """From any thread: finish what was polled, and end."""
        if self._loop is None:
            self._stop.set()
        else:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop.set)

    async def run(self) -> None:
        """Until it is stopped, or at the end of the bus where that was asked for. A TerminalError is raised: somebody
        has to change something first."""
        self._loop = asyncio.get_running_loop()
        watching = asyncio.create_task(self._watch())
        try:
            for each in self._writers:
                each.start()
            with suppress(Stopped):
                await self._written()
            await self._tell_source()
        finally:
            watching.cancel()
            if self._finishing is not None:
                self._finishing.cancel()
            await asyncio.to_thread(self._let_go)

    async def _written(self) -> None:
        await self._patience.tried("the store", self.timeline.look_back)
        was_empty = False
        while not self._stop.is_set():
            batch = await self._polled()
            if batch:
                await self._take_in(batch)
            await self._turn(is_idle=not batch)
            is_empty = not batch and self._open is None and self._closing is None
            if self._until_end and is_empty and was_empty and await asyncio.to_thread(self._source.behind) == 0:
                return
            was_empty = is_empty
        while self._open is not None or self._closing is not None:
            await self._turn(is_idle=True)
            await self._heard()

    async def _polled(self) -> Batch:
        wait = self._idle if self._open is None else min(self._idle, _IDLE_SECONDS)
        batch = await self._patience.tried("the bus", lambda: self._source.poll(self._portion.count, wait))
        self.vitals.has_polled = True
        self.vitals.away = getattr(self._source, "away", None)
        self.vitals.polled += len(batch.records)
        self._portion.seen(batch.records)
        return batch

    async def _take_in(self, batch: Batch) -> None:
        for piece in slices(batch, self.limits.slice_bytes):
            await self._room()
            # REQUESTED is told while the piece is decoded; nothing is given to a bucket before it is
            epoch = self.index.epoch
            instant, read = await asyncio.gather(self._opened(), asyncio.to_thread(self._reader.read, piece.records))
            gaps = list(chain.from_iterable(gap_rows(hole, self._source.topic) for hole in piece.holes))
            instant.add(piece, read, gaps, epoch)
            self._assigner.assign(chain(read.rows, gaps))
            await self._turn(is_idle=False)

    async def _room(self) -> None:
        """Waits while too much is held. Whoever doesn't poll for long is no member of its group any more."""
        rest_at = time.monotonic() + _REST_AFTER
        while self._held() >= self.limits.buffer_bytes:
            for each in self._writers:
                each.bucket.ask()
            await self._turn(is_idle=True)
            if time.monotonic() >= rest_at:
                await self._patience.tried("the bus", self._source.rest)
                rest_at = time.monotonic() + _REST_AFTER
            await self._heard()
            self._leave_if_hopeless()

    def _leave_if_hopeless(self) -> None:
        """Who is told to stop finishes what it has, unless it waits for the store: then that comes again."""
        if self._stop.is_set() and any(each.trouble for each in self._writers):
            raise Stopped

    def _held(self) -> int:
        """What is in memory, about."""
        kept = sum(each.bytes for each in (self._open, self._closing) if each is not None)
        return kept + ROW_BYTES * sum(self.waiting)

    async def _opened(self) -> Gathered:
        if self._open is None:
            number = self._number = self._number + 1
            epoch = await self._patience.tried("the store", lambda: self.timeline.open(number))
            self.index.begin(epoch)
            begins = [each.bucket.end for each in self._writers]
            self._open = Gathered(number, epoch, begins, opened=time.monotonic())
        return self._open

    async def _turn(self, *, is_idle: bool) -> None:
        """Ends what has come to its end."""
        if self._finishing is not None and self._finishing.done():
            finished, self._finishing = self._finishing, None
            finished.result()
        for each in self._writers:
            if each.failure is not None:
                raise each.failure
        await self._tell_source()
        instant = self._open
        if instant is None or self._closing is not None:
            return
        if is_idle or time.monotonic() - instant.opened >= self.limits.interval or self._stop.is_set():
            instant.ends = [each.bucket.ask() for each in self._writers]
            self._open, self._closing = None, instant
            self._finishing = asyncio.create_task(self._finish(instant))

    async def _finish(self, instant: Gathered) -> None:
        await self._patience.tried("the store", lambda: self.timeline.closed(instant))
        while not self._is_acknowledged(instant):
            await self._heard()
            self._leave_if_hopeless()
        ranges = zip(self._writers, instant.begins, instant.ends, strict=True)
        instant.again |= any(each.bucket.was_refused(begin, end) for each, begin, end in ranges)
        merged = await self._patience.tried("the store", partial(self.timeline.complete, instant))
        if not instant.again:
            self.index.enter(instant.new, instant.epoch)
        vitals = self.vitals
        vitals.batches += 1
        vitals.events += len(instant.records)
        vitals.instants += 1
        letters = (*instant.letters, *merged.refused)
        vitals.letters += len(letters)
        vitals.letters_by.update(letter.reason.value for letter in letters)
        tell_letters(letters)
        vitals.retries += merged.retries
        vitals.cache_hits = self.index.hits
        vitals.rows += merged.rows
        vitals.stored_until = instant.stored_until or vitals.stored_until
        self._done.append(instant)
        self._closing = None
        self._wake()

    def _is_acknowledged(self, instant: Gathered) -> bool:
        return all(each.bucket.stored >= end for each, end in zip(self._writers, instant.ends, strict=True))

    async def _heard(self) -> None:
        """Waits for news, for a second at most."""
        news = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        await asyncio.wait([news], timeout=1)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def _tell_source(self) -> None:
        done, self._done = self._done, []
        for each in done:
            if each.next:
                await asyncio.to_thread(self._source.done, each.next)
        if time.monotonic() >= self._look_at:
            await asyncio.to_thread(look, self.vitals, self._source)
            self._look_at = time.monotonic() + _LOOK_SECONDS

    async def _watch(self) -> None:
        """What no other wait sees: a store that doesn't answer, and what writers say of themselves."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self.vitals.beat()
            self._lane.cut_if_late()
            for each in self._writers:
                each.lane.cut_if_late()
            self._count()
            self._tell_trouble()

    def _count(self) -> None:
        for each in self._writers:
            flushes, each.flushes = each.flushes, []
            for merged, seconds in flushes:
                self.vitals.rows += merged.rows
                self.vitals.retries += merged.retries
                self.vitals.merged(seconds, merged.rows)

    def _tell_trouble(self) -> None:
        """Said once, and as long as it lasts."""
        trouble = next((each.trouble for each in self._writers if each.trouble), None)
        if trouble is not None and trouble != self._trouble:
            self.vitals.waited("the store", trouble)
            _LOG.warning("waiting for the store: %s", trouble)
        if trouble is not None:  # who waits for something else has said that this is back
            self.vitals.waiting_for = f"the store: {trouble}"
        if trouble is None and self._trouble is not None:
            self.vitals.waiting_for = None
            _LOG.warning("the store is back")
        self._trouble = trouble

    def _writer(self, number: int, lane: Lane) -> BucketWriter:
        return BucketWriter(number, Bucket(self.limits.bucket_rows), lane, self._told)

    def _told(self) -> None:
        """From any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _let_go(self) -> None:
        for each in self._writers:
            each.close(_LET_GO_SECONDS)
        self._lane.close()
        self._count()
