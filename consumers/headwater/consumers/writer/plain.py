"""The plain pipeline: what is polled is decoded, becomes rows, one for each key, and is merged with the offsets in one
transaction. Nothing is remembered from one batch to the next but what makes the next one quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headwater.consumers.sources import Batch, Taken
from headwater.consumers.writer.gaps import gap_rows
from headwater.consumers.writer.index import Index
from headwater.consumers.writer.reading import MOST_INVALID, Read, Reader
from headwater.lineage.bulk import (
    NOTHING,
    BulkLineageMeta,
    DeadLetter,
    EpochMoved,
    Ingest,
    Merged,
    Offset,
    Partition,
    Work,
)
from headwater.lineage.rows import Row
from headwater.lineage.sql.troubles import StoreDataError


@dataclass(frozen=True)
class Written:
    """What became of a batch."""

    events: int = 0
    rows: int = 0
    letters: int = 0
    retries: int = 0
    kept: tuple[DeadLetter, ...] = ()
    """The letters themselves."""
    left_out: int = 0
    """Rows that are known to be in the store."""


@dataclass(frozen=True)
class Prepared:
    """A batch on its way into the store."""

    batch: Batch = field(default_factory=Batch)
    work: Work = NOTHING
    """All but what events tell."""
    rows: Sequence[Row] = ()
    new: Sequence[Row] = ()
    """Those that last."""
    left_out: Sequence[Row] = ()
    """Those that the store had before."""
    epoch: int | None = None
    """Of the store, when it had them."""

    def with_letters(self, letters: Sequence[DeadLetter]) -> Prepared:
        return replace(self, work=replace(self.work, letters=tuple(letters)))


class PlainPipeline:
    """`prepare` is for one thread at a time, `store` for another: while one batch is merged, the next is prepared."""

    def __init__(
        self,
        store: BulkLineageMeta,
        group: str,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MOST_INVALID,
        reader: Reader | None = None,
    ) -> None:
        self._store = store
        self._group = group
        self._kind = kind
        self._topic = topic
        self.index = Index()
        self._reader = reader or Reader(kind, topic, most_invalid=most_invalid, known=self.index)

    def prepare(self, batch: Batch) -> Prepared:
        epoch = self.index.epoch  # before anything is left out
        read = self._reader.read(batch.records)
        return self.prepared(batch, batch.records, read, epoch).with_letters(read.letters)

    def prepared(
        self, batch: Batch, records: Sequence[Taken], read: Read, epoch: int | None, beside: Sequence[Row] = ()
    ) -> Prepared:
        """Where somebody else has read these records: all but their letters. `epoch` is the index's, as it was before
        that; `beside` are rows of other records."""
        work = self._work(batch, beside)
        rows = [*read.rows, *work.rows]
        return Prepared(replace(batch, records=tuple(records)), work, rows, read.new, read.left_out, epoch)

    def store(self, prepared: Prepared) -> Written:
        """All of it is in the store, or among its dead letters, when this comes back. Where it raises nothing is
        lost: the same is stored again, or comes again from the bus."""
        batch, work = prepared.batch, prepared.work
        try:
            merged = self._merged(prepared)
        except StoreDataError:
            merged = self._store.merge_events(list(self._reader.told(batch.records)), work)
        kept = (*work.letters, *merged.refused)
        return Written(len(batch.records), merged.rows, len(kept), merged.retries, kept, len(prepared.left_out))

    def _merged(self, prepared: Prepared) -> Merged:
        """What it leaves in the store needn't be told again."""
        rows, new, left_out, epoch = prepared.rows, prepared.new, prepared.left_out, prepared.epoch
        if epoch is None:
            epoch = self._store.epoch()
            self.index.begin(epoch)
            rows, new, left_out = [*rows, *left_out], [*new, *left_out], ()  # known since when, nobody can say
        try:
            merged = self._store.merge(replace(prepared.work, rows=rows, epoch=epoch if left_out else None))
        except EpochMoved as e:
            epoch = e.epoch
            self.index.begin(epoch)
            new = [*new, *left_out]
            merged = self._store.merge(replace(prepared.work, rows=[*rows, *left_out]))
        self.index.enter(new, epoch)
        return merged

    def _work(self, batch: Batch, beside: Sequence[Row]) -> Work:
        ingests = [Ingest(self._kind, partition, at, self._topic) for partition, at in stored_until(batch).items()]
        offsets = [Offset(self._group, partition, at) for partition, at in batch.next.items()]
        gaps = [row for hole in batch.holes for row in gap_rows(hole, self._topic)]
        return Work([*gaps, *beside], (), ingests, offsets)


def stored_until(batch: Batch) -> dict[Partition, int]:
    """Up to when all of a partition is here once this batch is: the last record's time, or where its end was seen."""
    until = dict(batch.ends)
    until.update((each.partition, each.appended) for each in batch.records if each.appended is not None)
    return {partition: max(at, batch.ends.get(partition, at)) for partition, at in until.items()}
