"""Writes files as Hadoop's local file system does: each beside its place, synced, with a file of checksums."""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Final

_CHUNK: Final = 512
"""How many bytes each checksum is of: `file.bytes-per-checksum`, which a file of checksums repeats."""
_HEADER: Final = b"crc\x00"


def checksum_path(path: Path) -> Path:
    """Return where Hadoop looks for a file's checksums."""
    return path.with_name(f".{path.name}.crc")


def checksums_of(content: bytes) -> bytes:
    """Return what Hadoop writes into a file of checksums."""
    chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    return _HEADER + struct.pack(">i", _CHUNK) + b"".join(struct.pack(">I", zlib.crc32(each)) for each in chunks)


def write_file(path: Path, content: bytes) -> None:
    """Write a file and its checksums, and sync both."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_synced(path, content)
    _write_synced(checksum_path(path), checksums_of(content))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file byte by byte, and sync it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written)
        written.flush()
        os.fsync(written.fileno())


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
