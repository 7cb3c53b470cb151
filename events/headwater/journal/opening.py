"""Finding a journal's end when its writer opens it; the writer's lock is held."""

from __future__ import annotations

import contextlib
from pathlib import Path

from headwater.journal.appender import Appender
from headwater.journal.errors import StorageError
from headwater.journal.files import WRITE, Files
from headwater.journal.options import JournalOptions
from headwater.journal.position import committed_positions
from headwater.journal.recovery import RecoveryResult, recover_segment
from headwater.journal.segment import UNFINISHED, Segment, list_bases, read_header, segment_path


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
