"""The local log: a bus in a directory, for several processes of one machine.

Each writer appends to a journal of its own, a *partition*: order holds per writer, an append waits for no other
process, and a writer that dies in the middle of a record harms nobody. A partition outlives its writer; the next one
takes it over and goes on with its offsets, so there are as many as there were writers at one time. Readers merge
partitions by append time.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from headwater.journal.cursor import JournalReader, Start
from headwater.journal.errors import LockedError, typed
from headwater.journal.files import OS_FILES, Files
from headwater.journal.groups import GroupMember
from headwater.journal.options import JournalOptions
from headwater.journal.writer import Journal

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
        """The log in a directory, made if absent."""
        path = Path(directory)
        with typed("making", path):
            files.make_directory(path)
        return cls(path, options or JournalOptions(), files)

    def partitions(self) -> list[str]:
        """The names of all partitions there are now."""
        with typed("reading", self.directory):
            return sorted(name for name in self._files.names(self.directory) if _PARTITION.fullmatch(name))

    def writer(self) -> Journal:
        """Take a partition over that nobody writes to, or begin a new one."""
        for name in self.partitions():
            with contextlib.suppress(LockedError):
                return self._open(name)
        number = 0
        while True:
            with contextlib.suppress(LockedError):
                return self._open(f"partition-{number:04d}")
            number += 1

    def reader(self, partition: str) -> JournalReader:
        return JournalReader(self.directory / partition, self._files)

    def group(self, name: str, *, start: Start = Start.EARLIEST) -> GroupMember:
        """A member of a consumer group: reads every partition that no other member of the group has."""
        return GroupMember(self, name, start, self.options.fsync)

    def trim(self) -> int:
        """Hold the limits in partitions that have no writer to do it; the number of segments dropped."""
        dropped = 0
        for name in self.partitions():
            with contextlib.suppress(LockedError), self._open(name) as journal:
                dropped += journal.trim()
        return dropped

    def _open(self, partition: str) -> Journal:
        return Journal.open(self.directory / partition, self.options, files=self._files)
