"""Reads the rows of one partition of the bus in the order of their offsets.

Files of an archive are sorted, and mostly follow each other, so few rows are in memory at once. Where offsets of files
or of row groups overlap, rows wait until nothing that isn't read yet can come before them.

Reads an archive from end to end: is each record as it was, and does each partition have every offset once?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from headwater.consumers.archive.arrow import ArrowTable, pa, pc
from headwater.consumers.archive.columns import RECORD_COLUMNS, to_items
from headwater.consumers.archive.table import ArchivedPartition, ArchiveFile, ArchiveState, EventArchive
from headwater.consumers.sources.api import BusRecord, OffsetGap
from headwater.errors import HeadwaterError, TransientError
from headwater.lineage.bulk import BusPartition

_LAST: Final = (1 << 63) - 1


class SortedRows(NamedTuple):
    """Rows in order."""

    rows: ArrowTable
    file: ArchiveFile
    """Where the last of them come from."""
    bound: int
    """What comes later has no offset before it."""


class ReplacedFileError(TransientError):
    """A file isn't there: it was replaced, or it is lost."""


def ordered_rows(
    archive: EventArchive, files: Iterable[ArchiveFile], at: int = 0, columns: Sequence[str] = RECORD_COLUMNS
) -> Iterator[SortedRows]:
    """Yield the rows of a partition's files from an offset on, in the order of offsets."""
    wanted = sorted((each for each in files if each.end > at), key=lambda file: (file.first, file.end, file.path))
    waiting: list[ArrowTable] = []
    for number, file in enumerate(wanted):
        opened = archive.open_file(file)
        if opened is None:
            raise ReplacedFileError(f"{archive.name_of(file)} isn't there: restore it from a copy of the archive")
        following = wanted[number + 1].first if number + 1 < len(wanted) else _LAST
        with archive.reading(file):
            firsts = [*_first_offsets(opened), following]
        for group in range(opened.num_row_groups):
            with archive.reading(file):
                rows = opened.read_row_group(group, columns=list(columns))
                rows = rows.filter(_is_wanted(rows, at))
                found = pa.concat_tables([*waiting, rows]).sort_by([("offset", "ascending"), ("gap_end", "ascending")])
            bound = min(firsts[group + 1 :])
            free = pc.sum(pc.less(found["offset"], bound)).as_py() or 0
            waiting = [found.slice(free)] if free < found.num_rows else []
            if free:
                yield SortedRows(found.slice(0, free), file, bound)


def missing_offsets(archive: EventArchive, files: Iterable[ArchiveFile]) -> Iterator[tuple[OffsetGap, str]]:
    """Yield the gaps in files, each with the kind of its row: `missing` or `expired`."""
    for file in files:
        opened = archive.open_file(file) if file.gaps else None
        if opened is not None:
            with archive.reading(file):
                rows = opened.read(columns=list(RECORD_COLUMNS))
                rows = rows.filter(pc.is_null(rows["checksum"]))
                found = [item for item in to_items(rows, file.partition) if isinstance(item, OffsetGap)]
            yield from zip(found, rows["kind"].to_pylist(), strict=True)


def _is_wanted(rows: ArrowTable, at: int) -> Any:
    """Records from an offset on, and gaps that end behind it."""
    ends = pc.fill_null(rows["gap_end"], -1)
    return pc.or_(pc.greater_equal(rows["offset"], at), pc.greater(ends, at))


def _first_offsets(opened: Any) -> list[int]:
    """Return the least offset of each row group."""
    groups = [opened.metadata.row_group(number) for number in range(opened.num_row_groups)]
    return [
        column.statistics.min
        for group in groups
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema == "offset"
    ]


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
        self._offsets: dict[BusPartition, list[Any]] = {partition: [] for partition in self.state.partitions}

    def run(self) -> Iterator[ArchiveFile]:
        """Examine each file, and yield it afterwards; then look for offsets that are there twice or not at all."""
        for file in self.state.files:
            try:
                self._examine(file)
            except HeadwaterError as e:
                self.damages.append(ArchiveDamage(file.path, str(e)))
            yield file
        damaged = {damage.path for damage in self.damages}
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
                found += [item.offset for item in to_items(rows, file.partition) if isinstance(item, BusRecord)]
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
