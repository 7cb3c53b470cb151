"""Several stores from one bus: each gets its rows in transactions of its own, and keeps the offsets itself.

The bus is read from the smallest of their offsets. So one that was away when a writer was killed gets what it missed,
and to the others it is nothing new.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headwater.consumers.sources import Batch, Taken
from headwater.consumers.writer.index import Index
from headwater.consumers.writer.plain import PlainPipeline, Prepared, Written
from headwater.consumers.writer.reading import MOST_INVALID, Read, Reader
from headwater.consumers.writer.routes import EVERYWHERE, MAIN, Routes
from headwater.events.avro import Codec
from headwater.lineage.bulk import BulkLineageMeta, DeadLetter, Partition
from headwater.lineage.law import collapsed
from headwater.lineage.rows import Row


@dataclass(frozen=True)
class RoutedPrepared:
    """A batch on its way into several stores."""

    batch: Batch = field(default_factory=Batch)
    parts: Mapping[str, Prepared] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)
    """By the stores that have theirs."""


class RoutedPipeline:
    """As the plain one is: `prepare` is for one thread at a time, `store` for another."""

    def __init__(
        self,
        stores: Mapping[str, BulkLineageMeta],
        of_catalogs: Mapping[str, str],
        group: str,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MOST_INVALID,
    ) -> None:
        """The stores by names, among which the main one is, and the name of its store by each catalog's."""
        codec, lock = Codec(), threading.Lock()

        def new(known: Container[bytes] = frozenset()) -> Reader:
            return Reader(kind, topic, most_invalid=most_invalid, codec=codec, lock=lock, known=known)

        self._routes = Routes(of_catalogs, codec)
        self._lock = lock
        self._new = new
        self._readers: dict[frozenset[str], Reader] = {}
        """What is learned on the way is learned for each set of stores that events go to."""
        self._pipelines = {
            name: PlainPipeline(store, group, kind, topic, reader=new()) for name, store in stores.items()
        }

    def prepare(self, batch: Batch) -> RoutedPrepared:
        epochs = {name: each.index.epoch for name, each in self._pipelines.items()}  # before anything is left out
        sorted_out = self._sorted_out(batch.records)
        reads = {route: self._reader(route).read(records) for route, records in sorted_out.items()}
        letters = [letter for read in reads.values() for letter in read.letters]
        everywhere = [row for read in reads.values() for row in read.rows if row.kind in EVERYWHERE]
        parts = dict[str, Prepared]()
        for name, epoch in epochs.items():
            mine = [(sorted_out[route], read) for route, read in reads.items() if name in route]
            parts[name] = self._part(name, batch, mine, epoch, everywhere)
        main = parts[MAIN]
        parts[MAIN] = main.with_letters(_in_order(letters))
        return RoutedPrepared(batch, parts)

    def store(self, prepared: RoutedPrepared) -> Written:
        """Where one of the stores is away, those that have theirs aren't asked again."""
        written = prepared.written
        for name, part in prepared.parts.items():
            if name not in written:
                written[name] = self._pipelines[name].store(part)
        each = written.values()
        return Written(
            len(prepared.batch.records),
            sum(one.rows for one in each),
            sum(one.letters for one in each),
            sum(one.retries for one in each),
            tuple(letter for one in each for letter in one.kept),
            sum(one.left_out for one in each),
        )

    def _reader(self, route: frozenset[str]) -> Reader:
        if route not in self._readers:
            self._readers[route] = self._new(_KnownToAll([self._pipelines[name].index for name in route]))
        return self._readers[route]

    def _part(
        self,
        name: str,
        batch: Batch,
        mine: Sequence[tuple[Sequence[Taken], Read]],
        epoch: int | None,
        everywhere: Sequence[Row],
    ) -> Prepared:
        records = [record for some, _ in mine for record in some]
        rows = list(collapsed(row for _, read in mine for row in read.rows).values())
        new = [row for _, read in mine for row in read.new]
        left_out = [row for _, read in mine for row in read.left_out]
        return self._pipelines[name].prepared(batch, records, Read(rows, [], new, left_out), epoch, everywhere)

    def _sorted_out(self, records: Sequence[Taken]) -> dict[frozenset[str], list[Taken]]:
        found = defaultdict[frozenset[str], list[Taken]](list)
        with self._lock:
            for record in records:
                found[self._routes.of_data(record.data)].append(record)
        return found


class _KnownToAll:
    """What each of several stores has."""

    def __init__(self, indexes: Sequence[Index]) -> None:
        self._indexes = indexes

    def __contains__(self, number: object) -> bool:
        return all(number in each for each in self._indexes)


def smallest(offsets: Iterable[Mapping[Partition, int]]) -> dict[Partition, int]:
    """Where all of several stores have what comes before. A partition that one of them doesn't know begins anew."""
    told = list(offsets)
    common = set(told[0]).intersection(*told[1:]) if told else set()
    return {partition: min(each[partition] for each in told) for partition in common}


def _in_order(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    return sorted(
        letters, key=lambda each: (each.partition.cluster, each.partition.topic, each.partition.number, each.position)
    )
