"""What a writer reads and records of the bus: its offsets, up to when partitions are stored, and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from headwater.consumers.sources import OffsetGap, SourceBatch
from headwater.consumers.sources.gap_events import gap_event
from headwater.lineage.bulk import (
    BulkLineageMeta,
    BusPartition,
    ConsumerOffset,
    IngestProgress,
    StoreSetBack,
    WriteBatch,
    WriterMarks,
)
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row
from headwater.lineage.rows import tables as t


class OffsetReader:
    """Reads the offsets from which a writer continues, the smallest of its stores; for one thread at a time.

    Each reading is a transaction with a mark, so that the writer notices when a store is set back after it.
    """

    def __init__(self, stores: Mapping[str, BulkLineageMeta], group: str) -> None:
        self.marks: Final = {name: WriterMarks() for name in stores}
        """By the names of stores, for the pipelines that write into them."""
        self._stores = [(store, self.marks[name].new()) for name, store in stores.items()]
        self._group = group

    def __call__(self, cluster: str) -> dict[BusPartition, int]:
        """Return the next offset of each partition of a cluster."""
        for store, mark in self._stores:
            with suppress(StoreSetBack):  # whoever writes next is told so
                store.merge(WriteBatch(mark=mark))
        return smallest_offsets(store.offsets(self._group, cluster) for store, _ in self._stores)


def smallest_offsets(offsets: Iterable[Mapping[BusPartition, int]]) -> dict[BusPartition, int]:
    """Return the smallest offset of each partition. A partition that a store doesn't know begins from the start."""
    known_offsets = list(offsets)
    common = set(known_offsets[0]).intersection(*known_offsets[1:]) if known_offsets else set()
    return {partition: min(each[partition] for each in known_offsets) for partition in common}


def bus_work(batch: SourceBatch, group: str, kind: str, topic: str) -> WriteBatch:
    """Return what a batch says of the bus: offsets, up to when partitions are stored, and gaps."""
    return WriteBatch(
        rows=[row for offset_gap in batch.gaps for row in gap_rows(offset_gap, topic)],
        ingests=[IngestProgress(kind, partition, at, topic) for partition, at in _stored_until(batch).items()],
        offsets=[ConsumerOffset(group, partition, at) for partition, at in batch.next.items()],
    )


def gap_rows(offset_gap: OffsetGap, topic: str) -> Iterator[Row]:
    """Return the rows of the Gap. Everybody who finds the same gap writes the same rows."""
    return (row for row in map_event(gap_event(offset_gap, topic)) if row.kind == t.GAP)


def _stored_until(batch: SourceBatch) -> dict[BusPartition, int]:
    """Return the time up to which each partition is stored after this batch."""
    until = dict(batch.ends)
    until.update((each.partition, each.append_time) for each in batch.records if each.append_time is not None)
    return {partition: max(at, batch.ends.get(partition, at)) for partition, at in until.items()}
