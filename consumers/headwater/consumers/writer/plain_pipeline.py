"""The plain pipeline: maps the records of one poll to rows, and merges them in one transaction with the offsets. It
keeps nothing from batch to batch except caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.bus_gaps import gap_rows
from headwater.consumers.writer.known_rows import KnownRows
from headwater.consumers.writer.pipeline import BatchResult, OneProcess
from headwater.consumers.writer.record_reader import MAX_INVALID, ReadResult, RecordReader
from headwater.lineage.bulk import (
    EMPTY_BATCH,
    BulkLineageMeta,
    BusPartition,
    ConsumerOffset,
    DeadLetter,
    EpochChanged,
    IngestProgress,
    MergeResult,
    WriteBatch,
    WriterMarks,
)
from headwater.lineage.rows import Row
from headwater.lineage.sql.errors import StoreDataError


@dataclass(frozen=True)
class PreparedBatch:
    """A batch that is ready to be stored."""

    batch: SourceBatch = field(default_factory=SourceBatch)
    work: WriteBatch = EMPTY_BATCH
    """Everything except the rows of events."""
    rows: Sequence[Row] = ()
    new: Sequence[Row] = ()
    """The immutable rows among `rows`."""
    left_out: Sequence[Row] = ()
    """Rows that the store has already."""
    epoch: int | None = None
    """The store's epoch at which it had them."""

    def with_dead_letters(self, letters: Sequence[DeadLetter]) -> PreparedBatch:
        return replace(self, work=replace(self.work, dead_letters=tuple(letters)))


class PlainPipeline(OneProcess):
    """The writer's pipeline into one store."""

    def __init__(
        self,
        store: BulkLineageMeta,
        group: str,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MAX_INVALID,
        reader: RecordReader | None = None,
        marks: WriterMarks | None = None,
    ) -> None:
        """`marks` are those of a writer that also marks when it reads offsets."""
        self._store = store
        self._marks = marks or WriterMarks()
        self._mark = self._marks.new()
        self._group = group
        self._kind = kind
        self._topic = topic
        self.index = KnownRows()
        self._reader = reader or RecordReader(kind, topic, most_invalid=most_invalid, known=self.index)

    def prepare(self, batch: SourceBatch) -> PreparedBatch:
        epoch = self.index.epoch  # before anything is left out
        read = self._reader.read(batch.records)
        return self.prepare_rows(batch, batch.records, read, epoch).with_dead_letters(read.dead_letters)

    def prepare_rows(
        self,
        batch: SourceBatch,
        records: Sequence[BusRecord],
        read: ReadResult,
        epoch: int | None,
        beside: Sequence[Row] = (),
    ) -> PreparedBatch:
        """Prepare records that were mapped elsewhere, without their dead letters. `epoch` is the cache's epoch before
        mapping; `beside` are rows of other records."""
        work = self._work(batch, beside)
        rows = [*read.rows, *work.rows]
        records_only = replace(batch, records=tuple(records))
        return PreparedBatch(records_only, work, rows, read.new, read.left_out, epoch)

    def start_over(self) -> None:
        """Forget what the store had: it was set back, and the bus is read again from its offsets."""
        self._marks.start_over()
        self.index.forget()

    def store(self, prepared: PreparedBatch) -> BatchResult:
        """Store rows, or dead letters."""
        batch, work = prepared.batch, prepared.work
        try:
            merged = self._merged(prepared)
        except StoreDataError:
            merged = self._store.merge_events(list(self._reader.event_rows(batch.records)), work)
        dead_letters = (*work.dead_letters, *merged.refused)
        return BatchResult(merged.rows, merged.retries, dead_letters, len(prepared.left_out))

    def _merged(self, prepared: PreparedBatch) -> MergeResult:
        """Merge the rows, and remember the immutable ones. If the epoch has changed, merge the omitted rows too."""
        rows, new, left_out, epoch = prepared.rows, prepared.new, prepared.left_out, prepared.epoch
        work = prepared.work
        if epoch is None:
            epoch = self._store.epoch()
            self.index.set_epoch(epoch)
            rows, new, left_out = [*rows, *left_out], [*new, *left_out], ()  # known since when, nobody can say
        try:
            merged = self._store.merge(replace(work, rows=rows, epoch=epoch if left_out else None))
        except EpochChanged as e:
            epoch = e.epoch
            self.index.set_epoch(epoch)
            new = [*new, *left_out]
            merged = self._store.merge(replace(work, rows=[*rows, *left_out]))
        self.index.add((row.id for row in new), epoch)
        return merged

    def _work(self, batch: SourceBatch, beside: Sequence[Row]) -> WriteBatch:
        work = bus_work(batch, self._group, self._kind, self._topic)
        return replace(work, rows=[*work.rows, *beside], mark=self._mark)


def bus_work(batch: SourceBatch, group: str, kind: str, topic: str) -> WriteBatch:
    """Return what a batch says of the bus: offsets, up to when partitions are stored, and gaps."""
    return WriteBatch(
        rows=[row for offset_gap in batch.gaps for row in gap_rows(offset_gap, topic)],
        ingests=[IngestProgress(kind, partition, at, topic) for partition, at in stored_until(batch).items()],
        offsets=[ConsumerOffset(group, partition, at) for partition, at in batch.next.items()],
    )


def stored_until(batch: SourceBatch) -> dict[BusPartition, int]:
    """Return the time up to which each partition is stored after this batch."""
    until = dict(batch.ends)
    until.update((each.partition, each.append_time) for each in batch.records if each.append_time is not None)
    return {partition: max(at, batch.ends.get(partition, at)) for partition, at in until.items()}
