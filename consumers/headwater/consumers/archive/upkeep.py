"""Compaction and retention of an archive.

Deltalake's own OPTIMIZE isn't used: of two that run at once both are committed, and each record is there twice. Here a
day of a partition is overwritten by its rows in their order, and Delta refuses that if another process changed it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from typing_extensions import Self

from headwater.consumers.archive.arrow import ArrowTable, pa
from headwater.consumers.archive.columns import EXPIRED, PARTITIONED_BY, SCHEMA, gap_rows
from headwater.consumers.archive.ordered_rows import ReplacedFileError, ordered_rows
from headwater.consumers.archive.table import FILE_BYTES, ArchiveFile, EventArchive
from headwater.consumers.sources.api import OffsetGap
from headwater.errors import HeadwaterError, TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
_JOIN_SECONDS: Final = 5.0
_VACUUM_SECONDS: Final = 86_400.0
_IN_FILES: Final = tuple(name for name in SCHEMA.names if name not in PARTITIONED_BY)


@dataclass
class UpkeepResult:
    """What was done."""

    files_before: int = 0
    files_after: int = 0
    records: int = 0
    bytes_before: int = 0
    conflicts: int = 0
    """Days of partitions that another process changed meanwhile; they were left to it."""


def compact(archive: EventArchive, *, before: date | None = None) -> UpkeepResult:
    """Merge small files of each day and partition, of days before the given one; without it, of days that are over."""
    done = UpkeepResult()
    limit = before or datetime.now(timezone.utc).date()
    for group in _groups(archive.refresh().files, limit):
        files = len(archive.refresh().files)
        try:
            is_done = _rewrite(archive, group)
        except ReplacedFileError:
            is_done = False
        if not is_done:
            done.conflicts += 1
            continue
        done.files_before += len(group)
        done.files_after += len(archive.refresh().files) - files + len(group)
        done.records += sum(each.records for each in group)
        done.bytes_before += sum(each.size for each in group)
    return done


def _groups(files: Sequence[ArchiveFile], limit: date) -> Iterator[list[ArchiveFile]]:
    """Yield the files of each day and partition of which several are small."""
    groups: dict[tuple[date, str, int], list[ArchiveFile]] = {}
    for file in files:
        if file.day < limit:
            groups.setdefault((file.day, file.partition.topic, file.partition.number), []).append(file)
    for _, group in sorted(groups.items()):
        if sum(each.size < FILE_BYTES // 2 for each in group) > 1:
            yield group


def _rewrite(archive: EventArchive, group: Sequence[ArchiveFile]) -> bool:
    """Overwrite a day of a partition. Return False, and change nothing, if it isn't as it was."""
    if not set(group) <= set(archive.refresh().files):
        return False
    day, where = group[0].day, group[0].partition
    topic = where.topic.replace("'", "''")
    condition = f"day = '{day.isoformat()}' AND topic_id = '{topic}' AND partition = {where.number}"
    failures: list[HeadwaterError] = []

    def batches() -> Iterator[Any]:
        try:
            with ThreadPoolExecutor(1) as reader:  # the library's own threads can't read while they write
                rows = ordered_rows(archive, group, columns=_IN_FILES)
                while (found := reader.submit(next, rows, None).result()) is not None:
                    yield from _with_place(found.rows, day, where).to_batches()
        except HeadwaterError as e:
            failures.append(e)
            raise

    try:
        return archive.write(pa.RecordBatchReader.from_batches(SCHEMA, batches()), replaced=condition)
    except TransientError as e:
        raise failures[0] if failures else e from None  # which file it was doesn't come through the library


def _with_place(rows: ArrowTable, day: date, where: BusPartition) -> ArrowTable:
    """Return rows with the columns that are in a file's path."""
    values: Sequence[Any] = (day, where.topic, where.number)
    for at, value in enumerate(values):
        rows = rows.add_column(at, SCHEMA.field(at), pa.repeat(pa.scalar(value, SCHEMA.field(at).type), rows.num_rows))
    return rows.select(SCHEMA.names).cast(SCHEMA)


def files_before(archive: EventArchive, before: date) -> list[ArchiveFile]:
    """Return the files with records of days before the given one."""
    return [file for file in archive.refresh().files if file.day < before and file.records]


def expire(archive: EventArchive, before: date) -> UpkeepResult:
    """Remove the days before the given one. A gap says up to which offsets, so that readers hear of it.

    Another process may change those days meanwhile: `conflicts` counts that, and nothing is removed then.
    """
    old = files_before(archive, before)
    if not old:
        return UpkeepResult()
    state = archive.refresh()
    topics, gaps = dict[BusPartition, str](), list[OffsetGap]()
    for where in {file.partition for file in state.files if file.day < before}:
        gone = [file for file in state.files if file.partition == where and file.day < before]
        first, end = min(each.first for each in gone), max(each.end for each in gone)
        topics[where] = gone[0].topic
        gaps.append(OffsetGap(where, first, end, GapReason.LOG_EXPIRED))
    rows = gap_rows(gaps, topics, EXPIRED, before - timedelta(days=1))
    if not archive.write(rows, replaced=f"day < '{before.isoformat()}'"):
        return UpkeepResult(conflicts=1)
    return UpkeepResult(len(old), 0, sum(each.records for each in old), sum(each.size for each in old))


class ArchiveUpkeep:
    """Compacts days that are over, and removes old ones, on a thread while its `with` block runs."""

    def __init__(self, archive: EventArchive, keep_days: int | None, every: float = 3_600.0) -> None:
        self._archive = EventArchive.open(archive.address)
        self._keep_days = keep_days
        self._every = every
        self._vacuum_at = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-archive-upkeep", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)  # what isn't committed changes nothing

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
                _LOG.info("removed %d records from before %s", gone.records, before)
        if time.monotonic() >= self._vacuum_at:
            self._archive.vacuum()
            self._vacuum_at = time.monotonic() + _VACUUM_SECONDS
