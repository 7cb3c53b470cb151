"""The interface of an event source for a replay: a bus that is read from offsets to offsets, in no consumer group.

Reads a local log from offsets to offsets, without a cursor of its own: the log's readers don't notice it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

from headwater.consumers.sources import BusRecord, EventSource, OffsetGap, SourceBatch
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.sources.local_log import KIND, MOST_BYTES, REASONS, log_partition
from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.journal import LocalLog
from headwater.journal.reader import Tail
from headwater.lineage.bulk import BusPartition

Positions: TypeAlias = Mapping[BusPartition, int]
"""The next offset of each partition."""
StoredPositions: TypeAlias = Callable[[], Positions]
"""Returns the offsets that a store has."""


class BusRange(NamedTuple):
    """Offsets of a partition, such as those that a bus has: from `first`, before `end`."""

    first: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.first)


class RangeSource(EventSource, Protocol):
    """An event source that nobody shares. What it reads is said before: `lag` is what is left of it."""

    @property
    def address(self) -> str:
        """The address as it was given, for people."""
        ...

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        """Return what the bus has now, by partition."""
        ...

    def offsets_at(self, time: datetime) -> Positions | None:
        """Return, for each partition, the offset of the first record that was appended at this time or later; None if
        the bus has no index of times."""
        ...

    def read(self, start: Positions, end: Positions, complete_until: int = 0) -> None:
        """Read from now on from `start` to before `end`; partitions without an end aren't read. `complete_until` is the
        time, in microseconds, up to which the bus had nothing else when the ends were determined; 0 says nothing."""
        ...

    def lag(self) -> int:
        """Return how many offsets are left of what `read` said."""
        ...


class RangePositions:
    """Where a range source stands: what each kind of source has in common."""

    def __init__(self) -> None:
        self.next: dict[BusPartition, int] = {}
        self.end: dict[BusPartition, int] = {}
        self.until = 0
        self._unreported: set[BusPartition] = set()

    def begin(self, start: Positions, end: Positions, complete_until: int) -> None:
        self.end = dict(end)
        self.next = {partition: min(start.get(partition, 0), at) for partition, at in end.items()}
        self.until = complete_until
        self._unreported = set(end)

    def open_partitions(self) -> list[BusPartition]:
        """Return the partitions that aren't read to their ends."""
        return [each for each, end in self.end.items() if self.next[each] < end]

    def advance(self, partition: BusPartition, at: int) -> None:
        self.next[partition] = max(self.next[partition], min(at, self.end[partition]))

    def lag(self) -> int:
        return sum(self.end[each] - self.next[each] for each in self.end)

    def finished(self) -> dict[BusPartition, int]:
        """Return the partitions that were read to their ends since the last call, with the time that holds for them."""
        if not self._unreported or not self.until:
            return {}
        done = {each for each in self._unreported if self.next[each] >= self.end[each]}
        self._unreported -= done
        return dict.fromkeys(done, self.until)


class SeekableRange:
    """What each kind of range source has in common: where it stands, and that the store keeps its offsets."""

    def __init__(self, address: str, stored: StoredPositions) -> None:
        """`stored` returns the offsets of the store that is filled, for `rewind`."""
        self.address: Final = address
        self._stored = stored
        self._at = RangePositions()

    def read(self, start: Positions, end: Positions, complete_until: int = 0) -> None:
        self._at.begin(start, end, complete_until)
        self._seek()

    def rewind(self) -> None:
        known = self._stored()
        self.read({each: known.get(each, 0) for each in self._at.end}, self._at.end, self._at.until)

    def rest(self) -> None:
        """Do nothing: nobody waits for who is in no group."""

    def done(self, positions: Positions) -> None:
        """Do nothing: offsets are the store's."""

    def lag(self) -> int:
        return self._at.lag()

    def _seek(self) -> None:
        """Go on where the positions are."""
        raise NotImplementedError


class LogRange(SeekableRange):
    kind = KIND

    def __init__(self, address: str, directory: Path, stored: StoredPositions) -> None:
        if not directory.is_dir():
            raise ConfigurationError(
                f"{directory} isn't there: name the directory that drivers write to (spark.headwater.log.dir)"
            )
        super().__init__(address, stored)
        self._log = LocalLog.open(directory)
        self.directory: Final = self._log.directory
        self.topic = str(self.directory)
        self._names: dict[BusPartition, str] = {}
        self._tails: dict[BusPartition, Tail] = {}

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        found = {}
        for name in self._log.partitions():
            where = log_partition(self._log.directory, name)
            self._names[where] = name
            reader = self._log.reader(name)
            first = reader.first_offset()
            found[where] = BusRange(first, max(first, reader.next_offset()))
        return found

    def offsets_at(self, time: datetime) -> None:  # noqa: ARG002 - a log has no index of times
        return None

    def _seek(self) -> None:
        self._close_tails()
        for where in self._at.open_partitions():
            self._tails[where] = self._log.reader(self._names[where]).tail(self._at.next[where])

    def poll(self, most: int, timeout: float) -> SourceBatch:  # noqa: ARG002 - what is to be read is there
        records, gaps, moved = list[BusRecord](), list[OffsetGap](), dict[BusPartition, int]()
        partitions, latest = self._at.open_partitions(), wall_micros() + CLOCK_SKEW_MICROS
        share = max(1, most // max(1, len(partitions)))
        for where in partitions:
            if len(records) >= most:
                break
            end = self._at.end[where]
            batch = self._tails[where].read(min(share, most - len(records), end - self._at.next[where]), MOST_BYTES)
            gaps += [OffsetGap(where, each.first, each.end_offset, REASONS[each.reason]) for each in batch.missing]
            records += [
                BusRecord(record.value, where, record.offset, min(record.time, latest), record.key, record.headers)
                for record in batch.records
                if record.offset < end
            ]
            self._at.advance(where, batch.position)
            moved[where] = self._at.next[where]
        return SourceBatch(tuple(records), moved, tuple(gaps), self._at.finished())

    def close(self) -> None:
        self._close_tails()

    def _close_tails(self) -> None:
        for tail in self._tails.values():
            tail.close()
        self._tails.clear()
