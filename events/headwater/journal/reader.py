"""Reads a journal from an offset on, beside its writer or without one, in this process or another.

A reader follows one rule: bytes that aren't a whole record are damage only if a whole record or another segment follows
them; else they may be a record that is just being written, and the reader comes back. `MissingRecords` at the start of
a batch say which offsets directly before the batch's first record can't be read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from headwater.journal.errors import ClosedError, storage_error
from headwater.journal.files import Closing, Files
from headwater.journal.record import JournalRecord
from headwater.journal.scan import CHUNK, SegmentScanner
from headwater.journal.segment import HEADER_SIZE, SegmentHeader, list_bases, segment_path

_LONGEST_WAIT = 0.1  # so that `close` is noticed
Wait = Callable[[int, float], bool]
"""Waits until the journal has grown beyond an offset, for so many seconds at most or shorter for no reason. Returns
whether it may have: False only where its writer knows that it hasn't."""


class MissingReason(str, Enum):
    """Why records are missing."""

    DROPPED = "dropped"
    """By the journal's own limits."""
    CORRUPT = "corrupt"
    MISSING = "missing"
    """A file, or the end of one, is gone though nothing dropped it: a power cut before an fsync, or somebody."""


@dataclass(frozen=True, slots=True)
class MissingRecords:
    """Offsets [first, end_offset) don't come. `first == end_offset` where damaged bytes held no record.

    `path`, `start` and `end` say which bytes are unreadable; for whole files that are gone they are None and 0.
    """

    first: int
    end_offset: int
    reason: MissingReason
    path: Path | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """Records in order, what is missing directly before them, and the position to commit once they are done with."""

    records: tuple[JournalRecord, ...]
    missing: tuple[MissingRecords, ...]
    position: int

    def __bool__(self) -> bool:
        return bool(self.records or self.missing)


def _nothing_at(position: int) -> JournalBatch:
    return JournalBatch((), (), position)


class Tail(Closing):
    """A position in a journal, for one thread (`close` may come from another); holds at most one descriptor."""

    def __init__(self, files: Files, directory: Path, position: int, wait: Wait | None = None) -> None:
        self.position = position
        """The offset of the next record to come."""
        self._files = files
        self._directory = directory
        self._scanner: SegmentScanner | None = None
        self._following: int | None = None
        """The segment after the current one, once there is one: then the current one grows no more."""
        self._lost: list[MissingRecords] = []
        self._passed = 0
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._wait = wait or _Poll(self._closed)

    @property
    def bytes_read(self) -> int:
        """How much of the segments has been read, over all of them."""
        return self._passed + (0 if self._scanner is None else self._scanner.position)

    def close(self) -> None:
        """Give up the descriptor; a `read` that is waiting in another thread ends with a ClosedError soon after."""
        self._closed.set()
        with self._busy:
            self._leave_segment()

    def seek(self, position: int) -> None:
        """Read on from another offset."""
        with self._busy:
            self._leave_segment()
            self._lost.clear()
            self.position = position

    def read(self, max_records: int = 1000, max_bytes: int = 1024 * 1024, timeout: float = 0.0) -> JournalBatch:
        """The next records, at most so many and often fewer; waits for the first up to `timeout` seconds.

        Where the writer is here and knows of none, nothing is looked for on the disk."""
        if max_records < 1 or max_bytes < 1:
            raise ValueError(f"a read takes at least 1 record and 1 byte, not {max_records} and {max_bytes}")
        deadline = time.monotonic() + timeout
        has_grown = self._wait(self.position, 0.0)
        while True:
            with self._busy:
                if self._closed.is_set():
                    raise ClosedError(f"the reader of {self._directory} is closed")
                is_at_end = not has_grown and self._scanner is not None
                batch = _nothing_at(self.position) if is_at_end else self._read_typed(max_records, max_bytes)
            left = deadline - time.monotonic()
            if batch or left <= 0:
                return batch
            has_grown = self._wait(self.position, min(left, _LONGEST_WAIT))

    def _read_typed(self, max_records: int, max_bytes: int) -> JournalBatch:
        try:
            return self._read_now(max_records, max_bytes)
        except OSError as error:
            raise storage_error(error, "reading from", self._directory) from error

    def _read_now(self, max_records: int, max_bytes: int) -> JournalBatch:
        while self._scanner is not None or self._enter_segment():
            records = self._next_records(max_records, max_bytes)
            if records:
                self.position = records[-1].offset + 1
                break
            if not self._step_over():
                break
        else:
            records = []
        lost, self._lost = tuple(self._lost), []
        return JournalBatch(tuple(records), lost, self.position)

    def _next_records(self, max_records: int, max_bytes: int) -> list[JournalRecord]:
        """Whole records from the position on; those before it in the segment are passed over."""
        scanner = self._here()
        while scanner.offset < self.position:
            if not scanner.read(min(self.position - scanner.offset, 4096), CHUNK):
                return []
        return scanner.read(max_records, max_bytes)

    def _here(self) -> SegmentScanner:
        assert self._scanner is not None  # noqa: S101 - callers have entered a segment
        return self._scanner

    def _step_over(self) -> bool:
        """Nothing whole is here: go behind damage, or into the next segment; False where there is nothing to go to."""
        scanner = self._here()
        damage = scanner.find_damage()
        if damage is not None:
            if max(damage.end_offset, scanner.offset + 1) > self.position:
                self._report_missing(damage.end_offset, MissingReason.CORRUPT, scanner.path, damage.start, damage.end)
            scanner.skip(damage)
            return True
        if self._following is None:
            self._following = self._following_segment(scanner.base)
            return self._following is not None  # read again first: it may have grown until that one was made
        following, self._following = self._following, None
        self._enter(following, scanner)
        return True

    def _following_segment(self, base: int) -> int | None:
        return min((each for each in list_bases(self._files, self._directory) if each > base), default=None)

    def _enter_segment(self) -> bool:
        """Open the segment that has the position, or the first one behind it; False where the journal has none."""
        while bases := list_bases(self._files, self._directory):
            base = max((each for each in bases if each <= self.position), default=bases[0])
            if self._enter(base, None):
                return True
        return False

    def _enter(self, base: int, left: SegmentScanner | None) -> bool:
        """Go into a segment and tell what lies between; False if it was dropped in this moment."""
        try:
            scanner = SegmentScanner(self._files, segment_path(self._directory, base), base)
        except FileNotFoundError:
            return False
        try:
            header = scanner.header()
            self._arrive(scanner, header, left)
        except BaseException:
            scanner.close()
            raise
        self._leave_segment()
        self._scanner = scanner
        return True

    def _arrive(self, scanner: SegmentScanner, header: SegmentHeader | None, left: SegmentScanner | None) -> None:
        base = scanner.base
        damaged = header is None and scanner.size() >= HEADER_SIZE
        continues = base if header is None else header.continues
        if self.position < continues:
            self._report_missing_segments(continues, left)
        self.position = max(self.position, base)
        if damaged and self.position == base:
            self._report_missing(base, MissingReason.CORRUPT, scanner.path, 0, HEADER_SIZE)

    def _report_missing_segments(self, continues: int, left: SegmentScanner | None) -> None:
        if left is None:
            self._report_missing(continues, MissingReason.DROPPED)
        elif left.position < left.size():
            self._report_missing(continues, MissingReason.CORRUPT, left.path, left.position, left.size())
        else:
            oldest = min(list_bases(self._files, self._directory), default=continues)
            self._report_missing(
                continues, MissingReason.DROPPED if left.base < oldest else MissingReason.MISSING, left.path
            )

    def _report_missing(
        self, following: int, why: MissingReason, path: Path | None = None, start: int = 0, end: int = 0
    ) -> None:
        self._lost.append(MissingRecords(self.position, following, why, path, start, end))
        self.position = following

    def _leave_segment(self) -> None:
        self._following = None
        if self._scanner is not None:
            self._passed += self._scanner.position
            self._scanner.close()
            self._scanner = None


class _Poll:
    """Waits without a word from the writer: short naps that grow while nothing comes."""

    def __init__(self, closed: threading.Event) -> None:
        self._closed = closed
        self._nap = 0.001
        self._position = -1

    def __call__(self, position: int, seconds: float) -> bool:
        if seconds > 0:
            self._nap = min(self._nap * 2, 0.05) if position == self._position else 0.001
            self._position = position
            self._closed.wait(min(self._nap, seconds))
        return True
