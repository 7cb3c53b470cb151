"""Reads events of an archive as a source: each record as it came, in the order of offsets in its partition."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from headwater.consumers.archive.columns import to_items
from headwater.consumers.archive.ordered_rows import ReplacedFileError, SortedRows, ordered_rows
from headwater.consumers.archive.table import ArchiveState, EventArchive
from headwater.consumers.sources.api import BusRecord, OffsetGap, SourceBatch, StoredOffsets
from headwater.consumers.sources.local_log import KIND as LOG_KIND
from headwater.lineage.bulk import BusPartition

KAFKA_KIND: Final = "kafka"
GROUPS: Final = "_groups"
_LOOK_SECONDS: Final = 1.0
"""How often a reader that waits at the end looks for new commits."""


@dataclass
class _PartitionReading:
    """Where reading is in a partition, and its rows from there on."""

    at: int
    rows: Iterator[SortedRows] | None = None
    day: date = field(default=date.min)
    """Of the rows that came last: partitions are read about alike."""


class ArchiveSource:
    """A source of the events of an archive. A group without stored offsets has its own beside the table's files."""

    def __init__(self, address: str | Path, group: str, stored: StoredOffsets | None = None) -> None:
        self.archive: Final = EventArchive.open(address)
        self._group = f"{GROUPS}/{group}.json"
        self._stored = stored
        self._committed: dict[BusPartition, int] = {}
        self._begin()

    def _begin(self) -> None:
        self._state = ArchiveState()
        self._at: dict[BusPartition, _PartitionReading] = {}
        self._ready: deque[tuple[BusRecord | OffsetGap, int]] = deque()
        """What comes next, each with the offset behind it."""
        self._look_at = 0.0

    @property
    def kind(self) -> str:
        """The kind of the bus that the events came from: a store knows offsets by it."""
        is_log = any(partition.cluster == LOG_KIND for partition in self.archive.refresh().partitions)
        return LOG_KIND if is_log else KAFKA_KIND

    @property
    def topic(self) -> str:
        known = self.archive.refresh().partitions.values()
        return next((each.topic for each in reversed([*known])), self.archive.address)

    def poll(self, most: int, timeout: float) -> SourceBatch:
        end = time.monotonic() + timeout
        while len(self._ready) < most:
            if self._advance():
                continue
            if self._ready:
                break
            if (left := end - time.monotonic()) <= 0:
                return SourceBatch(next=self._ends())
            time.sleep(min(left, _LOOK_SECONDS))
        taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        gaps = tuple(each for each, _ in taken if isinstance(each, OffsetGap))
        unknown_ends = {id(gap) for gap in gaps if gap.end is None}
        following = {each.partition: at for each, at in taken if id(each) not in unknown_ends}
        return SourceBatch(tuple(each for each, _ in taken if isinstance(each, BusRecord)), following, gaps)

    def _advance(self) -> bool:
        """Make more records ready. False at the end."""
        reading = [(each.day, where, each) for where, each in self._at.items() if each.rows is not None]
        if not reading:
            return time.monotonic() >= self._look_at and self._look()
        _, where, partition = min(reading, key=lambda each: each[:2])
        try:
            found = next(partition.rows or iter(()), None)
        except ReplacedFileError:
            if not self._look():  # else others are in its place
                raise
            return True
        if found is None:
            partition.rows = None
            return True
        partition.day = found.file.day
        with self.archive.reading(found.file):
            items = [*to_items(found.rows, where)]
        for item in items:
            self._take(partition, item, found.bound)
        return True

    def _take(self, partition: _PartitionReading, item: BusRecord | OffsetGap, bound: int) -> None:
        if isinstance(item, BusRecord):
            partition.at = item.offset + 1
        elif item.end is None:
            partition.at = max(partition.at, item.first + 1)
        else:  # a part of it was read before, or what retention left is among it
            item = OffsetGap(item.partition, max(partition.at, item.first), item.end, item.reason)
            partition.at = max(partition.at, min(item.end or 0, bound))
        self._ready.append((item, partition.at))

    def _look(self) -> bool:
        """Look for new commits. Return whether there are any."""
        self._look_at = time.monotonic() + _LOOK_SECONDS
        before, self._state = self._state, self.archive.refresh()
        if self._state.version == before.version:
            return False
        for where, known in self._state.partitions.items():
            if where not in self._at:
                at = self._offsets(where.cluster).get(where)
                self._at[where] = _PartitionReading(known.first if at is None else at)
            reading = self._at[where]
            files = [file for file in self._state.files if file.partition == where]
            reading.rows = ordered_rows(self.archive, files, reading.at)
        return True

    def _ends(self) -> dict[BusPartition, int]:
        """Return the ends of partitions whose last offsets have no records, such as marks of transactions."""
        ends = {each: known.next for each, known in self._state.partitions.items() if known.next > self._at[each].at}
        for where, end in ends.items():
            self._at[where].at = end
        return ends

    def rest(self) -> None:
        """Do nothing: files wait."""

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        """Keep the offsets of a group that no store has."""
        if self._stored is None:
            self._committed.update(positions)
            content = json.dumps([[*each, at] for each, at in self._committed.items()])
            self.archive.write_note(self._group, content.encode())

    def rewind(self) -> None:
        self._begin()

    def _offsets(self, cluster: str) -> Mapping[BusPartition, int]:
        if self._stored is not None:
            return self._stored(cluster)
        if not self._committed and (found := self.archive.read_note(self._group)) is not None:
            self._committed = {BusPartition(*entry[:3]): entry[3] for entry in json.loads(found)}
        return self._committed

    def lag(self) -> int:
        """Return how many records aren't returned yet; a file that is being read counts whole."""
        self._look()
        unread = sum(file.records for file in self._state.files if file.end > self._at[file.partition].at)
        return len(self._ready) + unread

    def close(self) -> None:
        self.archive.close()
