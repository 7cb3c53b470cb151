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
from headwater.journal import Inspection, JournalRecord, MissingReason, MissingRecords
from headwater.journal.files import OS_FILES
from headwater.journal.position import committed_positions
from headwater.journal.segment import list_bases, segment_path
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR, is_progress_damaged
from headwater.listeners.bus.spool_manifest import read_manifest

_MAX_DEFECTS: Final = 1_000
"""So many places are reported of one spool; the others are counted."""
_CHECK_DEVICE: Final = "check the device and the kernel's log"
_STILL_DELIVERED: Final = (
    f"what is whole is delivered all the same, and a Gap tells each listener what it misses; {_CHECK_DEVICE}"
)

OnProgress = Callable[[int], object]
"""Takes how many bytes have been read since the last call."""


@dataclass(frozen=True)
class SpoolDefect:
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
    """How many of them of each family, as far as that can be known."""
    listeners: tuple[str, ...] = ()
    """Those that hadn't got them."""


@dataclass(frozen=True)
class SpoolVerification:
    """What was found out about one spool."""

    spool: Path
    segments: int
    bytes: int
    records: int
    first_sequence: int | None
    last_sequence: int | None
    findings: tuple[SpoolDefect, ...]
    more: int
    """Findings that aren't listed one by one."""

    @property
    def is_sound(self) -> bool:
        return not self.findings

    @property
    def lost(self) -> int:
        return sum(finding.lost for finding in self.findings)


@dataclass
class _MissingRecords:
    """Records that aren't there, and what stands before them and behind them of each family."""

    finding: SpoolDefect
    before: Mapping[str, JournalRecord]
    after: dict[str, JournalRecord] = field(default_factory=dict)

    def resolved(self) -> SpoolDefect:
        counts = {family: _count_between(self.before.get(family), record) for family, record in self.after.items()}
        families = Counter({family: count for family, count in counts.items() if count})
        return replace(self.finding, families=dict(families))


def verify_spool(spool: Path, on_progress: OnProgress) -> SpoolVerification:
    """Read all of it. A StorageError where it can't be read."""
    return _SpoolVerifier(spool).run(on_progress)


class _SpoolVerifier:
    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._inspection = Inspection(OS_FILES, spool)
        self._positions = {
            name: at for name, at in committed_positions(OS_FILES, spool).items() if name != PROGRESS_CURSOR
        }
        self._defects: list[_MissingRecords] = []
        self._more = 0
        self._open: list[_MissingRecords] = []
        self._last_of: dict[str, JournalRecord] = {}
        self._sequences: dict[str, int] = {}
        self._first_sequence: int | None = None
        self._records = 0

    def run(self, on_progress: OnProgress) -> SpoolVerification:
        segments, read = len(list_bases(OS_FILES, self._spool)), 0
        for batch in self._inspection.batches():
            is_known = False
            for lost in batch.missing:
                is_known = self._note_lost(lost) or is_known
            self._note_records(batch.records, is_known=is_known)
            on_progress(self._inspection.bytes_read - read)
            read = self._inspection.bytes_read
        findings = [defect.resolved() for defect in self._defects]
        findings += self._verify_other_files()
        last = max(self._sequences.values(), default=None)
        return SpoolVerification(
            self._spool, segments, read, self._records, self._first_sequence, last, tuple(findings), self._more
        )

    def _note_lost(self, lost: MissingRecords) -> bool:
        """Whether that explains a lost range in the numbers."""
        if lost.reason is not MissingReason.DROPPED:  # that is its driver's doing, while we read
            self._add(_defect_of_loss(lost, self._spool, self._missed_by(lost.first, lost.end_offset)))
        return lost.end_offset > lost.first or lost.reason is MissingReason.DROPPED

    def _note_records(self, records: tuple[JournalRecord, ...], *, is_known: bool) -> None:
        for record in records:
            headers = dict(record.headers)
            family, producer = _decode_text(headers.get(FAMILY)), _decode_text(headers.get(PRODUCER))
            self._note_number(record, producer, headers.get(SEQUENCE, b""), is_known=is_known)
            is_known = False
            if self._open:
                self._fill(family, record)
            self._last_of[family] = record
        self._records += len(records)

    def _note_number(self, record: JournalRecord, producer: str, digits: bytes, *, is_known: bool) -> None:
        if not digits.isdigit():
            return
        number, last = int(digits), self._sequences.get(producer)
        if last is None:
            self._first_sequence = number if self._first_sequence is None else self._first_sequence
        elif number > last + 1 and not is_known:
            self._add(self._unwritten_defect(record, last + 1, number - 1))
        self._sequences[producer] = max(number, last or 0)

    def _unwritten_defect(self, record: JournalRecord, first: int, last: int) -> SpoolDefect:
        bases = [base for base in list_bases(OS_FILES, self._spool) if base <= record.offset]
        words = f"sequences {first} to {last} aren't there" if last > first else f"sequence {first} isn't there"
        return SpoolDefect(
            segment_path(self._spool, bases[-1] if bases else 0),
            f"{words}, before offset {record.offset}: the device failed while they were recorded",
            f"a Gap of its driver tells it; {_CHECK_DEVICE}",
            lost=last - first + 1,
            listeners=tuple(sorted(self._positions)),
        )

    def _add(self, finding: SpoolDefect) -> None:
        if len(self._defects) >= _MAX_DEFECTS:
            self._more += 1
            return
        lost_range = _MissingRecords(finding, dict(self._last_of))
        self._defects.append(lost_range)
        if finding.lost:
            self._open.append(lost_range)

    def _fill(self, family: str, record: JournalRecord) -> None:
        for lost_range in self._open:
            lost_range.after.setdefault(family, record)
        self._open = [
            lost_range for lost_range in self._open if not lost_range.before.keys() <= lost_range.after.keys()
        ]

    def _missed_by(self, first: int, following: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, at in self._positions.items() if at < following and following > first))

    def _verify_other_files(self) -> Iterator[SpoolDefect]:
        """What stands beside the records."""
        for path in self._inspection.damaged_cursors():
            advice = "what is delivered already may be delivered again, which does no harm"
            yield SpoolDefect(path, "the position of a cursor can't be read", advice)
        if read_manifest(OS_FILES, self._spool).producer is None:
            words = "it can't be read whose spool this is, and for which listeners it was kept"
            yield SpoolDefect(self._spool / "spool.json", words, "it is shipped to all durable listeners there are")
        if is_progress_damaged(OS_FILES, self._spool):
            words = "it can't be read which runs of its driver were open"
            advice = "if that was killed nobody tells the end of its runs: their Heartbeats stop without a Closed"
            yield SpoolDefect(self._spool / "progress.json", words, advice)


def _defect_of_loss(lost: MissingRecords, spool: Path, listeners: tuple[str, ...]) -> SpoolDefect:
    count = lost.end_offset - lost.first
    if lost.path is not None and lost.end > lost.start:
        what = "damaged" if count else "damaged, and held no record"
        return SpoolDefect(lost.path, what, _STILL_DELIVERED, lost.start, lost.end, count, {}, listeners)
    what = f"offsets {lost.first} to {lost.end_offset - 1} are gone, and nothing dropped them"
    return SpoolDefect(lost.path or spool, what, _STILL_DELIVERED, None, None, count, {}, listeners)


def _count_between(before: JournalRecord | None, after: JournalRecord) -> int | None:
    """How many events of a family are missing between two of it."""
    first, last = _number_of(before), _number_of(after)
    return None if first is None or last is None else max(0, last - first - 1)


def _number_of(record: JournalRecord | None) -> int | None:
    try:
        decoded = None if record is None else Codec().decode(record.value)
    except HeadwaterError:
        return None
    return decoded.family_sequence if isinstance(decoded, Event) else None


def _decode_text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
