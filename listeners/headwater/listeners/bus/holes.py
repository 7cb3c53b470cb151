"""What a listener didn't get, because its spool lost it: told as a Gap, with every number that can be known.

Holes are rare, so only the last record of each family is remembered on the way, and the numbers are read out of the
records on both sides of a hole, when it is met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec
from headwater.events.envelope import Event, Family
from headwater.events.health import Gap, GapReason
from headwater.events.keys import FAMILY, PRODUCER, SEQUENCE
from headwater.journal import JournalReader, Lost, Record, Why

_LOOK_AHEAD: Final = 5_000
_FAMILIES: Final = (Family.CATALOG, Family.JOB, Family.ADMIN)


class _Missing(NamedTuple):
    """What of a family can be missing: its first number and its last, as far as they are known."""

    family: Family
    first: int | None
    last: int | None

    @property
    def may_be_some(self) -> bool:
        return self.last is None or self.last >= (self.first or 1)

    @property
    def records(self) -> int | None:
        return None if self.first is None or self.last is None else self.last - self.first + 1


class Hole(NamedTuple):
    """What is lost, and of what follows it, as far as it was looked at, the first record and the first of each family.

    They are seen when the hole is met: by the time it is told, what came behind it and was handed over may be dropped
    too, and whoever looked only then would take that for missing.
    """

    lost: Lost
    after: tuple[Record, ...]


class Holes:
    """What one lane has dealt with of a spool before a hole. `begins` says: from its very beginning on. `families` are
    those that its listener is told of."""

    def __init__(self, directory: Path, families: frozenset[Family], *, begins: bool) -> None:
        self._directory = directory
        self._families = tuple(each for each in _FAMILIES if each in families)
        self._begins = begins
        self._told = 0
        self._last: Record | None = None
        self._of_family: dict[bytes, Record] = {}

    def note(self, records: Iterable[Record]) -> None:
        """These are dealt with, in order; some of them perhaps were before."""
        last = -1 if self._last is None else self._last.offset
        for record in records:
            if record.offset > last:
                self._last = self._of_family[_family(record)] = record

    def is_news(self, lost: Lost) -> bool:
        """Whether records are missing that weren't told as missing before."""
        is_news = lost.following > max(lost.first, self._told)
        self._told = max(self._told, lost.following)
        return is_news

    def met(self, lost: Lost, records: Sequence[Record]) -> Hole:
        """The hole before these records, which were just read. Others are looked at where a family isn't among them."""
        after = _Firsts(self._families)
        after.see(records)
        if after.wanted:
            self._look_ahead(records[-1].offset + 1 if records else lost.following, after)
        return Hole(lost, tuple(after.records))

    def gap(self, listener: str, hole: Hole) -> Gap | None:
        """What the listener has to be told to have missed; None where none of it is a family of its own. One hole is
        one Gap: the numbers of a family stand in it where only that family lost something."""
        lost, after = hole
        before = self._last
        missing = [each for each in self._missing(after) if each.may_be_some]
        if not missing:
            return None
        one = missing[0] if len(missing) == 1 else None
        counts = [each.records for each in missing]
        return Gap(
            reason=GapReason.SPOOL_LIMIT if lost.why is Why.DROPPED else GapReason.CORRUPTION,
            detail=_detail(lost, self._directory),
            listener=listener,
            missed=lost.following - lost.first if None in counts else sum(each for each in counts if each),
            missed_producer=_producer(after[0] if after else before),
            missed_family=one.family if one else None,
            first_sequence=_next(before, begins=self._begins),
            last_sequence=_sequence(after[0]) - 1 if after else None,
            first_family_sequence=one.first if one else None,
            last_family_sequence=one.last if one else None,
        )

    def _missing(self, after: Sequence[Record]) -> Iterator[_Missing]:
        for family in self._families:
            yield _Missing(family, self._first_missed(family), _family_before(family, after))

    def _first_missed(self, family: Family) -> int | None:
        record = self._of_family.get(family.value.encode())
        if record is not None:
            event = _decoded(record)
            return None if event is None else event.family_sequence + 1
        return 1 if self._begins else None

    def _look_ahead(self, position: int, after: _Firsts) -> None:
        """As many records as it takes to see one of each family, if they come soon. It ends at the next hole: what is
        missing there is told with that one."""
        seen = 0
        with suppress(HeadwaterError), JournalReader.open(self._directory).tail(position) as tail:
            while after.wanted and seen < _LOOK_AHEAD and (batch := tail.read(500)) and not batch.lost:
                after.see(batch.records)
                seen += len(batch.records)


class _Firsts:
    """The first record that is seen, and the first of each family."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.wanted = {each.value for each in families}
        self.records: list[Record] = []

    def see(self, records: Iterable[Record]) -> None:
        for record in records:
            family = _header(record, FAMILY)
            if family in self.wanted or not self.records:
                self.wanted.discard(family)
                self.records.append(record)


def _detail(lost: Lost, directory: Path) -> str:
    if lost.why is Why.DROPPED:
        return "the spool reached spark.headwater.spool.max.bytes, and its oldest segment was dropped"
    where = f" at bytes {lost.start} to {lost.end} of {lost.path}" if lost.path else f" in {directory}"
    return f"the spool is damaged{where} ({lost.why.value})"


def _family_before(family: Family, after: Sequence[Record]) -> int | None:
    """The number in its family of the last event that can be missing."""
    record = next((each for each in after if _header(each, FAMILY) == family.value), None)
    event = None if record is None else _decoded(record)
    return None if event is None else event.family_sequence - 1


def _next(before: Record | None, *, begins: bool) -> int | None:
    if before is not None:
        return _sequence(before) + 1
    return 1 if begins else None


def _sequence(record: Record) -> int:
    text = _header(record, SEQUENCE)
    return int(text) if text.isdigit() else 0


def _producer(record: Record | None) -> UUID | None:
    try:
        return None if record is None else UUID(_header(record, PRODUCER))
    except ValueError:
        return None


def _family(record: Record) -> bytes:
    for name, value in record.headers:
        if name == FAMILY:
            return value
    return b""


def _header(record: Record, name: str) -> str:
    return next((value.decode("utf-8", "replace") for each, value in record.headers if each == name), "")


def _decoded(record: Record) -> Event | None:
    try:
        decoded = Codec().decode(record.value)
    except HeadwaterError:
        return None
    return decoded if isinstance(decoded, Event) else None
