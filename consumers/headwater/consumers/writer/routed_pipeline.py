"""Writes into several stores from one bus. Each store gets its rows and offsets in transactions of its own.

The bus is read from the smallest of their offsets. So a store that was unreachable when a writer was killed gets what
it missed; for the others those rows are repetitions.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.known_rows import KnownRows
from headwater.consumers.writer.pipeline import BatchResult, OneProcess
from headwater.consumers.writer.plain_pipeline import PlainPipeline, PreparedBatch
from headwater.consumers.writer.record_reader import MAX_INVALID, ReadResult, RecordReader
from headwater.consumers.writer.routes import MAIN_STORE, SHARED_KINDS, Routes
from headwater.events.avro import Codec
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter, WriterMarks
from headwater.lineage.rows import Row, merge_by_key


@dataclass(frozen=True)
class RoutedBatch:
    """A batch on its way into several stores."""

    batch: SourceBatch = field(default_factory=SourceBatch)
    parts: Mapping[str, PreparedBatch] = field(default_factory=dict)
    written: dict[str, BatchResult] = field(default_factory=dict)
    """The results of the stores that have finished."""


class RoutedPipeline(OneProcess):
    """Like `PlainPipeline`: `prepare` is for one thread, `store` for another."""

    def __init__(
        self,
        stores: Mapping[str, BulkLineageMeta],
        of_catalogs: Mapping[str, str],
        group: str,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MAX_INVALID,
        marks: Mapping[str, WriterMarks] | None = None,
    ) -> None:
        """`stores` by name, including the main store; `of_catalogs` maps each catalog's name to its store's; `marks`
        are by the names of stores."""
        marks = marks or {}
        codec, lock = Codec(), threading.Lock()

        def new(known: Container[bytes] = frozenset()) -> RecordReader:
            return RecordReader(kind, topic, most_invalid=most_invalid, codec=codec, lock=lock, known=known)

        self._routes = Routes(of_catalogs, codec)
        self._lock = lock
        self._new = new
        self._readers: dict[frozenset[str], RecordReader] = {}
        """One for each set of stores that events go to: what all of them have is left out."""
        self._pipelines = {
            name: PlainPipeline(store, group, kind, topic, reader=new(), marks=marks.get(name))
            for name, store in stores.items()
        }

    def prepare(self, batch: SourceBatch) -> RoutedBatch:
        epochs = {name: each.index.epoch for name, each in self._pipelines.items()}  # before anything is left out
        sorted_out = self._sorted_out(batch.records)
        reads = {route: self._reader(route).read(records) for route, records in sorted_out.items()}
        letters = [letter for read in reads.values() for letter in read.dead_letters]
        everywhere = [row for read in reads.values() for row in read.rows if row.kind in SHARED_KINDS]
        parts = dict[str, PreparedBatch]()
        for name, epoch in epochs.items():
            mine = [(sorted_out[route], read) for route, read in reads.items() if name in route]
            parts[name] = self._part(name, batch, mine, epoch, everywhere)
        main = parts[MAIN_STORE]
        parts[MAIN_STORE] = main.with_dead_letters(_in_order(letters))
        return RoutedBatch(batch, parts)

    def start_over(self) -> None:
        """Forget what all stores had: one was set back, and the bus is read again from the smallest offsets."""
        for each in self._pipelines.values():
            each.start_over()

    def store(self, prepared: RoutedBatch) -> BatchResult:
        """Store the batch. If a store fails, the next attempt skips those that have finished."""
        written = prepared.written
        for name, part in prepared.parts.items():
            if name not in written:
                written[name] = self._pipelines[name].store(part)
        each = written.values()
        return BatchResult(
            sum(one.rows for one in each),
            sum(one.retries for one in each),
            tuple(letter for one in each for letter in one.dead_letters),
            sum(one.left_out for one in each),
        )

    def _reader(self, route: frozenset[str]) -> RecordReader:
        if route not in self._readers:
            self._readers[route] = self._new(_KnownToAll([self._pipelines[name].index for name in route]))
        return self._readers[route]

    def _part(
        self,
        name: str,
        batch: SourceBatch,
        mine: Sequence[tuple[Sequence[BusRecord], ReadResult]],
        epoch: int | None,
        everywhere: Sequence[Row],
    ) -> PreparedBatch:
        records = [record for some, _ in mine for record in some]
        rows = list(merge_by_key(row for _, read in mine for row in read.rows).values())
        new = [row for _, read in mine for row in read.new]
        left_out = [row for _, read in mine for row in read.left_out]
        return self._pipelines[name].prepare_rows(
            batch, records, ReadResult(rows, [], new, left_out), epoch, everywhere
        )

    def _sorted_out(self, records: Sequence[BusRecord]) -> dict[frozenset[str], list[BusRecord]]:
        found = defaultdict[frozenset[str], list[BusRecord]](list)
        with self._lock:
            for record in records:
                found[self._routes.of_data(record.data)].append(record)
        return found


class _KnownToAll:
    """The rows that all of several stores have."""

    def __init__(self, indexes: Sequence[KnownRows]) -> None:
        self._indexes = indexes

    def __contains__(self, number: object) -> bool:
        return all(number in each for each in self._indexes)


def _in_order(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    return sorted(
        letters, key=lambda each: (each.partition.cluster, each.partition.topic, each.partition.number, each.position)
    )
