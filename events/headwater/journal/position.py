"""Where a cursor stands, on disk: two small files, of which the newer valid one holds.

A commit replaces the older one (write aside, fsync, rename, fsync of the directory), so that whatever happens to it the
one before it is still there; a cursor then reads some records again, and misses none.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from struct import Struct
from zlib import crc32

from headwater.journal.errors import CursorError
from headwater.journal.files import Files, read_file, replace_file

_LOG = logging.getLogger(__name__)
_DIRECTORY = "cursors"
_FIELDS = Struct("<8sQQ")
_CHECKSUM = Struct("<I")
_SIZE = _FIELDS.size + _CHECKSUM.size
_MAGIC = b"HWCRSR\r\n"
_SUFFIXES = (".position0", ".position1")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class DurablePosition:
    """One cursor's committed offset. Not thread-safe; the cursor's lock is held by whoever commits."""

    def __init__(self, files: Files, journal: Path, name: str) -> None:
        self._files = files
        self._stem = cursor_stem(journal, name)
        found = [_load(files, path) for path in self._paths()]
        self._generation = 0
        self.offset: int | None = None
        self._generation, self.offset = max((each for each in found if each is not None), default=(0, None))
        if self.offset is None and any((read_file(files, path, 1) or b"") for path in self._paths()):
            _LOG.warning("%s: both position files are damaged; reading starts anew", self._stem)

    def _paths(self) -> list[Path]:
        return [self._stem.with_name(self._stem.name + suffix) for suffix in _SUFFIXES]

    def commit(self, offset: int, *, durable: bool) -> None:
        """After an OSError either position is in force, the one before or this."""
        generation = self._generation + 1
        fields = _FIELDS.pack(_MAGIC, generation, offset)
        data = fields + _CHECKSUM.pack(crc32(fields))
        replace_file(self._files, self._paths()[generation % 2], data, durable=durable)
        self._generation, self.offset = generation, offset

    def remove(self) -> None:
        for path in self._paths():
            if read_file(self._files, path, 1) is not None:
                self._files.remove(path)


def cursors_directory(journal: Path) -> Path:
    """Where a journal keeps its cursors."""
    return journal / _DIRECTORY


def make_cursors_directory(files: Files, journal: Path) -> None:
    """Never the journal's own: whoever comes late, after it was read to its end and removed, must not bring it back."""
    files.make_directory(cursors_directory(journal), parents=False)


def cursor_stem(journal: Path, name: str) -> Path:
    """The path that a cursor's files begin with."""
    if not _NAME.fullmatch(name):
        raise CursorError(f"a cursor's name is 1 to 100 letters, digits, '.', '_' or '-', not {name!r}")
    return journal / _DIRECTORY / name


def committed_positions(files: Files, journal: Path) -> dict[str, int]:
    """What every durable cursor of a journal has committed."""
    try:
        names = files.names(journal / _DIRECTORY)
    except FileNotFoundError:
        return {}
    found: dict[str, tuple[int, int]] = {}
    for name in names:
        cursor = name.removesuffix(_SUFFIXES[0]).removesuffix(_SUFFIXES[1])
        if cursor != name:
            # A damaged file counts as offset 0: better to keep too much than to cut what is still to be read.
            loaded = _load(files, journal / _DIRECTORY / name) or (0, 0)
            found[cursor] = max(loaded, found.get(cursor, loaded))
    return {cursor: offset for cursor, (_, offset) in found.items()}


def damaged_positions(files: Files, journal: Path) -> list[Path]:
    """The position files of a journal that can't be read: a torn one is not looked at any more, its twin holds."""
    try:
        names = files.names(journal / _DIRECTORY)
    except FileNotFoundError:
        return []
    paths = [journal / _DIRECTORY / name for name in sorted(names) if name.endswith(_SUFFIXES)]
    return [path for path in paths if path.exists() and _load(files, path) is None]


def _load(files: Files, path: Path) -> tuple[int, int] | None:
    data = read_file(files, path, _SIZE) or b""
    if len(data) != _SIZE:
        return None
    magic, generation, offset = _FIELDS.unpack_from(data)
    (checksum,) = _CHECKSUM.unpack_from(data, _FIELDS.size)
    return (generation, offset) if magic == _MAGIC and crc32(data[: _FIELDS.size]) == checksum else None
