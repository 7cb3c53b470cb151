"""Runs an archiver: polls records, makes rows of them, and adds them to the archive when they are many or old enough.

Offsets are the archive's own: it says where reading continues, and refuses what another process has archived. Those of
the consumer group follow, so that others can see the progress.

What an archiver counts: for Prometheus, for probes and for people.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headwater.consumers.archive.arrow import pc
from headwater.consumers.archive.buffer import RowBuffer, first_offsets
from headwater.consumers.archive.columns import TableBuilder
from headwater.consumers.archive.decoding import UNDECODED
from headwater.consumers.archive.table import EventArchive, OffsetsTakenError
from headwater.consumers.metrics import LoopMetrics, labelled_lines, metric_lines
from headwater.consumers.retrying import Retrier, StopRequested
from headwater.consumers.sources import EventSource, OffsetGap, SharedSource, SourceBatch
from headwater.lineage.bulk import BusPartition

_PREFIX: Final = "headwater_archiver_"
_COUNTERS: Final = {
    "polled": "Records taken from the bus.",
    "records": "Records that are archived.",
    "undecoded": "Archived records that couldn't be decoded.",
    "flushes": "Commits to the archive.",
    "conflicts": "Times that another process had archived the same offsets.",
    "gaps": "Ranges that the bus had lost before they were read.",
}


@dataclass
class ArchiverMetrics(LoopMetrics):
    """Of an archiver."""

    records: int = 0
    undecoded: int = 0
    flushes: int = 0
    conflicts: int = 0
    gaps: int = 0
    buffered_bytes: int = 0
    archived_until: int | None = None
    """The latest append time that is archived, in microseconds."""

    def figures(self) -> dict[str, int]:
        """Return totals for people, at the end."""
        return {name: getattr(self, name) for name in ("records", "undecoded", "flushes", "conflicts", "gaps")}

    def render(self) -> Iterator[str]:
        """Yield the metrics in Prometheus' text format."""
        for name, text in _COUNTERS.items():
            yield from metric_lines(f"{_PREFIX}{name}_total", "counter", text, getattr(self, name))
        text = "Times that the archiver waited, by cause."
        yield from labelled_lines(f"{_PREFIX}waits_total", "cause", text, self.waits_by)
        yield from metric_lines(f"{_PREFIX}ready", "gauge", "Whether bus and archive answer.", int(self.is_ready))
        text = "Bytes that wait in memory to be archived."
        yield from metric_lines(f"{_PREFIX}buffered_bytes", "gauge", text, self.buffered_bytes)
        if self.lag is not None:
            yield from metric_lines(f"{_PREFIX}lag", "gauge", "Records not yet read.", self.lag)
        if self.archived_until is not None:
            text = "Seconds since what was archived last came to the bus."
            age = time.time() - self.archived_until / 1_000_000
            yield from metric_lines(f"{_PREFIX}age_seconds", "gauge", text, f"{max(0.0, age):.3f}")


_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 5.0
"""How often the lag is measured, which asks a broker."""


@dataclass(frozen=True)
class FlushSettings:
    """When rows are written, and how much is polled at once."""

    size: int = 64 << 20
    """So many bytes in memory are written. While they are, as many can gather; then polling waits."""
    age: float = 300.0
    """Rows wait at most so many seconds."""
    batch: int = 10_000
    idle: float = 0.2


class _PolledBatch(NamedTuple):
    epoch: int
    batch: SourceBatch


class Archiver:
    """Runs one archiver. It calls the source from one task at a time, and the archive from another."""

    def __init__(
        self,
        source: EventSource,
        archive: EventArchive,
        settings: FlushSettings | None = None,
        *,
        until_end: bool = False,
    ) -> None:
        self.metrics: Final = ArchiverMetrics()
        self._source = source
        self._archive = archive
        self._settings = settings or FlushSettings()
        self._until_end = until_end
        self._stop = asyncio.Event()
        self._retrier = Retrier(self.metrics, self._stop)
        self._flush_retrier = Retrier(self.metrics, asyncio.Event())  # what was polled is written also at the end
        self._builder = TableBuilder(source.topic)
        self._buffer = RowBuffer(source.topic)
        self._written: RowBuffer | None = None
        """What is being written."""
        self._flushing: asyncio.Task[None] | None = None
        self._look_at = 0.0
        self._epoch = 0
        """Counts how often reading began again: what was polled before isn't wanted."""

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Write what was polled, and end. Call it from the event loop's thread."""
        self._stop.set()

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested."""
        try:
            with suppress(StopRequested):
                await self._run()
            await self._flush()
            await self._finish_flush()
        finally:
            if self._flushing is not None:
                await asyncio.wait([self._flushing])

    async def _run(self) -> None:
        coming = asyncio.create_task(self._poll())
        try:
            while True:
                batch = await coming
                if self._stop.is_set():
                    await self._take(batch)
                    return
                coming = asyncio.create_task(self._poll())
                await self._take(batch)
                if self._is_due():
                    await asyncio.wait([coming])
                    await self._flush()
                await self._settle(coming)
                if self._until_end and not batch.batch and await self._is_done(coming):
                    return
        finally:
            await asyncio.wait([coming])
            _ = coming.cancelled() or coming.exception()  # so that nobody is told of an error that was raised already

    async def _poll(self) -> _PolledBatch:
        epoch, settings = self._epoch, self._settings
        batch = await self._retrier.run("the bus", lambda: self._source.poll(settings.batch, settings.idle))
        return _PolledBatch(epoch, batch)

    async def _take(self, polled: _PolledBatch) -> None:
        """Add a batch to the rows that wait, without what they have already: a rebalance can bring that again."""
        batch = polled.batch
        self.metrics.beat()
        self.metrics.has_polled = True
        self.metrics.outage = getattr(self._source, "outage", None)
        self.metrics.polled += len(batch.records)
        self.metrics.gaps += len(batch.gaps)
        for gap in batch.gaps:
            _log_gap(gap)
        if polled.epoch != self._epoch:  # polled before reading began again
            self._buffer.gaps += batch.gaps
            return
        if not (batch.records or batch.gaps or batch.next):
            return
        known = await self._expected(batch)
        first = first_offsets(batch.records)
        records = batch.records
        if any(first.get(each, at) < at for each, at in known.items()):
            records = tuple(record for record in records if record.offset >= known.get(record.partition, 0))
        table = await asyncio.to_thread(self._builder.build, records)
        self.metrics.undecoded += pc.sum(pc.equal(table["kind"], UNDECODED)).as_py() or 0
        self._buffer.add(table, replace(batch, records=records), known)
        self.metrics.buffered_bytes = self._buffer.size

    async def _expected(self, batch: SourceBatch) -> dict[BusPartition, int]:
        """Return where the partitions of a batch continue: behind what waits, what is being written, or the archive."""
        waiting = {**(self._written.end if self._written else {}), **self._buffer.end}
        unknown = [each for each in batch.next if each not in waiting]
        archived = await self._retrier.run("the archive", lambda: self._archive.ends_of(unknown)) if unknown else {}
        found = {**archived, **waiting}
        return {each: found[each] for each in batch.next if each in found}

    def _is_due(self) -> bool:
        if not self._buffer:
            return False
        return self._buffer.size >= self._settings.size or time.monotonic() - self._buffer.since >= self._settings.age

    async def _is_done(self, coming: asyncio.Task[_PolledBatch]) -> bool:
        """Return whether the end of the bus was reached and is archived."""
        epoch = self._epoch
        if (await coming).batch or await asyncio.to_thread(self._source.lag) != 0:
            return False
        await self._flush()
        await self._finish_flush()
        return epoch == self._epoch

    async def _flush(self) -> None:
        """Begin to write the rows that wait, when those before them are written. Nothing polls meanwhile."""
        await self._finish_flush()
        if isinstance(self._source, SharedSource):
            self._buffer.keep(self._source.owns)
        if not self._buffer:
            return
        self._written, self._buffer = self._buffer, RowBuffer(self._source.topic)
        self._flushing = asyncio.create_task(self._write(self._written))

    async def _write(self, buffer: RowBuffer) -> None:
        table, ranges = buffer.table(), buffer.ranges()
        await self._flush_retrier.run("the archive", lambda: self._archive.append(table, ranges))
        self.metrics.flushes += 1
        self.metrics.records += buffer.rows
        newest = pc.max(table["append_time"].cast("int64")).as_py() if table.num_rows else None
        self.metrics.archived_until = max(filter(None, (newest, self.metrics.archived_until)), default=None)

    async def _settle(self, coming: asyncio.Task[_PolledBatch]) -> None:
        """Confirm what was written, between two polls."""
        if self._flushing is not None and self._flushing.done():
            await asyncio.wait([coming])
            await self._finish_flush()
        if time.monotonic() >= self._look_at:
            await asyncio.wait([coming])
            self.metrics.lag = await asyncio.to_thread(self._source.lag)
            self._look_at = time.monotonic() + _LOOK_SECONDS

    async def _finish_flush(self) -> None:
        """Wait for the rows that are being written, and confirm their offsets."""
        flushing, written = self._flushing, self._written
        if flushing is None or written is None:
            return
        while not flushing.done():
            await asyncio.wait([flushing], timeout=_LOOK_SECONDS)
            await asyncio.to_thread(self._source.rest)
        self._flushing = self._written = None
        try:
            flushing.result()
        except OffsetsTakenError as e:
            await self._start_over(e, written)
        else:
            await asyncio.to_thread(self._source.done, written.end)

    async def _start_over(self, error: OffsetsTakenError, written: RowBuffer) -> None:
        """Discard all rows, and read again from where the archive ends. A source reports gaps once: they stay."""
        _LOG.warning("reading again from where the archive ends: %s", error)
        self.metrics.conflicts += 1
        self._epoch += 1
        gaps = [*written.gaps, *self._buffer.gaps]
        self._buffer = RowBuffer(self._source.topic, gaps=gaps)
        await self._flush_retrier.run("the bus", self._source.rewind)


def _log_gap(gap: OffsetGap) -> None:
    fields = {"partition": gap.partition.number, "first": gap.first, "end": gap.end, "reason": gap.reason.value}
    _LOG.warning("the bus lost records before they were read", extra={"headwater": fields})
