"""A segment file: its name, which is its first offset, and its header."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from zlib import crc32

from headwater.journal.errors import FormatError
from headwater.journal.files import CREATE, Files, close_quietly, read_file, write_all

SUFFIX = ".segment"
UNFINISHED = ".new"
"""Ends the name of a file that isn't what it is to become; who opens the journal for writing removes it."""
MAGIC = b"HWJRNL\r\n"  # the line end shows a transfer that took it for text
VERSION = 1
_DIGITS = 20
_FIELDS = Struct("<8sHHQQq")
_CHECKSUM = Struct("<I")
HEADER_SIZE = _FIELDS.size + _CHECKSUM.size


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """`base` is the first offset here; those from `continues` to `base` were never acknowledged: nobody misses them."""

    base: int
    continues: int
    created: int


@dataclass(slots=True)
class Segment:
    """A segment as its writer knows it; `newest` is the time of its last record, or of its creation."""

    base: int
    path: Path
    size: int
    newest: int


def segment_path(directory: Path, base: int) -> Path:
    return directory / f"{base:0{_DIGITS}d}{SUFFIX}"


def base_of(name: str) -> int | None:
    """The first offset of the segment called so; None for any other file."""
    stem, dot, suffix = name.partition(".")
    if dot + suffix != SUFFIX or len(stem) != _DIGITS or not stem.isdecimal():
        return None
    return int(stem)


def list_bases(files: Files, directory: Path) -> list[int]:
    """The first offsets of all segments of a journal, ascending; none where there is no journal."""
    try:
        names = files.names(directory)
    except FileNotFoundError:
        return []
    return sorted(base for name in names if (base := base_of(name)) is not None)


def seed_of(base: int) -> int:
    """What a segment's checksums start from. It follows from the name, so that a damaged header costs no record."""
    return crc32(base.to_bytes(8, "little"), 0x48_57_4A_31)


def pack_header(header: SegmentHeader) -> bytes:
    fields = _FIELDS.pack(MAGIC, VERSION, 0, header.base, header.continues, header.created)
    return fields + _CHECKSUM.pack(crc32(fields))


def unpack_header(data: bytes, path: Path) -> SegmentHeader | None:
    """The header, or None where it is damaged or cut short; a FormatError where a newer version wrote it."""
    if len(data) < HEADER_SIZE:
        return None
    magic, version, _, base, continues, created = _FIELDS.unpack_from(data)
    (checksum,) = _CHECKSUM.unpack_from(data, _FIELDS.size)
    if magic != MAGIC or crc32(data[: _FIELDS.size]) != checksum:
        return None
    if version != VERSION:
        raise FormatError(f"{path} has format {version}, this version reads {VERSION}: use the version that wrote it")
    return SegmentHeader(base, continues, created)


def read_header(files: Files, path: Path) -> SegmentHeader | None:
    """The header of the segment at a path, as `unpack_header` answers; None too where there is no such file."""
    return unpack_header(read_file(files, path, HEADER_SIZE) or b"", path)


def create_segment(files: Files, directory: Path, header: SegmentHeader) -> tuple[Segment, int]:
    """A new segment and its descriptor. It gets its name only when its header is in, so no reader sees it without."""
    path = segment_path(directory, header.base)
    fresh = path.with_name(path.name + UNFINISHED)
    descriptor = files.open(fresh, CREATE)
    try:
        write_all(files, descriptor, pack_header(header), 0)
        files.rename(fresh, path)
    except OSError:
        close_quietly(files, descriptor)
        raise
    return Segment(header.base, path, HEADER_SIZE, header.created), descriptor
