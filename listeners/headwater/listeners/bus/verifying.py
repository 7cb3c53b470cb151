"""Whether a spool is whole: all of it is read, and nothing is changed. A driver may be at work in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.keys import FAMILY, PRODUCER, SEQUENCE
from headwater.journal import Inspection, Lost, Record, Why
from headwater.journal.files import OS_FILES
from headwater.journal.position import committed_positions
from headwater.journal.segment import list_bases, segment_path
from headwater.listeners.bus.course import GUARD, is_course_damaged
from headwater.listeners.bus.passport import read_passport

_MOST: Final = 1_000
"""So many places are told of one spool; the others are counted."""
_DEVICE: Final = "check the device and the kernel's log"
_DELIVERED: Final = f"what is whole is delivered all the same, and a Gap tells each listener what it misses; {_DEVICE}"

OnProgress = Callable[[int], object]
"""Takes how many bytes have been read since the last call."""


@dataclass(frozen=True)
class Finding:
    """Something that isn't as it was written."""

    path: Path
    what: str
    advice: str
    start: int | None = None
    """The bytes that are damaged, where some are."""
    end: int | None = None
    lost: int = 0
    """Records."""
    families: Mapping[str, int] = field(default_factory=dict)
    """How many of them of each family, as far as that can be told."""
    listeners: tuple[str, ...] = ()
    """Those that hadn't got them."""


@dataclass(frozen=True)
class Verdict:
    """What was found out about one spool."""

    spool: Path
    segments: int
    bytes: int
    records: int
    first_sequence: int | None
    last_sequence: int | None
    findings: tuple[Finding, ...]
    more: int
    """Findings that aren't told one by one."""

    @property
    def is_sound(self) -> bool:
        return not self.findings

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.findings)


@dataclass
class _Hole:
    """Records that aren't there, and what stands before them and behind them of each family."""

    finding: Finding
    before: Mapping[str, Record]
    after: dict[str, Record] = field(default_factory=dict)

    def resolved(self) -> Finding:
        counts = {family: _between(self.before.get(family), record) for family, record in self.after.items()}
        told = Counter({family: count for family, count in counts.items() if count})
        return replace(self.finding, families=dict(told))


def verify_spool(spool: Path, on_progress: OnProgress) -> Verdict:
    """Read all of it. A StorageError where it can't be read."""
    return _Verification(spool).run(on_progress)


class _Verification:
    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._inspection = Inspection(OS_FILES, spool)
        self._positions = {name: at for name, at in committed_positions(OS_FILES, spool).items() if name != GUARD}
        self._holes: list[_Hole] = []
        self._more = 0
        self._open: list[_Hole] = []
        self._last_of: dict[str, Record] = {}
        self._sequences: dict[str, int] = {}
        self._first_sequence: int | None = None
        self._records = 0

    def run(self, on_progress: OnProgress) -> Verdict:
        segments, read = len(list_bases(OS_FILES, self._spool)), 0
        for batch in self._inspection.batches():
            is_known = False
            for lost in batch.lost:
                is_known = self._note_lost(lost) or is_known
            self._note_records(batch.records, is_known=is_known)
            on_progress(self._inspection.bytes_read - read)
            read = self._inspection.bytes_read
        findings = [each.resolved() for each in self._holes]
        findings += self._beside()
        last = max(self._sequences.values(), default=None)
        return Verdict(
            self._spool, segments, read, self._records, self._first_sequence, last, tuple(findings), self._more
        )

    def _note_lost(self, lost: Lost) -> bool:
        """Whether that explains a hole in the numbers."""
        if lost.why is not Why.DROPPED:  # that is its driver's doing, while we read
            self._add(_of_lost(lost, self._spool, self._missed_by(lost.first, lost.following)))
        return lost.following > lost.first or lost.why is Why.DROPPED

    def _note_records(self, records: tuple[Record, ...], *, is_known: bool) -> None:
        for record in records:
            headers = dict(record.headers)
            family, producer = _text(headers.get(FAMILY)), _text(headers.get(PRODUCER))
            self._note_number(record, producer, headers.get(SEQUENCE, b""), is_known=is_known)
            is_known = False
            if self._open:
                self._fill(family, record)
            self._last_of[family] = record
        self._records += len(records)

    def _note_number(self, record: Record, producer: str, digits: bytes, *, is_known: bool) -> None:
        if not digits.isdigit():
            return
        number, last = int(digits), self._sequences.get(producer)
        if last is None:
            self._first_sequence = number if self._first_sequence is None else self._first_sequence
        elif number > last + 1 and not is_known:
            self._add(self._unwritten(record, last + 1, number - 1))
        self._sequences[producer] = max(number, last or 0)

    def _unwritten(self, record: Record, first: int, last: int) -> Finding:
        bases = [base for base in list_bases(OS_FILES, self._spool) if base <= record.offset]
        words = f"sequences {first} to {last} aren't there" if last > first else f"sequence {first} isn't there"
        return Finding(
            segment_path(self._spool, bases[-1] if bases else 0),
            f"{words}, before offset {record.offset}: the device failed while they were told",
            f"a Gap of its driver tells it; {_DEVICE}",
            lost=last - first + 1,
            listeners=tuple(sorted(self._positions)),
        )

    def _add(self, finding: Finding) -> None:
        if len(self._holes) >= _MOST:
            self._more += 1
            return
        hole = _Hole(finding, dict(self._last_of))
        self._holes.append(hole)
        if finding.lost:
            self._open.append(hole)

    def _fill(self, family: str, record: Record) -> None:
        for hole in self._open:
            hole.after.setdefault(family, record)
        self._open = [hole for hole in self._open if not hole.before.keys() <= hole.after.keys()]

    def _missed_by(self, first: int, following: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, at in self._positions.items() if at < following and following > first))

    def _beside(self) -> Iterator[Finding]:
        """What stands beside the records."""
        for path in self._inspection.damaged_cursors():
            advice = "what is delivered already may be delivered again, which does no harm"
            yield Finding(path, "the position of a cursor can't be read", advice)
        if read_passport(OS_FILES, self._spool).producer is None:
            words = "it can't be read whose spool this is, and for which listeners it was kept"
            yield Finding(self._spool / "spool.json", words, "it is shipped to all durable listeners there are")
        if is_course_damaged(OS_FILES, self._spool):
            words = "it can't be read which runs of its driver were open"
            advice = "if that was killed nobody tells the end of its runs: their Heartbeats stop without a Closed"
            yield Finding(self._spool / "course.json", words, advice)


def _of_lost(lost: Lost, spool: Path, listeners: tuple[str, ...]) -> Finding:
    count = lost.following - lost.first
    if lost.path is not None and lost.end > lost.start:
        what = "damaged" if count else "damaged, and held no record"
        return Finding(lost.path, what, _DELIVERED, lost.start, lost.end, count, {}, listeners)
    what = f"offsets {lost.first} to {lost.following - 1} are gone, and nothing dropped them"
    return Finding(lost.path or spool, what, _DELIVERED, None, None, count, {}, listeners)


def _between(before: Record | None, after: Record) -> int | None:
    """How many events of a family are missing between two of it."""
    first, last = _number(before), _number(after)
    return None if first is None or last is None else max(0, last - first - 1)


def _number(record: Record | None) -> int | None:
    try:
        decoded = None if record is None else Codec().decode(record.value)
    except HeadwaterError:
        return None
    return decoded.family_sequence if isinstance(decoded, Event) else None


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
