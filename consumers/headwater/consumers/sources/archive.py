"""Reads events of an archive as a source: each record as it came, in the order of offsets in its partition.

Files are sorted by kind and key, and their offsets overlap. So a file is read once, and its records wait until no file
that isn't read yet can have an earlier one of their partition.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from headwater.consumers.archive.arrow import ArrowTable, pa, pc
from headwater.consumers.archive.columns import RECORD_FIELDS, to_records
from headwater.consumers.archive.directory import ParquetArchive
from headwater.consumers.archive.state import ArchiveFile, ArchiveState, FileSpan
from headwater.consumers.sources.api import BusRecord, OffsetGap, SourceBatch, StoredOffsets
from headwater.consumers.sources.local_log import KIND as LOG_KIND
from headwater.errors import TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

KAFKA_KIND: Final = "kafka"
GROUPS: Final = "_groups"
_COLUMNS: Final = tuple(each.name for each in RECORD_FIELDS)
_SLICE: Final = 5_000
_LOOK_SECONDS: Final = 1.0
"""How often a reader that waits at the end looks for new commits."""


class ArchiveSource:
    """A source of the events in a directory. A group without stored offsets has its own in `_groups`."""

    def __init__(self, directory: Path, group: str, stored: StoredOffsets | None = None) -> None:
        self._archive = ParquetArchive.open(directory)
        self._group = directory / GROUPS / f"{group}.json"
        self._stored = stored
        self._committed: dict[BusPartition, int] = {}
        self._begin()

    def _begin(self) -> None:
        self._state = ArchiveState(version=-1)
        self._at: dict[BusPartition, int] = {}
        """What comes next of each partition."""
        self._ready: deque[BusRecord] = deque()
        self._waiting: list[ArrowTable] = []
        """Rows of files that were read, which others may come before."""
        self._read: set[str] = set()
        self._gaps: list[OffsetGap] = []
        self._look_at = 0.0

    @property
    def kind(self) -> str:
        """The kind of the bus that the events came from: a store knows offsets by it."""
        is_log = any(each.cluster == LOG_KIND for each in self._archive.refresh().partitions)
        return LOG_KIND if is_log else KAFKA_KIND

    @property
    def topic(self) -> str:
        known = self._archive.refresh().partitions.values()
        return next((each.topic for each in reversed([*known])), str(self._archive.directory))

    def poll(self, most: int, timeout: float) -> SourceBatch:
        end = time.monotonic() + timeout
        while len(self._ready) < most and not self._gaps:
            if self._advance():
                continue
            if self._ready:
                break
            if (left := end - time.monotonic()) <= 0:
                return SourceBatch(next=self._ends())
            time.sleep(min(left, _LOOK_SECONDS))
        records = tuple(self._ready.popleft() for _ in range(min(most, len(self._ready))))
        gaps, self._gaps = tuple(self._gaps), []
        following = {each.partition: each.end for each in gaps if each.end is not None}
        following.update((each.partition, each.offset + 1) for each in records)
        return SourceBatch(records, following, gaps)

    def _advance(self) -> bool:
        """Read one more file, and make the records ready that no other file can come before. False at the end."""
        file = self._next_file()
        if file is None:
            return time.monotonic() >= self._look_at and self._look()
        try:
            rows = self._unread_rows(self._archive.read(file, _COLUMNS))
        except TransientError:
            if not self._look():  # else it was replaced by another one
                raise
            return True
        self._read.add(file.path)
        if rows.num_rows:
            self._waiting.append(rows)
        self._release()
        return True

    def _look(self) -> bool:
        """Look for new commits. Return whether there are any."""
        self._look_at = time.monotonic() + _LOOK_SECONDS
        before, self._state = self._state, self._archive.refresh()
        if not before.files.keys() <= self._state.files.keys():  # files were replaced: what waits is in others now
            self._waiting, self._read = [], set()
        for partition, known in self._state.partitions.items():
            if partition not in self._at:
                self._at[partition] = self._start_of(partition, known.first, known.expired)
            elif (at := max(self._at[partition], before.partitions[partition].expired)) < known.expired:
                self._gaps.append(OffsetGap(partition, at, known.expired, GapReason.LOG_EXPIRED))
        self._gaps += [each for each in self._state.gaps[len(before.gaps) :] if self._concerns(each)]
        return self._state.version != before.version

    def _start_of(self, partition: BusPartition, first: int, expired: int) -> int:
        """Return where reading begins. What retention removed is reported to a group that hadn't read it."""
        at = self._offsets(partition.cluster).get(partition)
        if at is None:
            return first
        if at < expired:
            self._gaps.append(OffsetGap(partition, at, expired, GapReason.LOG_EXPIRED))
        return at

    def _concerns(self, gap: OffsetGap) -> bool:
        return gap.end is None or gap.end > self._at.get(gap.partition, 0)

    def _next_file(self) -> ArchiveFile | None:
        """Return the file to be read next: of those with unread records the one with the earliest."""
        return min((file for file, _ in self._unread()), key=_reading_order, default=None)

    def _unread(self) -> Iterator[tuple[ArchiveFile, list[FileSpan]]]:
        """Yield the files that aren't read yet and have to be, with what is wanted of them."""
        for file in self._state.files.values():
            if file.path not in self._read:
                spans = [span for span in file.spans if span.last >= self._at.get(span.partition, 0)]
                if spans:
                    yield file, spans

    def _unread_rows(self, table: ArrowTable) -> ArrowTable:
        """Return the rows whose records weren't returned yet, in their order."""
        parts = []
        for partition, rows in _by_partition(table):
            parts.append(rows.filter(pc.greater_equal(rows["offset"], self._at.get(partition, 0))))
        return pa.concat_tables(parts) if parts else table.slice(0, 0)

    def _release(self) -> None:
        """Make records ready up to the first offset of what isn't read."""
        bounds: dict[BusPartition, int] = {}
        for span in (span for _, spans in self._unread() for span in spans):
            bounds[span.partition] = min(span.first, bounds.get(span.partition, span.first))
        if not self._waiting:
            return
        held: list[ArrowTable] = []
        for partition, rows in _by_partition(pa.concat_tables(self._waiting)):
            bound = bounds.get(partition)
            free = rows if bound is None else rows.filter(pc.less(rows["offset"], bound))
            if bound is not None:
                held.append(rows.filter(pc.greater_equal(rows["offset"], bound)))
            for each in free.sort_by("offset").to_batches(max_chunksize=_SLICE):
                self._ready.extend(to_records(pa.Table.from_batches([each])))
            if free.num_rows:
                self._at[partition] = pc.max(free["offset"]).as_py() + 1
        self._waiting = [each for each in held if each.num_rows]

    def _ends(self) -> dict[BusPartition, int]:
        """Return the ends of partitions whose last offsets have no records, such as marks of transactions."""
        ends = {each: known.next for each, known in self._state.partitions.items() if known.next > self._at[each]}
        self._at.update(ends)
        return ends

    def rest(self) -> None:
        """Do nothing: files wait."""

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        """Keep the offsets of a group that no store has."""
        if self._stored is not None:
            return
        self._committed.update(positions)
        aside = self._group.with_name(f".{self._group.name}.{os.getpid()}")
        try:
            self._group.parent.mkdir(exist_ok=True)
            aside.write_text(json.dumps([[*each, at] for each, at in self._committed.items()]), encoding="utf-8")
            aside.replace(self._group)
        except OSError as e:
            raise TransientError(f"{self._group} can't be written: {e.strerror}") from e

    def rewind(self) -> None:
        self._begin()

    def _offsets(self, cluster: str) -> Mapping[BusPartition, int]:
        if self._stored is not None:
            return self._stored(cluster)
        if not self._committed:
            with suppress(FileNotFoundError):
                found = json.loads(self._group.read_text(encoding="utf-8"))
                self._committed = {BusPartition(*each[:3]): each[3] for each in found}
        return self._committed

    def lag(self) -> int:
        """Return how many records aren't returned yet. Offsets without a record don't count."""
        self._look()
        unread = sum(span.rows for _, spans in self._unread() for span in spans)
        waiting: int = sum(each.num_rows for each in self._waiting)
        return len(self._ready) + waiting + unread

    def close(self) -> None:
        self._archive.close()


def _reading_order(file: ArchiveFile) -> tuple[int, int, str]:
    """Order files so that few rows have to wait for others."""
    return file.time, min(span.first for span in file.spans), file.path


def _by_partition(table: ArrowTable) -> list[tuple[BusPartition, ArrowTable]]:
    columns = ("cluster", "topic_id", "partition")
    found = table.select(list(columns)).group_by(list(columns)).aggregate([])
    places = zip(*(found.column(each).to_pylist() for each in columns), strict=True)
    return [(BusPartition(*place), table.filter(_is_in(table, place))) for place in sorted(places)]


def _is_in(table: ArrowTable, place: tuple[str, str, int]) -> object:
    conditions = [
        pc.equal(table[name], value) for name, value in zip(("cluster", "topic_id", "partition"), place, strict=True)
    ]
    return pc.and_(conditions[0], pc.and_(conditions[1], conditions[2]))
