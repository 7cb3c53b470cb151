"""Compaction and retention of an archive."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Final

from typing_extensions import Self

from headwater.consumers.archive.arrow import ArrowTable, pa
from headwater.consumers.archive.columns import DAY, KIND, SCHEMA
from headwater.consumers.archive.directory import ParquetArchive
from headwater.consumers.archive.state import ArchiveCommit, ArchiveFile, OffsetsTakenError, Operation
from headwater.errors import HeadwaterError

_LOG: Final = logging.getLogger(__name__)
_JOIN_SECONDS: Final = 5.0
TARGET: Final = 256 << 20
"""About how many bytes in memory the rows of a compacted file take. On the disk it is a tenth of that."""
_FULL: Final = 0.5
"""A file of this part of the target is left as it is, unless small ones stand beside it."""


@dataclass
class UpkeepResult:
    """What was done."""

    files_before: int = 0
    files_after: int = 0
    rows: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    conflicts: int = 0
    """Groups of files that another process replaced meanwhile; they were left to it."""


def compact(archive: ParquetArchive, *, before: date | None = None, target: int = TARGET) -> UpkeepResult:
    """Merge small files of each day and kind, of days before the given one; without it, of days that are over.

    A reader of the archive's log sees the small files or the large ones. So does who lists a directory, on Linux' local
    file systems; elsewhere he sees both for a moment.
    """
    done = UpkeepResult()
    limit = before or datetime.now(timezone.utc).date()
    for group in _groups(archive.refresh().files.values(), limit, target):
        try:
            merged = merge_files(archive, group)
        except OffsetsTakenError:
            done.conflicts += 1
            continue
        done.files_before += len(group)
        done.files_after += len(merged)
        done.rows += sum(each.rows for each in group)
        done.bytes_before += sum(each.size for each in group)
        done.bytes_after += sum(each.size for each in merged)
    return done


def _groups(files: Iterable[ArchiveFile], limit: date, target: int) -> Iterator[list[ArchiveFile]]:
    """Yield files to be merged. Those that follow each other are merged, so that offsets of few files overlap."""
    by_place: dict[tuple[date, str], list[ArchiveFile]] = {}
    for each in files:
        if each.day < limit:
            by_place.setdefault((each.day, each.kind), []).append(each)
    for _, found in sorted(by_place.items()):
        group: list[ArchiveFile] = []
        for each in sorted(found, key=lambda file: (file.time, file.name)):
            if group and sum(file.memory for file in group) + each.memory > target:
                yield from _if_worthwhile(group, target)
                group = []
            group.append(each)
        yield from _if_worthwhile(group, target)


def _if_worthwhile(group: list[ArchiveFile], target: int) -> Iterator[list[ArchiveFile]]:
    """Yield a group unless that would write much again to save one small file."""
    largest = max(each.memory for each in group)
    if len(group) > 2 or (len(group) == 2 and largest < _FULL * target):
        yield group


def merge_files(archive: ParquetArchive, group: list[ArchiveFile]) -> list[ArchiveFile]:
    """Replace files by one. Raises OffsetsTakenError, and changes nothing, if they were replaced meanwhile."""
    first, files = group[0], archive.refresh().files
    if any(each.path not in files for each in group):
        raise OffsetsTakenError(f"{first.path} and others are replaced already")
    rows = pa.concat_tables([archive.read(each) for each in group])
    merged = archive.write(_with_place(rows, first))
    archive.commit(
        ArchiveCommit(Operation.COMPACT, add=tuple(merged), remove=tuple(each.path for each in group)),
    )
    return merged


def _with_place(rows: ArrowTable, file: ArchiveFile) -> ArrowTable:
    """Return rows with the columns that are in a file's path."""
    day = pa.repeat(pa.scalar(file.day, pa.date32()), rows.num_rows)
    kind = pa.repeat(pa.scalar(file.kind, pa.string()), rows.num_rows)
    return rows.append_column(SCHEMA.field(DAY), day).append_column(SCHEMA.field(KIND), kind)


def files_before(archive: ParquetArchive, before: date) -> list[ArchiveFile]:
    """Return the files of days before the given one."""
    return [each for each in archive.refresh().files.values() if each.day < before]


def expire(archive: ParquetArchive, before: date) -> UpkeepResult:
    """Remove the days before the given one. The archive remembers up to which offsets it removed records."""
    old = files_before(archive, before)
    if old:
        archive.commit(ArchiveCommit(Operation.EXPIRE, remove=tuple(each.path for each in old)))
    return UpkeepResult(
        files_before=len(old), rows=sum(each.rows for each in old), bytes_before=sum(each.size for each in old)
    )


class ArchiveUpkeep:
    """Compacts days that are over, and removes old ones, on a thread while its `with` block runs."""

    def __init__(self, archive: ParquetArchive, keep_days: int | None, every: float = 3_600.0) -> None:
        self._archive = ParquetArchive(archive.directory)
        self._keep_days = keep_days
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-archive-upkeep", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)  # what is half done is finished by the next process

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self._try_once()

    def _try_once(self) -> None:
        try:
            self.run_once()
        except HeadwaterError as e:
            _LOG.warning("the archive can't be compacted now: %s", e)

    def run_once(self) -> None:
        done = compact(self._archive)
        if done.files_before:
            _LOG.info("compacted %d files into %d", done.files_before, done.files_after)
        if self._keep_days is not None:
            before = datetime.now(timezone.utc).date() - timedelta(days=self._keep_days)
            gone = expire(self._archive, before)
            if gone.files_before:
                _LOG.info("removed %d records from before %s", gone.rows, before)
