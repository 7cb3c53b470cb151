"""Examines an archive: is each file what was written, and does each partition have every offset once?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from headwater.consumers.archive.arrow import pc
from headwater.consumers.archive.directory import ParquetArchive
from headwater.consumers.archive.files import digest_of, spans_of
from headwater.consumers.archive.state import ArchivedPartition, ArchiveFile, ArchiveState
from headwater.errors import HeadwaterError
from headwater.lineage.bulk import BusPartition

_PLACE: Final = ("cluster", "topic_id", "partition", "offset")
_MOST_RANGES: Final = 100


class DamagedFile(NamedTuple):
    """A file that isn't what was written."""

    path: str
    error: str


class UnarchivedOffsets(NamedTuple):
    """Offsets that were read and have no record in the archive."""

    partition: BusPartition
    topic: str
    first: int
    end: int
    why: str
    """`gap` where the bus had lost them, `expired` where retention removed them, else `no record`: a mark of a
    transaction, or a record that a compacted topic had dropped."""


class Verification:
    """Examines an archive file by file."""

    def __init__(self, archive: ParquetArchive) -> None:
        self._archive = archive
        self.state: ArchiveState = archive.refresh()
        self.damages: list[DamagedFile] = []
        self.unarchived: list[UnarchivedOffsets] = []
        self._seen: dict[BusPartition, Any] = {
            each: np.zeros(max(0, known.next - known.first), np.uint8) for each, known in self.state.partitions.items()
        }

    def run(self) -> Iterator[ArchiveFile]:
        """Examine each file, and yield it afterwards; then look for offsets without a record."""
        for file in self.state.files.values():
            error = self._examine(file)
            if error is not None:
                self.damages.append(DamagedFile(file.path, error))
            yield file
        for partition, known in self.state.partitions.items():
            self.unarchived += self._unarchived(partition, known)

    def _examine(self, file: ArchiveFile) -> str | None:
        try:
            table = self._archive.read(file, _PLACE)
            path = self._archive.path_of(file)
            if path.stat().st_size != file.size or digest_of(path) != file.sha256:
                return "its bytes aren't those that were written"
        except (OSError, HeadwaterError) as e:
            return str(e).strip().partition("\n")[0]
        if spans_of(table) != file.spans:
            return "its offsets aren't those that were written"
        return self._count(table)

    def _count(self, table: Any) -> str | None:
        for span in spans_of(table):
            mask = pc.and_(
                pc.equal(table["partition"], span.partition.number),
                pc.equal(table["topic_id"], span.partition.topic),
            )
            seen, first = self._seen.get(span.partition), self._first(span.partition)
            if seen is None or span.first < first or span.last - first >= len(seen):
                return "it has offsets that the archive's log doesn't have"
            at = table.filter(mask)["offset"].to_numpy() - first
            np.add.at(seen, at, 1)
            if (seen[at] > 1).any():
                return f"partition {span.partition.number}: it has offsets that another file has too"
        return None

    def _first(self, partition: BusPartition) -> int:
        return self.state.partitions[partition].first

    def _unarchived(self, partition: BusPartition, known: ArchivedPartition) -> list[UnarchivedOffsets]:
        empty = np.flatnonzero(np.diff(np.concatenate(([1], self._seen[partition] != 0, [1])).astype(np.int8)))
        found = [(int(a) + known.first, int(b) + known.first) for a, b in zip(empty[::2], empty[1::2], strict=True)]
        return [
            UnarchivedOffsets(partition, known.topic, first, end, self._why(partition, first, end))
            for first, end in found[:_MOST_RANGES]
        ]

    def _why(self, partition: BusPartition, first: int, end: int) -> str:
        known: Mapping[BusPartition, ArchivedPartition] = self.state.partitions
        if end <= known[partition].expired:
            return "expired"
        gaps = (each for each in self.state.gaps if each.partition == partition)
        return "gap" if any(gap.first <= first and (gap.end is None or end <= gap.end) for gap in gaps) else "no record"
