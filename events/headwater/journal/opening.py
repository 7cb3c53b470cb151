"""Finding a journal's end when its writer opens it; the writer's lock is held.

Room set aside on the device for the one record that must still get in when there is none left.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from headwater.journal.appender import Appender
from headwater.journal.errors import StorageError
from headwater.journal.files import CREATE, WRITE, Files, open_descriptor, read_file
from headwater.journal.options import JournalOptions
from headwater.journal.position import committed_positions
from headwater.journal.recovery import RecoveryResult, recover_segment
from headwater.journal.segment import UNFINISHED, Segment, list_bases, read_header, segment_path


class Reserve:
    """A file that only takes up room, and is removed to give it back."""

    def __init__(self, files: Files, directory: Path, size: int) -> None:
        self._files = files
        self._path = directory / "reserve"
        self._size = size
        self._there = False
        self._lock = threading.Lock()
        with contextlib.suppress(OSError):
            self._there = size > 0 and read_file(files, self._path, 1) is not None

    def renew(self) -> bool:
        """Set the room aside, if there is any; whether it is. Called now and then, so failing is no matter."""
        with self._lock:
            if self._there or not self._size:
                return True
            try:
                with open_descriptor(self._files, self._path, CREATE) as descriptor:
                    self._files.allocate(descriptor, self._size)
                self._there = True
            except OSError:
                with contextlib.suppress(OSError):  # half of it would take room that others need
                    self._files.remove(self._path)
            return self._there

    def release(self) -> bool:
        """Give the room back; whether there was any."""
        with self._lock:
            was_there, self._there = self._there, False
            try:
                if was_there:
                    self._files.remove(self._path)
            except OSError:
                return False
            return was_there


def open_end(files: Files, directory: Path, options: JournalOptions) -> tuple[Appender, RecoveryResult | None]:
    """An appender at the end of what the last writer left, and what was found there; None for a new journal.

    Its times are those of its own clock: where the last writer's was ahead, they go back here. Else one writer whose
    clock is years ahead would date the records of all writers after it.

    An offset that a cursor has committed isn't given again even if the record was lost with the machine: the cursor
    would pass over its successor.
    """
    _remove_unfinished(files, directory)
    bases = list_bases(files, directory)
    furthest = max(committed_positions(files, directory).values(), default=0)
    if not bases:
        appender = Appender(files, directory, options, [])
        appender.next_offset = furthest
        appender.roll()
        return appender, None
    found = recover_segment(files, segment_path(directory, bases[-1]), bases[-1])
    appender = Appender(files, directory, options, _inventory(files, directory, bases, found, options.clock()))
    appender.next_offset = max(found.offset, furthest)
    appender.continues = None if found.continues is None else max(found.continues, furthest)
    if found.corrupt or furthest > found.offset:
        with contextlib.suppress(StorageError):  # the first append tries again
            appender.roll()
    else:
        appender.resume(appender.segments[-1], files.open(found.path, WRITE))
    return appender, found


def _remove_unfinished(files: Files, directory: Path) -> None:
    for name in files.names(directory):
        if name.endswith(UNFINISHED):
            files.remove(directory / name)


def _inventory(files: Files, directory: Path, bases: list[int], found: RecoveryResult, now: int) -> list[Segment]:
    """All segments; the newest record of one is no newer than the making of the next, nor than any record behind it."""
    last = Segment(bases[-1], found.path, found.size + found.corrupt, min(found.newest, now))
    segments, newest = [last], min(last.newest, _created_at(files, last))
    for base in reversed(bases[:-1]):
        path = segment_path(directory, base)
        segments.append(Segment(base, path, path.stat().st_size, newest))
        newest = min(newest, _created_at(files, segments[-1]))
    return segments[::-1]


def _created_at(files: Files, segment: Segment) -> int:
    """When the segment was begun, as near as can be known."""
    header = read_header(files, segment.path)
    return segment.newest if header is None else header.created
