"""The pipeline of one process: maps mini-batches to rows, and merges them in one transaction with the offsets.

With several stores each gets its rows and offsets in transactions of its own. The bus is read from the smallest of
their offsets. So a store that was unreachable when a writer was killed gets what it missed; for the others those rows
are repetitions.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.known_rows import KnownRows
from headwater.consumers.writer.offsets import bus_work
from headwater.consumers.writer.pipeline import BatchResult, OneProcess
from headwater.consumers.writer.record_reader import MAX_INVALID, ReadResult, RecordReader
from headwater.consumers.writer.routes import MAIN_STORE, SHARED_KINDS, Routes
from headwater.events.avro import Codec
from headwater.lineage.bulk import BulkLineageMeta, EpochChanged, MergeResult, WriteBatch, WriterMarks
from headwater.lineage.rows import merge_by_key
from headwater.lineage.sql.errors import StoreDataError


@dataclass(frozen=True)
class StorePart:
    """What one store gets of a mini-batch."""

    records: Sequence[BusRecord]
    """Those whose rows it gets."""
    read: ReadResult
    work: WriteBatch
    """What goes with these rows: offsets, gaps, dead letters, and that events for other stores arrived."""
    epoch: int | None
    """The store's epoch before any row was left out."""


@dataclass(frozen=True)
class PreparedBatch:
    """What the stores get of a mini-batch, by their names."""

    parts: Mapping[str, StorePart]
    results: dict[str, BatchResult] = field(default_factory=dict)
    """Those of the stores that have finished."""


class StorePipeline(OneProcess):
    """Maps each event once, whichever stores it goes to."""

    def __init__(
        self,
        stores: Mapping[str, BulkLineageMeta],
        group: str,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MAX_INVALID,
        marks: Mapping[str, WriterMarks] | None = None,
    ) -> None:
        """`stores` are the main one, and others by the names of their catalogs. `marks` are, by the names of stores,
        those of a writer that also marks when it reads offsets."""
        self._about = (group, kind, topic)
        self._most_invalid = most_invalid
        self._codec, self._lock = Codec(), threading.Lock()
        self._stores = {name: _Target(meta, (marks or {}).get(name)) for name, meta in stores.items()}
        self._routes = Routes([name for name in stores if name != MAIN_STORE], self._codec)
        self._readers: dict[frozenset[str], RecordReader] = {}
        """One for each set of stores that events go to: what all of them have is left out."""
        self._events = self._reader(self._routes.stores)

    def prepare(self, batch: SourceBatch) -> PreparedBatch:
        epochs = {name: each.known.epoch for name, each in self._stores.items()}  # before anything is left out
        routed = self._routed(batch.records)
        reads = {route: self._reader(route).read(records) for route, records in routed.items()}
        work = bus_work(batch, *self._about)
        if len(self._stores) > 1:
            everywhere = [row for read in reads.values() for row in read.rows if row.kind in SHARED_KINDS]
            work = replace(work, rows=[*work.rows, *everywhere])
        parts = dict[str, StorePart]()
        for name, epoch in epochs.items():
            mine = [route for route in reads if name in route]
            records = [record for route in mine for record in routed[route]]
            parts[name] = StorePart(records, _join_results([reads[route] for route in mine]), work, epoch)
        letters = [letter for read in reads.values() for letter in read.dead_letters]
        letters.sort(key=lambda each: (each.partition, each.position))
        main = parts[MAIN_STORE]
        parts[MAIN_STORE] = replace(main, work=replace(work, dead_letters=letters))
        return PreparedBatch(parts)

    def start_over(self) -> None:
        for each in self._stores.values():
            each.start_over()

    def store(self, prepared: PreparedBatch) -> BatchResult:
        """Store rows, or dead letters. If a store fails, the next attempt skips those that have finished."""
        results = prepared.results
        for name, part in prepared.parts.items():
            if name not in results:
                results[name] = self._store(self._stores[name], part)
        return BatchResult(
            sum(each.rows for each in results.values()),
            sum(each.retries for each in results.values()),
            tuple(letter for each in results.values() for letter in each.dead_letters),
            sum(each.left_out for each in results.values()),
        )

    def _store(self, target: _Target, part: StorePart) -> BatchResult:
        try:
            merged = target.merge(part)
        except StoreDataError:
            events = list(self._events.event_rows(part.records))
            merged = target.meta.merge_events(events, target.marked(part.work))
        letters = (*part.work.dead_letters, *merged.refused)
        return BatchResult(merged.rows, merged.retries, letters, len(part.read.left_out))

    def _reader(self, route: frozenset[str]) -> RecordReader:
        known = self._readers.get(route)
        if known is None:
            _, kind, topic = self._about
            known = self._readers[route] = RecordReader(
                kind,
                topic,
                most_invalid=self._most_invalid,
                codec=self._codec,
                lock=self._lock,
                known=_KnownToAll([self._stores[name].known for name in route]),
            )
        return known

    def _routed(self, records: Sequence[BusRecord]) -> Mapping[frozenset[str], Sequence[BusRecord]]:
        if len(self._stores) == 1:
            return {self._routes.stores: records}
        found = defaultdict[frozenset[str], list[BusRecord]](list)
        with self._lock:
            for record in records:
                found[self._routes.of_data(record.data)].append(record)
        return found


class _Target:
    """One store, and what is known of it."""

    def __init__(self, meta: BulkLineageMeta, marks: WriterMarks | None) -> None:
        self.meta: Final = meta
        self.known: Final = KnownRows()
        self._marks = marks or WriterMarks()
        self._mark = self._marks.new()

    def start_over(self) -> None:
        """Forget what the store had: it was set back, and the bus is read again from its offsets."""
        self._marks.start_over()
        self.known.forget()

    def marked(self, work: WriteBatch) -> WriteBatch:
        return replace(work, mark=self._mark)

    def merge(self, part: StorePart) -> MergeResult:
        """Merge the rows, and remember the immutable ones. If the epoch has changed, merge the omitted rows too."""
        read, epoch = part.read, part.epoch
        work = self.marked(replace(part.work, rows=[*read.rows, *part.work.rows] if part.work.rows else read.rows))
        new, left_out = read.new, read.left_out
        if epoch is None:
            epoch = self.meta.epoch()
            self.known.set_epoch(epoch)
            if left_out:  # known since when, nobody can say
                work = replace(work, rows=[*work.rows, *left_out])
                new, left_out = [*new, *left_out], []
        try:
            merged = self.meta.merge(replace(work, epoch=epoch if left_out else None))
        except EpochChanged as e:
            epoch = e.epoch
            self.known.set_epoch(epoch)
            new = [*new, *left_out]
            merged = self.meta.merge(replace(work, rows=[*work.rows, *left_out]))
        self.known.add((row.id for row in new), epoch)
        return merged


class _KnownToAll:
    """The rows that all of several stores have."""

    def __init__(self, known: Sequence[KnownRows]) -> None:
        self._known = known

    def __contains__(self, number: object) -> bool:
        return all(number in each for each in self._known)


def _join_results(reads: Sequence[ReadResult]) -> ReadResult:
    """Return the rows of several routes, one of each key."""
    if len(reads) == 1:
        return reads[0]
    rows = list(merge_by_key(row for each in reads for row in each.rows).values())
    new = [row for each in reads for row in each.new]
    left_out = [row for each in reads for row in each.left_out]
    return ReadResult(rows, [], new, left_out)
