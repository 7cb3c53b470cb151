"""The local log: a bus in a directory, for several processes of one machine.

Each writer appends to a journal of its own, a *partition*: order holds per writer, an append waits for no other
process, and a writer that dies in the middle of a record harms nobody. A partition outlives its writer; the next one
takes it over and goes on with its offsets, so there are as many as there were writers at one time. Readers merge
partitions by append time.

Journals whose writer is dead: found by another process, which opens, ships and removes them.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from headwater.errors import HeadwaterError
from headwater.journal.cursor import CursorStart, JournalReader
from headwater.journal.errors import FormatError, LockedError, translate_os_errors
from headwater.journal.files import OS_FILES, Files
from headwater.journal.groups import GroupMember, ResumePosition
from headwater.journal.lock import FileLock, is_locked
from headwater.journal.options import JournalOptions
from headwater.journal.position import committed_positions, cursors_directory
from headwater.journal.segment import list_bases, segment_path
from headwater.journal.writer import LOCK_NAME, Journal

_SWEEPS: Final = 5
_REMAINS_SECONDS: Final = 10.0
"""A lock that is younger may be of somebody who is about to write the first segment."""


def find_orphans(parent: Path | str) -> list[Path]:
    """Directories right under `parent` with a journal that nobody writes to now.

    Somebody may lock one in the next moment, so `Journal.open` decides; a directory without segments is left out.
    """
    root = Path(parent)
    if not root.is_dir():
        return []
    found = sorted(child for child in root.iterdir() if child.is_dir())
    return [path for path in found if list_bases(OS_FILES, path) and not is_locked(path / LOCK_NAME)]


def remove_journal(directory: Path | str) -> None:
    """Remove a journal with its cursors; a LockedError while somebody writes to it or reads with a cursor.

    Segments go first, the oldest before the others, and cursors after them: what a crash in between leaves is a journal
    that has been read as far as it had been, or none. The lock goes last and is held until then.
    """
    path = Path(directory)
    with translate_os_errors("removing", path):
        lock = FileLock.acquire(path / LOCK_NAME, f"journal {path}")
        try:
            _remove(path)
        finally:
            lock.release()


def _remove(path: Path) -> None:
    for held in cursors_directory(path).glob("*.lock"):
        if is_locked(held):
            raise LockedError(f"cursor {held.stem!r} of {path} is being read with: close it first")
    for base in list_bases(OS_FILES, path):
        segment_path(path, base).unlink()
    for _ in range(_SWEEPS):
        _sweep(path)
        try:
            path.rmdir()
        except OSError as e:
            if e.errno != errno.ENOTEMPTY:
                raise
            if (path / LOCK_NAME).exists():
                return  # of somebody who wanted to open it just now: the rest is theirs, or `remove_remains` has it
        else:
            return
    raise OSError(errno.ENOTEMPTY, "somebody makes files in it again and again", str(path))


def _sweep(path: Path) -> None:
    for child in path.iterdir():
        if child.name != LOCK_NAME and child.is_file():
            child.unlink(missing_ok=True)
    shutil.rmtree(cursors_directory(path), ignore_errors=True)
    (path / LOCK_NAME).unlink(missing_ok=True)


def remove_remains(parent: Path | str) -> None:
    """Remove what is left of journals whose removal was interrupted, or met by somebody who wanted to open it: a lock
    that nobody holds, and no segment. Nothing can be read there, and nobody would look there again."""
    root = Path(parent)
    for lock in sorted(root.glob(f"*/{LOCK_NAME}")) if root.is_dir() else ():
        with contextlib.suppress(HeadwaterError, OSError):
            is_old = time.time() - lock.stat().st_mtime > _REMAINS_SECONDS
            if is_old and not list_bases(OS_FILES, lock.parent) and not is_locked(lock):
                remove_journal(lock.parent)


T = TypeVar("T")
_PARTITION = re.compile(r"partition-\d{4,}")


class LocalLog:
    """A directory of partitions. It holds nothing open itself; limits in the options are per partition."""

    def __init__(self, directory: Path, options: JournalOptions, files: Files) -> None:
        """Use `open`."""
        self.directory = directory
        self.options = options
        self._files = files

    @classmethod
    def open(cls, directory: Path | str, options: JournalOptions | None = None, *, files: Files = OS_FILES) -> LocalLog:
        """The log in a directory, made if absent: then nobody else may look into it."""
        path = Path(directory)
        with translate_os_errors("making", path):
            files.make_directory(path, 0o700)
        return cls(path, options or JournalOptions(), files)

    def partitions(self) -> list[str]:
        """The names of all partitions there are now."""
        with translate_os_errors("reading", self.directory):
            return sorted(name for name in self._files.names(self.directory) if _PARTITION.fullmatch(name))

    def writer(self) -> Journal:
        """Take a partition over that nobody writes to, or begin a new one. One that a newer version wrote is left to
        its like."""
        places = itertools.chain(self.partitions(), map("partition-{:04d}".format, itertools.count()))
        while True:
            with contextlib.suppress(LockedError, FormatError):
                return self._open(next(places))

    def reader(self, partition: str) -> JournalReader:
        return JournalReader(self.directory / partition, self._files)

    def group(
        self, name: str, *, start: CursorStart = CursorStart.EARLIEST, resume: ResumePosition | None = None
    ) -> GroupMember:
        """A member of a consumer group: reads every partition that no other member of the group has."""
        return GroupMember(self, name, start, self.options.fsync, resume)

    def has_group(self, name: str) -> bool:
        """Whether there is, or was, a member of that group."""
        with translate_os_errors("reading cursors of", self.directory):
            places = [self.directory / partition for partition in self.partitions()]
            return any(name in committed_positions(self._files, place) for place in places)

    def trim(self) -> int:
        """Hold the limits in partitions that have no writer to do it; the number of segments dropped."""
        return sum(self._in_each(lambda journal: journal.trim()))

    def _in_each(self, work: Callable[[Journal], T]) -> Iterator[T]:
        """Partitions that somebody writes to, or that a newer version wrote, are passed over."""
        for name in self._orphaned_partitions():
            with contextlib.suppress(LockedError, FormatError), self._open(name) as journal:
                yield work(journal)

    def _orphaned_partitions(self) -> list[str]:
        """Partitions that nobody seems to write to. Nothing is opened, which would make what somebody removes just now:
        one without a lock is half removed."""
        left = [path for path in find_orphans(self.directory) if (path / LOCK_NAME).exists()]
        return [path.name for path in left if _PARTITION.fullmatch(path.name)]

    def _open(self, partition: str) -> Journal:
        return Journal.open(self.directory / partition, self.options, files=self._files)
