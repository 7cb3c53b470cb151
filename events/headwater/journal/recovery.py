"""What a writer does with the last segment that its predecessor left; only ever under the writer's lock.

An end that a kill or a power cut tore off is cut away: nobody was informed that it is in, and no reader has seen it. An
end that isn't a torn record is damage to records that may have been acknowledged: it stays where it is, and the journal
goes on in a new segment, so that every reader is informed of what it misses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headwater.journal.files import WRITE, Files, open_descriptor, write_all
from headwater.journal.record import HEAD_SIZE, MARK, read_head
from headwater.journal.scan import CHUNK, SegmentScanner
from headwater.journal.segment import HEADER_SIZE, SegmentHeader, pack_header

_LOG = logging.getLogger(__name__)
_EVERYTHING = 1 << 62


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """The end of a journal as it was found."""

    path: Path
    offset: int
    """The next offset to be given."""
    size: int
    """Bytes of the last segment that hold whole records."""
    newest: int
    """The append time of the last record, or of the segment's creation."""
    torn: int = 0
    """Bytes of a record that was never finished, cut off."""
    continues: int | None = None
    """With `corrupt`: where offsets seem to have ended; `offset` is beyond any that can have been given."""
    corrupt: int = 0
    """Bytes at the end that are no torn record; they stay, and the journal goes on in a new segment."""


def recover_segment(files: Files, path: Path, base: int) -> RecoveryResult:
    """Look through a journal's last segment and cut off its torn end."""
    with SegmentScanner(files, path, base) as scanner:
        header = scanner.header()
        for damage in scanner.run_through():
            _LOG.warning("%s: bytes %d to %d are corrupt", path, damage.start, damage.end)
        rest = scanner.size() - scanner.position
        newest = scanner.last_time if scanner.last_time is not None else (header.created if header else 0)
        found = RecoveryResult(path, scanner.offset, scanner.position, newest)
        if rest <= 0:
            torn_creation = header is None and scanner.offset == base
            if torn_creation:
                _write_header(files, path, SegmentHeader(base, base, newest))
            return found
        if is_torn(scanner):
            cut_tail(files, path, scanner.position)
            _LOG.info("%s: cut a torn record of %d bytes at %d", path, rest, scanner.position)
            return RecoveryResult(path, found.offset, found.size, newest, torn=rest)
        _LOG.warning("%s: bytes %d to %d are corrupt", path, scanner.position, scanner.position + rest)
        lost, most = lost_at_end(scanner), rest // HEAD_SIZE + 1
        return RecoveryResult(
            path, found.offset + most, found.size, newest, corrupt=rest, continues=found.offset + lost
        )


def whole_records(files: Files, path: Path, base: int, position: int, offset: int) -> tuple[int, int]:
    """After a write failed: how many records from `position` on are whole, and where they end."""
    with SegmentScanner(files, path, base) as scanner:
        scanner.position, scanner.offset = position, offset
        while scanner.read(_EVERYTHING, CHUNK):
            pass
        return scanner.offset - offset, scanner.position


def cut_tail(files: Files, path: Path, size: int) -> None:
    with open_descriptor(files, path, WRITE) as descriptor:
        files.truncate(descriptor, size)
        files.sync(descriptor)


def is_torn(scanner: SegmentScanner) -> bool:
    """Whether the end looks like a record of which a part was written, or like blocks a power cut left empty."""
    position, rest = scanner.position, scanner.size() - scanner.position
    data = scanner.bytes_at(position, HEAD_SIZE)
    if len(data) < HEAD_SIZE:
        return data[: len(MARK)] == MARK[: len(data)] or not any(data)
    head = read_head(data, 0)
    if head is not None:
        return head.offset == scanner.offset and head.size > rest
    return all(not any(chunk) for chunk in _chunks(scanner))


def lost_at_end(scanner: SegmentScanner) -> int:
    """How many records a corrupt end held, as near as can be known."""
    return max(1, sum(chunk.count(MARK) for chunk in _chunks(scanner)))


def _chunks(scanner: SegmentScanner) -> Iterator[bytes]:
    for at in range(scanner.position, scanner.size(), CHUNK):
        yield scanner.bytes_at(at, CHUNK)


def _write_header(files: Files, path: Path, header: SegmentHeader) -> None:
    with open_descriptor(files, path, WRITE) as descriptor:
        write_all(files, descriptor, pack_header(header), 0)
        files.truncate(descriptor, HEADER_SIZE)
        files.sync(descriptor)
