"""Reads from a spool what one listener gets: records of its families, in order, and the lost ranges between them.

Counts what it was given and hasn't acknowledged, and rejects impossible acknowledgements.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from headwater.errors import TerminalError
from headwater.events.avro import Codec, UnknownEvent
from headwater.events.envelope import Event, EventFamily
from headwater.events.keys import FAMILY
from headwater.journal import JournalRecord as Kept
from headwater.journal import MissingRecords
from headwater.listeners.bus.durations import OnceLogger
from headwater.listeners.bus.gap_tracker import GapTracker, LostRange, SpoolCursor, SpoolSource
from headwater.listeners.bus.options import BusOptions
from headwater.spi import EventRecord, RecordBatch, SpoolPosition


class InvalidAcknowledgementError(TerminalError):
    """An acknowledgement that goes back, or beyond what was dispatched."""


class _OutstandingBatch(NamedTuple):
    end: SpoolPosition
    time: int
    records: int
    size: int


class OutstandingRecords:
    """The unacknowledged batches of one instance of a listener."""

    def __init__(self) -> None:
        self.acknowledged: SpoolPosition | None = None
        self.count = 0
        self.size = 0
        self._batches: deque[_OutstandingBatch] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def oldest_time(self) -> int | None:
        """When the oldest record was appended that isn't answered for, in microseconds."""
        return self._batches[0].time if self._batches else None

    def add(self, end: SpoolPosition, time: int, count: int, size: int) -> None:
        """A batch is being handed over."""
        self._batches.append(_OutstandingBatch(end, time, count, size))
        self.count += count
        self.size += size

    def acknowledge(self, answer: SpoolPosition | None) -> bool:
        """Whether the answer moved. A BrokenWordError where it is none that could be given."""
        before = self.acknowledged
        if answer == before:
            return False
        if answer is None or (before is not None and answer < before):
            raise InvalidAcknowledgementError(f"it answered {answer} after {before}: an answer never goes back")
        if not self._batches or answer > self._batches[-1].end:
            raise InvalidAcknowledgementError(f"it answered {answer}, and was handed nothing that far")
        self.acknowledged = answer
        while self._batches and self._batches[0].end <= answer:
            done = self._batches.popleft()
            self.count -= done.records
            self.size -= done.size
        return True

    def reset(self) -> None:
        """The listener raised: nothing above its answer counts as handed over."""
        self._batches.clear()
        self.count = self.size = 0


_LOG = logging.getLogger(__name__)
OnLost = Callable[[str, GapTracker, LostRange], None]
"""Takes a listener's name, its gap tracker and the lost range."""


class SpoolReader:
    """For one listener's thread only."""

    def __init__(
        self,
        name: str,
        source: SpoolSource,
        cursor: SpoolCursor,
        families: frozenset[EventFamily],
        options: BusOptions,
        *,
        on_lost: OnLost,
    ) -> None:
        self._name = name
        self._cursor = cursor
        self._skipped_families = {
            family.value.encode() for family in EventFamily if family not in families and family != EventFamily.UNKNOWN
        }
        self._options = options
        self._on_lost = on_lost
        self._gap_tracker = GapTracker(source, families, begins=cursor.committed == 0)
        self._decode = _make_decoder()
        self._refused: set[int] = set()
        self._unacknowledged: deque[LostRange | list[Kept]] = deque()
        """What was read and isn't acknowledged, in order. Of skipped records only the last one is kept."""
        self._position = 0
        self._loss_log = OnceLogger()

    def read(self, since: int, wait: float) -> list[Kept]:
        """Return the next records from that offset on; empty if there are none for this listener."""
        read = self._cursor.read(self._options.batch_count, self._options.batch_bytes, wait)
        for lost in read.missing:
            # A range before it is reported already; an empty one is damage that held no record.
            if lost.end_offset > max(since, lost.first):
                self._unacknowledged.append(self._gap_tracker.find_range(lost, read.records))
                self._warn(lost)
        wanted = [record for record in read.records if record.offset >= since and self._is_wanted(record)]
        if read.records:
            self._remember(wanted, read.records[-1])
        return wanted

    def acknowledge(self, position: int) -> None:
        """Note that the listener acknowledged everything before that offset, and report lost ranges before it.

        A range is reported only now: until then it may still grow, and records before it may be lost too.
        """
        self._position = position
        while self._unacknowledged and _end_offset(self._unacknowledged[0]) <= position:
            first = self._unacknowledged.popleft()
            if isinstance(first, LostRange):
                self._on_lost(self._name, self._gap_tracker, first)
            else:
                self._gap_tracker.note(first)

    def leave_out(self, offset: int) -> None:
        """Don't give this record any more: it is among the listener's dead letters."""
        self._refused = {position for position in self._refused if position >= self._position} | {offset}

    def rewind(self) -> None:
        """Forget what isn't acknowledged: it will be read again."""
        if self._unacknowledged and not isinstance(first := self._unacknowledged[0], LostRange):
            self._gap_tracker.note([record for record in first if record.offset < self._position])
        self._unacknowledged.clear()

    def _remember(self, wanted: list[Kept], last: Kept) -> None:
        if wanted:
            self._unacknowledged.append(wanted if wanted[-1] is last else [*wanted, last])
            return
        before = self._unacknowledged[-1] if self._unacknowledged else None
        if isinstance(before, list) and not self._is_wanted(before[-1]):
            before[-1] = last
        else:
            self._unacknowledged.append([last])

    def _warn(self, lost: MissingRecords) -> None:
        if self._loss_log.is_new(str(lost.end_offset)):
            missing = lost.end_offset - lost.first
            _LOG.warning("listener %s: %d records are gone from its spool (%s)", self._name, missing, lost.reason.value)

    def batch(self, records: Iterable[Kept]) -> RecordBatch:
        """Return the records as the batch that the listener gets."""
        return RecordBatch(
            [
                EventRecord.of(record.offset, record.value, record.key or b"", record.headers, self._decode)
                for record in records
            ]
        )

    def _is_wanted(self, record: Kept) -> bool:
        """Whether the record is this listener's, by its header; an unknown family may be anybody's."""
        if record.offset in self._refused:
            return False
        return not self._skipped_families or dict(record.headers).get(FAMILY) not in self._skipped_families


def _end_offset(read: LostRange | list[Kept]) -> int:
    return read.lost.end_offset if isinstance(read, LostRange) else read[-1].offset + 1


def _make_decoder() -> Callable[[bytes], Event | UnknownEvent]:
    return Codec().decode
