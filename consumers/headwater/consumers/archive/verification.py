"""Reads an archive from end to end: is each record as it was, and does each partition have every offset once?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from headwater.consumers.archive.columns import RECORD_COLUMNS, to_items
from headwater.consumers.archive.ordered_rows import missing_offsets
from headwater.consumers.archive.table import ArchivedPartition, ArchiveFile, ArchiveState, EventArchive
from headwater.consumers.sources.api import BusRecord, OffsetGap
from headwater.errors import HeadwaterError
from headwater.lineage.bulk import BusPartition

_MOST_RANGES: Final = 100


class ArchiveDamage(NamedTuple):
    """A file that isn't what was written, or a partition that has records twice."""

    path: str
    error: str


class UnarchivedOffsets(NamedTuple):
    """Offsets that were read and have no record in the archive."""

    partition: BusPartition
    topic: str
    first: int
    end: int
    why: str
    """`missing` where the bus had lost them, `expired` where retention removed them, else `no record`: a mark of a
    transaction, or a record that a compacted topic had dropped."""


class Verification:
    """Examines an archive file by file."""

    def __init__(self, archive: EventArchive) -> None:
        self._archive = archive
        self.state: ArchiveState = archive.refresh()
        self.damages: list[ArchiveDamage] = []
        self.unarchived: list[UnarchivedOffsets] = []
        self._gaps: list[tuple[OffsetGap, str]] = []
        self._offsets: dict[BusPartition, list[Any]] = {each: [] for each in self.state.partitions}

    def run(self) -> Iterator[ArchiveFile]:
        """Examine each file, and yield it afterwards; then look for offsets that are there twice or not at all."""
        for file in self.state.files:
            try:
                self._examine(file)
            except HeadwaterError as e:
                self.damages.append(ArchiveDamage(file.path, str(e)))
            yield file
        damaged = {each.path for each in self.damages}
        self._gaps = [*missing_offsets(self._archive, (each for each in self.state.files if each.path not in damaged))]
        for where, known in self.state.partitions.items():
            self._count(where, known)

    def _examine(self, file: ArchiveFile) -> None:
        opened = self._archive.open_file(file)
        with self._archive.reading(file):
            if opened is None:
                raise ValueError("it isn't there")
            found = list[int]()
            for group in range(opened.num_row_groups):
                rows = opened.read_row_group(group, columns=list(RECORD_COLUMNS))
                found += [each.offset for each in to_items(rows, file.partition) if isinstance(each, BusRecord)]
            self._offsets[file.partition].append(np.array(found, np.int64))
            if len(found) != file.records:
                raise ValueError(f"it has {len(found)} records instead of {file.records}")

    def _count(self, where: BusPartition, known: ArchivedPartition) -> None:
        found = np.sort(np.concatenate([np.empty(0, np.int64), *self._offsets[where]]))
        twice = int((np.diff(found) == 0).sum())
        if twice:
            name = f"{known.topic} partition {where.number}"
            self.damages.append(ArchiveDamage(name, f"{twice} records are there twice"))
        ends = np.concatenate(([known.first - 1], found, [known.next]))
        holes = np.flatnonzero(np.diff(ends) > 1)[:_MOST_RANGES]
        for first, end in zip((ends[holes] + 1).tolist(), ends[holes + 1].tolist(), strict=True):
            self.unarchived.append(UnarchivedOffsets(where, known.topic, first, end, self._why(where, first, end)))

    def _why(self, where: BusPartition, first: int, end: int) -> str:
        for gap, why in self._gaps:
            if gap.partition == where and gap.first <= first and (gap.end is None or end <= gap.end):
                return why
        return "no record"
