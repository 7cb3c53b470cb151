"""On the driver: has the records of a micro-batch read and written by tasks, and then moves the store's offsets.

Offsets follow rows: they move in one transaction, after all tasks have acknowledged, and only forward. A driver that
dies before it leaves rows and no offsets; whoever comes next reads the same records and writes the same rows. So a
driver that lives on beside its successor does no harm either.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources import OffsetGap, SourceBatch
from headwater.consumers.spark.pipeline.jobs import job_errors, small_arrow_batches
from headwater.consumers.spark.pipeline.reading_tasks import BusReading, reading_task
from headwater.consumers.spark.pipeline.shares import SCHEMA, Reached, add_reached, shuffle_keys
from headwater.consumers.spark.pipeline.writing_tasks import (
    StoreWriting,
    TaskReply,
    retry_transient,
    single_events_task,
    writing_task,
)
from headwater.consumers.writer.metrics import log_dead_letters
from headwater.consumers.writer.offsets import OffsetReader, bus_work
from headwater.consumers.writer.processes.instants import Instant
from headwater.consumers.writer.processes.timeline import Timeline
from headwater.consumers.writer.record_reader import RecordReader
from headwater.events.health import GapReason
from headwater.lineage.bulk import (
    BulkLineageMeta,
    BusPartition,
    DatabaseBulkMeta,
    EpochChanged,
    InstantState,
    StoreSetBack,
    WriteBatch,
    WriterInstant,
)
from headwater.lineage.sql.errors import StoreDataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG: Final = logging.getLogger(__name__)
_MAIN: Final = ""
_NUMBERS: Final = 1 << 20
"""So many transactions of a bucket a micro-batch may have; a bucket's mark counts on behind them."""


@dataclass
class PipelineFigures:
    """What a pipeline has stored."""

    batches: int = 0
    events: int = 0
    rows: int = 0
    dead_letters: int = 0
    retries: int = 0
    repeats: int = 0
    """Micro-batches whose events were written one by one: one was refused, or something was deleted meanwhile."""
    set_backs: int = 0
    """How often the store turned out to have lost transactions."""

    def totals(self) -> dict[str, int]:
        return asdict(self)


RangesByPartition: TypeAlias = Mapping[BusPartition, BusRange]


@dataclass(frozen=True)
class SparkBatch:
    """Records that are to be stored together, of one topic."""

    ranges: RangesByPartition
    """Their offsets, which the store's move to the ends of; empty where nobody knows them."""
    frame: Callable[[], DataFrame]
    """Returns the records, with the columns of `records.COLUMNS`."""
    available: Callable[[], RangesByPartition]
    """Returns what the bus has now. Raises an error if the topic was made anew, so that offsets mean something else."""


@dataclass(frozen=True)
class BatchSettings:
    """How micro-batches are written, whatever the store is."""

    group: str
    """Whose offsets these are in the store."""
    buckets: int
    most_records: int
    """A micro-batch has about so many records."""
    stopping: Callable[[], bool] = lambda: False


class OrderedBatches:
    """Keeps the order of one topic's micro-batches: rows, then offsets. For one thread."""

    def __init__(
        self,
        meta: BulkLineageMeta,
        patience: float,
        bus: BusReading,
        settings: BatchSettings,
        figures: PipelineFigures,
    ) -> None:
        """`meta` is the driver's own connection to the store, for which it waits `patience` seconds.

        `figures` are added to.
        """
        self.figures: Final = figures
        self._meta = meta
        self._patience = patience
        self._bus = bus
        self._settings = settings
        self._keys: list[int] = []
        self._offsets = OffsetReader({_MAIN: meta}, settings.group)
        marks = self._offsets.marks[_MAIN]
        self._marks = marks
        self._mark = marks.new()
        self._timeline = Timeline(meta, RecordReader(bus.kind, bus.topic_name), bus.kind, settings.group, marks)
        self._number = 0

    def begin(self, partitions: Sequence[BusPartition]) -> None:
        """Give up the instants of dead drivers, and record which partitions there are."""
        retry_transient(self._timeline.give_up_orphans, self._patience)
        self._merge(self._bus_work(ends=dict.fromkeys(partitions, 0)))

    def stored_offsets(self) -> dict[BusPartition, int]:
        """Return the store's next offset of each partition."""
        return retry_transient(lambda: self._offsets(self._bus.cluster), self._patience)

    def write(self, batch: SparkBatch) -> bool:
        """Store a micro-batch. Return False if it has to be formed anew, because the store lost what it had.

        After an error it can be written again. Raises StopRequested if nothing may begin any more.
        """
        if self._settings.stopping():
            raise StopRequested
        return self._unless_set_back(lambda: self._write(batch))

    def record_ends(self, ends: RangesByPartition, until: int) -> None:
        """Record that partitions which are stored up to these ends are complete until this time."""
        stored = self.stored_offsets()
        reached = {each: until for each, available in ends.items() if stored.get(each, 0) >= available.end}
        if reached:
            self._unless_set_back(lambda: self._merge(self._bus_work(ends=reached)))

    def record_gaps(self, gaps: Sequence[OffsetGap]) -> None:
        """Record what is lost, and move offsets past what expired."""
        expired = {each.partition: each.end for each in gaps if each.end and each.reason is GapReason.LOG_EXPIRED}
        work = self._bus_work(following=expired, gaps=tuple(gaps))
        while gaps and not self._unless_set_back(lambda: self._merge(work)):
            pass

    def _unless_set_back(self, work: Callable[[], None]) -> bool:
        """Return whether the work was done. It has to be done again where the store lost what it had."""
        try:
            work()
        except StoreSetBack as e:
            self.figures.set_backs += 1
            _LOG.warning("%s; the bus is read again from the offsets that the store has now", e)
            self._marks.start_over()
            return False
        return True

    def _write(self, batch: SparkBatch) -> None:
        self._number += 1
        ends = {each: found.end for each, found in batch.ranges.items()}
        instant = Instant(self._number, SourceBatch((), ends))
        epoch = retry_transient(lambda: self._timeline.open(instant), self._patience)
        with job_errors(self._settings.stopping):
            frame = batch.frame()
            self._keys = self._keys or shuffle_keys(frame.sparkSession, self._settings.buckets)
            with small_arrow_batches(frame):
                replies = self._run_tasks(batch, frame, epoch)
        self._record(replies)

    def _run_tasks(self, batch: SparkBatch, frame: DataFrame, epoch: int) -> list[TaskReply]:
        """Have the records read and written, then call `_complete`. Return what the tasks have done."""
        raise NotImplementedError

    def _complete(self, batch: SparkBatch, replies: Sequence[TaskReply], epoch: int | None) -> None:
        reached, available = self._reached(replies), batch.available()
        gaps = [gap for each in replies for gap in each.gaps]
        gaps += _expired_gaps(batch.ranges, reached, available)
        times = {each: found.append_time for each, found in reached.items() if found.append_time is not None}
        ends = {each: found.end for each, found in batch.ranges.items()}
        work = self._bus_work(following=ends, ends=times, gaps=tuple(gaps))
        tombstones = [row for each in replies for row in each.tombstones]
        done = WriterInstant(self._timeline.writer, self._number, InstantState.COMPLETED)
        self._merge(replace(work, rows=[*work.rows, *tombstones], instants=[done], epoch=epoch))

    def _reached(self, replies: Sequence[TaskReply]) -> dict[BusPartition, Reached]:
        found: dict[BusPartition, Reached] = {}
        for reply in replies:
            for number, each in reply.reached.items():
                add_reached(found, {BusPartition(self._bus.cluster, self._bus.topic, number): each})
        return found

    def _bus_work(
        self,
        *,
        following: Mapping[BusPartition, int] | None = None,
        ends: Mapping[BusPartition, int] | None = None,
        gaps: tuple[OffsetGap, ...] = (),
    ) -> WriteBatch:
        batch = SourceBatch((), following or {}, gaps, ends or {})
        return bus_work(batch, self._settings.group, self._bus.kind, self._bus.topic_name)

    def _merge(self, work: WriteBatch) -> None:
        retry_transient(lambda: self._meta.merge(replace(work, mark=self._mark)), self._patience)

    def _record(self, replies: Sequence[TaskReply]) -> None:
        figures = self.figures
        figures.batches += 1
        figures.events += sum(each.events for each in self._reached(replies).values())
        figures.rows += sum(each.rows + len(each.tombstones) for each in replies)
        figures.retries += sum(each.retries for each in replies)
        figures.dead_letters += sum(each.letters for each in replies)
        for each in replies:
            log_dead_letters(each.shown_letters)


class BatchWriter(OrderedBatches):
    """Writes micro-batches into a database: each bucket's task merges its rows by a connection of its own."""

    def __init__(
        self,
        meta: DatabaseBulkMeta,
        store: StoreWriting,
        bus: BusReading,
        settings: BatchSettings,
        figures: PipelineFigures,
    ) -> None:
        super().__init__(meta, store.patience, bus, settings, figures)
        self._store = store
        self._bucket_marks = [self._marks.new() for _ in range(settings.buckets)]

    def _run_tasks(self, batch: SparkBatch, frame: DataFrame, epoch: int) -> list[TaskReply]:
        replies = self._run_by_buckets(frame, epoch)
        for each in replies:
            if each.mark_number:
                self._bucket_marks[each.bucket].acknowledge(each.mark_number)
        is_complete = not any(each.is_refused or each.is_stale for each in replies)
        if is_complete:
            try:
                self._complete(batch, replies, epoch)
            except (EpochChanged, StoreDataError):
                is_complete = False
        if not is_complete:
            self.figures.repeats += 1
            _LOG.info("events are written one by one: one was refused, or something was deleted meanwhile")
            replies = self._run_one_by_one(frame)
            self._complete(batch, replies, None)
        return replies

    def _run_by_buckets(self, frame: DataFrame, epoch: int) -> list[TaskReply]:
        shares = frame.mapInArrow(reading_task(self._bus, self._keys), SCHEMA)
        marks = [each.id for each in self._bucket_marks]
        write = writing_task(self._store, self._keys, marks, epoch, self._number * _NUMBERS)
        by_bucket = shares.repartition(len(self._keys), "key")
        return by_bucket.rdd.mapPartitions(write).collect()

    def _run_one_by_one(self, frame: DataFrame) -> list[TaskReply]:
        written = frame.mapInArrow(single_events_task(self._bus, self._store), SCHEMA)
        return [pickle.loads(row.data) for row in written.collect()]  # noqa: S301 - a task of ours packed it


def _expired_gaps(
    ranges: RangesByPartition, reached: Mapping[BusPartition, Reached], available: RangesByPartition
) -> list[OffsetGap]:
    """Return what expired on the bus while it was being read. Spark passes over it without a word."""
    gaps = []
    for partition, each in ranges.items():
        first_read = reached[partition].first if partition in reached else each.end
        oldest = available[partition].first if partition in available else each.first
        end = min(first_read, oldest)
        if end > each.first:
            gaps.append(OffsetGap(partition, each.first, end, GapReason.LOG_EXPIRED))
    return gaps
