"""The local log: a bus in a directory, for several processes of one machine.

Each writer appends to a journal of its own, a *partition*: order holds per writer, an append waits for no other
process, and a writer that dies in the middle of a record harms nobody. A partition outlives its writer; the next one
takes it over and goes on with its offsets, so there are as many as there were writers at one time. Readers merge
partitions by append time.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from headwater.journal.cursor import CursorStart, JournalReader
from headwater.journal.errors import FormatError, LockedError, translate_os_errors
from headwater.journal.files import OS_FILES, Files
from headwater.journal.groups import GroupMember, ResumePosition
from headwater.journal.options import JournalOptions
from headwater.journal.orphans import find_orphans
from headwater.journal.position import committed_positions
from headwater.journal.writer import LOCK_NAME, Journal

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
