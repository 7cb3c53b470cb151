"""Consumer groups over the partitions of a local log.

Each (group, partition) has one reader at a time, by the lock of the partition's cursor that bears the group's name. Who
comes first has all partitions; another member waits beside it, takes up what is new, and takes over what the first one
leaves, also by dying. There is no rebalancing: on one machine members stand by for each other rather than share work.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from headwater.journal.closing import Closing
from headwater.journal.cursor import Cursor, JournalReader, Start
from headwater.journal.errors import CursorError, LockedError
from headwater.journal.options import Fsync
from headwater.journal.reader import Lost
from headwater.journal.record import Record

_LOOK_AGAIN = 0.5  # seconds between looks for partitions that are new or were left
_SHORTEST_NAP, _LONGEST_NAP = 0.001, 0.05


class PartitionRecord(NamedTuple):
    """A record and the partition it is from."""

    partition: str
    record: Record


class PartitionLost(NamedTuple):
    """A range that a partition lost."""

    partition: str
    lost: Lost


@dataclass(frozen=True, slots=True)
class GroupBatch:
    """Records in the order of their partitions, merged by append time, and what to commit once they are done with.

    A lost range is told in the batch of the records behind it or in an earlier one.
    """

    records: tuple[PartitionRecord, ...]
    lost: tuple[PartitionLost, ...]
    positions: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.records or self.lost)


class Partitions(Protocol):
    """What a group needs of a log."""

    def partitions(self) -> list[str]: ...
    def reader(self, partition: str) -> JournalReader: ...


@dataclass(slots=True)
class _Source:
    """One partition this member has: its cursor and what was read ahead of being given out."""

    cursor: Cursor
    ahead: deque[Record] = field(default_factory=deque)


class GroupMember(Closing):
    """One reader of a group, for one thread. What was not committed comes again, to whoever has the partition then."""

    def __init__(self, log: Partitions, name: str, start: Start, fsync: Fsync) -> None:
        self.name = name
        self._log = log
        self._start = start
        self._fsync = fsync
        self._sources: dict[str, _Source] = {}
        self._looked = float("-inf")

    @property
    def assigned(self) -> list[str]:
        """The partitions this member reads."""
        return sorted(self._sources)

    def poll(self, max_records: int = 1000, timeout: float = 0.0) -> GroupBatch:
        """The next records of all partitions; waits for the first up to `timeout` seconds."""
        deadline = time.monotonic() + timeout
        nap = _SHORTEST_NAP
        while True:
            self._claim()
            batch = self._merge(max_records)
            left = deadline - time.monotonic()
            if batch or left <= 0:
                return batch
            time.sleep(min(nap, left))
            nap = min(nap * 2, _LONGEST_NAP)

    def commit(self, positions: Mapping[str, int]) -> None:
        """Everything before these positions is done with: `GroupBatch.positions` of a batch that is."""
        for partition, position in positions.items():
            source = self._sources.get(partition)
            if source is None:
                raise CursorError(f"group {self.name!r} can't commit for {partition}: this member doesn't read it")
            source.cursor.commit(position)

    def close(self) -> None:
        """Leave all partitions to other members. Nothing is committed by it."""
        for source in self._sources.values():
            source.cursor.close()
        self._sources.clear()

    def _claim(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_AGAIN:
            return
        self._looked = now
        for partition in self._log.partitions():
            if partition not in self._sources:
                with contextlib.suppress(LockedError):
                    reader = self._log.reader(partition)
                    cursor = reader.cursor(self.name, start=self._start, fsync=self._fsync)
                    self._sources[partition] = _Source(cursor)

    def _merge(self, max_records: int) -> GroupBatch:
        records: list[PartitionRecord] = []
        lost: list[PartitionLost] = []
        positions: dict[str, int] = {}
        for partition, source in self._sources.items():
            self._fill(partition, source, max_records, lost, positions)
        while len(records) < max_records and (oldest := self._oldest()) is not None:
            source = self._sources[oldest]
            record = source.ahead.popleft()
            records.append(PartitionRecord(oldest, record))
            positions[oldest] = record.offset + 1
            self._fill(oldest, source, max_records, lost, positions)
        return GroupBatch(tuple(records), tuple(lost), positions)

    def _oldest(self) -> str | None:
        times = [(each.ahead[0].time, partition) for partition, each in self._sources.items() if each.ahead]
        return min(times)[1] if times else None

    def _fill(
        self, partition: str, source: _Source, count: int, lost: list[PartitionLost], positions: dict[str, int]
    ) -> None:
        if source.ahead:
            return
        batch = source.cursor.read(count)
        source.ahead.extend(batch.records)
        lost.extend(PartitionLost(partition, each) for each in batch.lost)
        if batch.lost:
            positions[partition] = batch.records[0].offset if batch.records else batch.position
