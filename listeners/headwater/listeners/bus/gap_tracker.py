"""Tracks what a listener missed because its spool lost records, and makes Gaps with every number that is known.

Lost ranges are rare. So only the last record of each family is remembered, and the numbers are decoded from the records
on both sides of a range when one is found.

What those see of a spool who deliver it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import Gap, GapReason
from headwater.events.keys import FAMILY, PRODUCER, SEQUENCE
from headwater.journal import JournalBatch, JournalRecord, MissingReason, MissingRecords

if TYPE_CHECKING:
    from typing_extensions import Self


class RecordTail(Protocol):
    """Reads records from an offset on; closes itself at the end of a with-block."""

    def read(self, max_records: int = ..., max_bytes: int = ..., timeout: float = ...) -> JournalBatch: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SpoolCursor(RecordTail, Protocol):
    """The same for one listener, whose place it keeps."""

    @property
    def committed(self) -> int: ...

    @property
    def position(self) -> int: ...

    def commit(self, position: int) -> None: ...

    def rewind(self) -> None: ...

    def close(self) -> None: ...


class RecordSource(Protocol):
    """What records can be read from, at any offset."""

    @property
    def directory(self) -> Path: ...

    def tail(self, position: int) -> RecordTail: ...


class SpoolSource(RecordSource, Protocol):
    """A spool as those see it who deliver it: the journal of this process, another one's, or a file handed over."""

    @property
    def next_offset(self) -> int:
        """The offset behind the last record that is known."""
        ...

    def cursor(self, name: str) -> SpoolCursor: ...


_LOOK_AHEAD: Final = 5_000
_NUMBERED_FAMILIES: Final = (EventFamily.CATALOG, EventFamily.JOB, EventFamily.ADMIN)


class _MissingNumbers(NamedTuple):
    """The first and last number that can be missing in a family, as far as they are known."""

    family: EventFamily
    first: int | None
    last: int | None

    @property
    def may_be_any(self) -> bool:
        return self.last is None or self.last >= (self.first or 1)

    @property
    def records(self) -> int | None:
        return None if self.first is None or self.last is None else self.last - self.first + 1


class LostRange(NamedTuple):
    """Lost records, with the first record after them and the first one of each family.

    The next records are read when the range is found: later they may be dropped too, although they were delivered.
    """

    lost: MissingRecords
    next_records: tuple[JournalRecord, ...]


class GapTracker:
    """What one listener acknowledged of a spool before a lost range.

    `begins` says that it read the spool from its beginning; `families` are those that the listener gets.
    """

    def __init__(self, source: RecordSource, families: frozenset[EventFamily], *, begins: bool) -> None:
        self._source = source
        self._families = tuple(family for family in _NUMBERED_FAMILIES if family in families)
        self._begins = begins
        self._last: JournalRecord | None = None
        self._last_by_family: dict[bytes, JournalRecord] = {}
        self._reported_by_family: dict[EventFamily, int] = {}
        """The greatest number of each that was reported as missing: the next lost range doesn't begin before it."""

    def note(self, records: Iterable[JournalRecord]) -> None:
        """Note acknowledged records, in order; some may be noted a second time."""
        last = -1 if self._last is None else self._last.offset
        for record in records:
            if record.offset > last:
                self._last = self._last_by_family[_family_of(record)] = record

    def find_range(self, lost: MissingRecords, records: Sequence[JournalRecord]) -> LostRange:
        """Return the lost range before these records; look ahead for families that aren't among them."""
        after = _FirstRecords(self._families)
        after.add(records)
        if after.missing_families:
            self._look_ahead(records[-1].offset + 1 if records else lost.end_offset, after)
        return LostRange(lost, tuple(after.records))

    def gap(self, listener: str, lost_range: LostRange) -> Gap | None:
        """Return the Gap for what the listener missed; None if none of its families lost anything.

        One lost range is one Gap. It has the numbers of a family if only that family lost something.
        """
        lost, after = lost_range
        before = self._last
        missing = [missing for missing in self._find_missing(after) if missing.may_be_any]
        if not missing:
            return None
        one = missing[0] if len(missing) == 1 else None
        self._reported_by_family |= {gap.family: gap.last for gap in missing if gap.last is not None}
        return Gap(
            reason=GapReason.SPOOL_LIMIT if lost.reason is MissingReason.DROPPED else GapReason.CORRUPTION,
            detail=_describe_loss(lost, self._source.directory),
            listener=listener,
            missed=self._count(lost, [gap.records for gap in missing]),
            missed_producer=_producer_of(after[0] if after else before),
            missed_family=one.family if one else None,
            first_sequence=_next_sequence(before, begins=self._begins),
            last_sequence=_sequence_of(after[0]) - 1 if after else None,
            first_family_sequence=one.first if one else None,
            last_family_sequence=one.last if one else None,
        )

    def _count(self, lost: MissingRecords, by_family: Sequence[int | None]) -> int:
        """At most so many: the records that are gone, and what is known of families may bound it further. Numbers of a
        family that wasn't seen since an earlier hole may be of that one."""
        records = lost.end_offset - max(lost.first, 0 if self._last is None else self._last.offset + 1)
        known = [value for value in by_family if value is not None]
        return min(records, sum(known)) if len(known) == len(by_family) else records

    def _find_missing(self, after: Sequence[JournalRecord]) -> Iterator[_MissingNumbers]:
        for family in self._families:
            yield _MissingNumbers(family, self._first_missed(family), _last_missing_number(family, after))

    def _first_missed(self, family: EventFamily) -> int | None:
        reported = self._reported_by_family.get(family)
        record = self._last_by_family.get(family.value.encode())
        if record is not None:
            event = _decode(record)
            return None if event is None else max(event.family_sequence, reported or 0) + 1
        return 1 if reported is None and self._begins else reported and reported + 1

    def _look_ahead(self, position: int, after: _FirstRecords) -> None:
        """Read on until each family has a record, or the next lost range begins, which has a Gap of its own."""
        seen = 0
        with suppress(HeadwaterError), self._source.tail(position) as tail:
            while after.missing_families and seen < _LOOK_AHEAD and (batch := tail.read(500)) and not batch.missing:
                after.add(batch.records)
                seen += len(batch.records)


class _FirstRecords:
    """The first record that is seen, and the first of each family."""

    def __init__(self, families: Iterable[EventFamily]) -> None:
        self.missing_families = {family.value for family in families}
        self.records: list[JournalRecord] = []

    def add(self, records: Iterable[JournalRecord]) -> None:
        for record in records:
            family = _header_of(record, FAMILY)
            if family in self.missing_families or not self.records:
                self.missing_families.discard(family)
                self.records.append(record)


def _describe_loss(lost: MissingRecords, directory: Path) -> str:
    if lost.reason is MissingReason.DROPPED:
        return "the spool reached spark.headwater.spool.max.bytes, and its oldest segment was dropped"
    where = f" at bytes {lost.start} to {lost.end} of {lost.path}" if lost.path else f" in {directory}"
    return f"the spool is damaged{where} ({lost.reason.value})"


def _last_missing_number(family: EventFamily, after: Sequence[JournalRecord]) -> int | None:
    """The number in its family of the last event that can be missing."""
    record = next((record for record in after if _header_of(record, FAMILY) == family.value), None)
    event = None if record is None else _decode(record)
    return None if event is None else event.family_sequence - 1


def _next_sequence(before: JournalRecord | None, *, begins: bool) -> int | None:
    if before is not None:
        return _sequence_of(before) + 1
    return 1 if begins else None


def _sequence_of(record: JournalRecord) -> int:
    text = _header_of(record, SEQUENCE)
    return int(text) if text.isdigit() else 0


def _producer_of(record: JournalRecord | None) -> UUID | None:
    try:
        return None if record is None else UUID(_header_of(record, PRODUCER))
    except ValueError:
        return None


def _family_of(record: JournalRecord) -> bytes:
    for name, value in record.headers:
        if name == FAMILY:
            return value
    return b""


def _header_of(record: JournalRecord, name: str) -> str:
    return next((value.decode("utf-8", "replace") for key, value in record.headers if key == name), "")


def _decode(record: JournalRecord) -> Event | None:
    try:
        decoded = Codec().decode(record.value)
    except HeadwaterError:
        return None
    return decoded if isinstance(decoded, Event) else None
