"""Reading one segment: whole frames in order, and the way on behind damaged bytes.

Nothing is believed but a frame whose checksum is right. What is not one may be a record that is just being written, the
torn end that a crash left, or damage; which of them it is depends on what follows, and is decided by the callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwater.journal.files import READ, Closing, Files, close_quietly
from headwater.journal.record import (
    HEAD_SIZE,
    MARK,
    MARK_START,
    Head,
    JournalRecord,
    body_matches,
    decode_body,
    read_head,
)
from headwater.journal.segment import HEADER_SIZE, SegmentHeader, seed_of, unpack_header

CHUNK = 64 * 1024
_EVERYTHING = 1 << 62


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes [start, end) of a segment that hold no whole record; the record behind them has the offset `end_offset`."""

    start: int
    end: int
    end_offset: int


class SegmentScanner(Closing):
    """A position in a segment file. Not thread-safe; holds one descriptor."""

    def __init__(self, files: Files, path: Path, base: int) -> None:
        self.path = path
        self.base = base
        self.position = HEADER_SIZE
        self.offset = base
        """The offset of the record at `position`."""
        self.last_time: int | None = None
        self._files = files
        self._seed = seed_of(base)
        self._descriptor = files.open(path, READ)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            close_quietly(self._files, descriptor)

    def header(self) -> SegmentHeader | None:
        """The segment's header, or None where it is damaged; its records can be read all the same."""
        return unpack_header(self._read(HEADER_SIZE, 0), self.path)

    def size(self) -> int:
        return self._files.size(self._descriptor)

    def bytes_at(self, position: int, count: int) -> bytes:
        return self._read(count, position)

    def read(self, max_records: int, max_bytes: int) -> list[JournalRecord]:
        """The next whole records; none where there is nothing (yet) that makes one.

        Bytes that were no whole record are read anew each time: their writer may have finished or replaced them.
        """
        records: list[JournalRecord] = []
        want = CHUNK
        while True:
            data = self._read(want, self.position)
            missing = self._decode(data, records, max_records, max_bytes)
            if records or missing <= len(data) or self.position + missing > self.size():
                return records
            want = missing

    def _decode(self, data: bytes, records: list[JournalRecord], max_records: int, max_bytes: int) -> int:
        """Append the whole records at the start of `data`; answers how many bytes the first one left needs."""
        at, end, taken = 0, len(data), 0
        view = memoryview(data)
        while len(records) < max_records and taken < max_bytes:
            if end - at < HEAD_SIZE:
                return HEAD_SIZE if end > at else 0
            head = read_head(data, at)
            if head is None or head.offset != self.offset:
                return 0
            if at + head.size > end:
                return head.size
            if not body_matches(view[at : at + head.size], head, self._seed + self.position):
                return 0
            records.append(decode_body(data, at, head))
            at += head.size
            taken += head.size
            self.position += head.size
            self.offset += 1
            self.last_time = head.time
        return 0

    def find_damage(self) -> Damage | None:
        """What lies between here and the next whole record, or None where none follows (yet).

        A writer appends in order, so a whole record behind here means that what is here is final; but it may have been
        read a moment before it was. So once one is seen everything is read again, and only the second look counts.
        """
        if self._find_frame(self.position + 1) is None or self._frame_at(self.position) is not None:
            return None
        found = self._find_frame(self.position + 1)
        return None if found is None else Damage(self.position, found[0], found[1].offset)

    def skip(self, damage: Damage) -> None:
        self.position = damage.end
        self.offset = damage.end_offset

    def run_through(self) -> list[Damage]:
        """To behind the last whole record, over whatever damage lies between: that is reported."""
        found: list[Damage] = []
        while True:
            while self.read(_EVERYTHING, CHUNK):
                pass
            damage = self.find_damage()
            if damage is None:
                return found
            found.append(damage)
            self.skip(damage)

    def _find_frame(self, start: int) -> tuple[int, Head] | None:
        at = start
        while len(data := self._read(CHUNK, at)) >= len(MARK):
            hit = data.find(MARK_START)
            while hit >= 0:
                head = self._frame_at(at + hit)
                if head is not None:
                    return at + hit, head
                hit = data.find(MARK_START, hit + 1)
            at += len(data) - len(MARK) + 1
        return None

    def _frame_at(self, position: int) -> Head | None:
        """The whole frame at a position, if its offset is one that records in between leave room for."""
        data = self._read(HEAD_SIZE, position)
        head = read_head(data, 0) if len(data) == HEAD_SIZE else None
        if head is None or not 0 <= head.offset - self.offset <= (position - self.position) // HEAD_SIZE:
            return None
        if position + head.size > self.size():
            return None
        frame = self._read(head.size, position)
        return head if len(frame) == head.size and body_matches(frame, head, self._seed + position) else None

    def _read(self, count: int, position: int) -> bytes:
        return self._files.read(self._descriptor, count, position)
