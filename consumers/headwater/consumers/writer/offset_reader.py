"""Reads the offsets from which a writer continues: the smallest of its stores.

Each reading is a transaction with a mark, so that the writer notices when a store is set back after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from headwater.lineage.bulk import BulkLineageMeta, BusPartition, StoreSetBack, WriteBatch, WriterMarks


class OffsetReader:
    """Reads offsets of a consumer group, for one thread at a time."""

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
