"""Consumer groups over the partitions of a local log.

Each (group, partition) has one reader at a time, by the lock of the partition's cursor that bears the group's name. Who
comes first has all partitions; another member waits beside it, takes up what is new, and takes over what the first one
leaves, also by dying. There is no rebalancing: on one machine members stand by for each other rather than share work.
"""

from __future__ import annotations

import contextlib
import heapq
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from headwater.errors import HeadwaterError
from headwater.journal.cursor import Cursor, CursorStart, JournalReader
from headwater.journal.errors import CursorError, LockedError
from headwater.journal.files import Closing
from headwater.journal.options import Fsync, wall_clock
from headwater.journal.reader import MissingRecords
from headwater.journal.record import JournalRecord, ordering_times

_LOOK_AGAIN = 0.5  # seconds between looks for partitions that are new or were left
_AHEAD, _LEAST_AHEAD = 16 << 20, 64 << 10  # bytes read before they are given out, of all partitions and of each
_SHORTEST_NAP, _LONGEST_NAP = 0.001, 0.05


class PartitionRecord(NamedTuple):
    """A record and the partition it is from."""

    partition: str
    record: JournalRecord


class MissingPartitionRecords(NamedTuple):
    """A range that a partition lost."""

    partition: str
    missing: MissingRecords


@dataclass(frozen=True, slots=True)
class GroupBatch:
    """Records in the order of their partitions, merged by append time, and what to commit once they are done with.

    A lost range is reported in the batch of the records behind it or in an earlier one.
    """

    records: tuple[PartitionRecord, ...]
    missing: tuple[MissingPartitionRecords, ...]
    positions: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.records or self.missing)


ResumePosition = Callable[[str, int], int]
"""Given a partition and the position that the group committed, returns the one to resume at, if that is earlier: of
somebody who keeps positions together with what was made of the records."""


class Partitions(Protocol):
    """What a group needs of a log."""

    def partitions(self) -> list[str]: ...
    def reader(self, partition: str) -> JournalReader: ...
    def has_group(self, name: str) -> bool: ...


@dataclass(slots=True)
class _Source:
    """One partition this member has: its cursor and what was read ahead of being given out, with its ordering time."""

    cursor: Cursor
    ahead: deque[tuple[int, JournalRecord]] = field(default_factory=deque)


class GroupMember(Closing):
    """One reader of a group, for one thread. What was not committed comes again, to whoever has the partition then."""

    def __init__(
        self, log: Partitions, name: str, start: CursorStart, fsync: Fsync, resume: ResumePosition | None = None
    ) -> None:
        self.name = name
        self._resume = resume
        self._log = log
        self._fsync = fsync
        self._sources: dict[str, _Source] = {}
        self._start: CursorStart | int = start
        self._has_begun = False
        self._known: set[str] = set()
        """All partitions that were there at the last look."""
        self._looked = float("-inf")

    @property
    def assigned(self) -> list[str]:
        """The partitions this member reads."""
        return sorted(self._sources)

    @property
    def committed(self) -> dict[str, int]:
        """What of them is done with."""
        return {name: source.cursor.committed for name, source in self._sources.items()}

    def poll(self, max_records: int = 1000, timeout: float = 0.0, max_bytes: int | None = None) -> GroupBatch:
        """The next records of all partitions; waits for the first up to `timeout` seconds. The last one may go beyond
        `max_bytes` of values."""
        deadline = time.monotonic() + timeout
        nap = _SHORTEST_NAP
        while True:
            batch = _Merge(self._sources, self._claim, max_records, max_bytes).run()
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

    def rewind(self) -> None:
        """Read again from the committed positions, or from those to resume at."""
        for partition, source in self._sources.items():
            self._rewind(partition, source)

    def _rewind(self, partition: str, source: _Source) -> None:
        committed = source.cursor.committed
        source.cursor.rewind(committed if self._resume is None else self._resume(partition, committed))
        source.ahead.clear()

    def close(self) -> None:
        """Leave all partitions to other members. Nothing is committed by it."""
        for source in self._sources.values():
            source.cursor.close()
        self._sources.clear()

    def _begin(self) -> None:
        """What comes into being once there is a group is its own from the first record on, whatever went since."""
        if not self._has_begun:
            if self._log.has_group(self.name):
                self._start = 0
            self._has_begun = True

    def _claim(self) -> None:
        """Take what is new at once, and now and then what others may have left."""
        now = time.monotonic()
        again = now - self._looked >= _LOOK_AGAIN
        self._begin()
        there = self._log.partitions()
        wanted = [name for name in there if name not in self._sources and (again or name not in self._known)]
        if again:
            self._looked = now
        self._known.update(there)
        start, self._start = self._start, 0
        for partition in wanted:
            with contextlib.suppress(LockedError):
                reader = self._log.reader(partition)
                self._take_up(partition, _Source(reader.cursor(self.name, start=start, fsync=self._fsync)))

    def _take_up(self, partition: str, source: _Source) -> None:
        try:
            if self._resume is not None:
                self._rewind(partition, source)
        except BaseException:
            source.cursor.close()
            raise
        self._sources[partition] = source


class _Merge:
    """The work of one poll: records of all sources, the oldest first.

    What was in the log before a record was appended, by whomever, is given before it, if the clock didn't go back in
    between; a record of a writer whose clock is ahead holds up none behind it. So none is given before all other
    sources were looked at after it was read, and the log for new ones.
    """

    def __init__(
        self, sources: Mapping[str, _Source], claim: Callable[[], None], count: int, size: int | None = None
    ) -> None:
        self._sources = sources
        self._claim = claim
        self._count = count
        self._left = sys.maxsize if size is None else size
        self._records: list[PartitionRecord] = []
        self._lost: list[MissingPartitionRecords] = []
        self._positions: dict[str, int] = {}

    def run(self) -> GroupBatch:
        try:
            self._take()
        except HeadwaterError:
            if not self._records and not self._lost:
                raise  # else the next poll comes upon it; what is taken here would be gone with it
        return GroupBatch(tuple(self._records), tuple(self._lost), self._positions)

    def _take(self) -> None:
        heads = self._look()
        while heads and len(self._records) < self._count and self._left > 0:
            partition = heads[0][1]
            source = self._sources[partition]
            self._give(partition, source.ahead.popleft()[1])
            if source.ahead:
                heapq.heapreplace(heads, (source.ahead[0][0], partition))
            elif self._fill(partition, source):
                heads = self._look()
            else:
                heapq.heappop(heads)

    def _give(self, partition: str, record: JournalRecord) -> None:
        self._records.append(PartitionRecord(partition, record))
        self._left -= len(record.value)
        self._positions[partition] = record.offset + 1

    def _look(self) -> list[tuple[int, str]]:
        """Read where nothing is ahead, until nothing new is found; a heap of the next record of each."""
        found = True
        while found:
            self._claim()
            empty = [(partition, source) for partition, source in self._sources.items() if not source.ahead]
            found = sum(self._fill(partition, source) for partition, source in empty) > 0
        heads = [(source.ahead[0][0], partition) for partition, source in self._sources.items() if source.ahead]
        heapq.heapify(heads)
        return heads

    def _fill(self, partition: str, source: _Source) -> bool:
        batch = source.cursor.read(self._count, max(_LEAST_AHEAD, _AHEAD // len(self._sources)))
        source.ahead.extend(zip(ordering_times(batch.records, wall_clock()), batch.records, strict=True))
        self._lost.extend(MissingPartitionRecords(partition, each) for each in batch.missing)
        if batch.missing:
            self._positions[partition] = batch.records[0].offset if batch.records else batch.position
        return bool(batch.records)
