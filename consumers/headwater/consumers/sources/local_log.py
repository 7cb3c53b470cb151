"""Reads events of a local log in a consumer group.

The log's own cursors keep the offsets; a recreated log has none. A store keeps offsets too, in the transactions of the
rows. Where it is behind the log, because it was restored from a backup or is another one, the store decides where
reading begins.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headwater.consumers.sources.api import (
    CLOCK_SKEW_MICROS,
    END_CHECK_SECONDS,
    BusRecord,
    OffsetGap,
    SourceBatch,
    StoredOffsets,
)
from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.journal import LocalLog, MissingReason
from headwater.journal.cursor import CursorStart
from headwater.lineage.bulk import BusPartition

KIND: Final = "log"
MOST_BYTES: Final = 16 << 20
"""The most bytes of events in a batch: an event can have a megabyte, and its rows several times as much."""
REASONS: Final = {
    MissingReason.DROPPED: GapReason.LOG_EXPIRED,
    MissingReason.CORRUPT: GapReason.CORRUPTION,
    MissingReason.MISSING: GapReason.CORRUPTION,
}


class LocalLogSource:
    def __init__(
        self,
        directory: Path,
        group: str,
        stored: StoredOffsets | None = None,
        *,
        start: CursorStart = CursorStart.EARLIEST,
    ) -> None:
        """`stored` returns the offsets of this group that the store has for a cluster; None if only the log has
        them. A new group begins at `start`."""
        if not directory.is_dir():
            raise ConfigurationError(
                f"{directory} isn't there: name the directory that drivers write to (spark.headwater.log.dir)"
            )
        self._log = LocalLog.open(directory)
        self._stored = stored
        self._member = self._log.group(group, start=start, resume=None if stored is None else self._resume_at)
        self._partitions: dict[str, BusPartition] = {}
        self._given: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._look_at = 0.0

    @property
    def kind(self) -> str:
        return KIND

    @property
    def topic(self) -> str:
        return str(self._log.directory)

    def poll(self, most: int, timeout: float) -> SourceBatch:
        asked = wall_micros()
        found = self._member.poll(most, timeout, MOST_BYTES)
        records = tuple(
            BusRecord(record.value, self._partition(name), record.offset, at, record.key, record.headers)
            for name, record in found.records
            for at in [self._append_time(name, record.time)]
        )
        gaps = tuple(
            OffsetGap(self._partition(name), lost.first, lost.end_offset, REASONS[lost.reason])
            for name, lost in found.missing
        )
        self._given.update(found.positions)
        following = {self._partition(name): at for name, at in found.positions.items()}
        return SourceBatch(records, following, gaps, {} if found else self._ends(asked - CLOCK_SKEW_MICROS))

    def _append_time(self, name: str, time: int) -> int:
        """When a record was appended, at the latest: a writer whose clock is ahead doesn't date what it writes.

        Nothing was appended after now. What claims that counts as appended with the record before it, so that nobody
        takes the partition for read further than it is.
        """
        now = wall_micros()
        if time > now + CLOCK_SKEW_MICROS:
            return self._times.get(name, now)
        self._times[name] = time
        return time

    def _ends(self, until: int) -> dict[BusPartition, int]:
        """Return the partitions that were read to their end."""
        if time.monotonic() < self._look_at:
            return {}
        self._look_at = time.monotonic() + END_CHECK_SECONDS
        return {self._partition(name): until for name in self._member.assigned}

    def rewind(self) -> None:
        self._member.rewind()
        self._given.clear()

    def _resume_at(self, name: str, committed: int) -> int:
        """Return where to resume. A store that knows nothing of the partition gets all that there is."""
        assert self._stored is not None  # noqa: S101 - else nobody asks
        at = self._stored(KIND).get(self._partition(name))
        return min(committed, self._log.reader(name).first_offset() if at is None else at)

    def rest(self) -> None:
        """Do nothing: files wait."""

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        mine = {partition: name for name, partition in self._partitions.items()}
        self._member.commit({mine[partition]: position for partition, position in positions.items()})

    def lag(self) -> int:
        begun = self._member.committed.items()
        return sum(max(0, self._log.reader(name).next_offset() - self._given.get(name, at)) for name, at in begun)

    def close(self) -> None:
        self._member.close()

    def _partition(self, name: str) -> BusPartition:
        known = self._partitions.get(name)
        if known is None:
            known = self._partitions[name] = log_partition(self._log.directory, name)
        return known


def log_partition(directory: Path, name: str) -> BusPartition:
    """Return the partition of a log on this host, by the name of its directory."""
    return BusPartition(KIND, f"{socket.gethostname()}:{directory.resolve()}", int(name.rpartition("-")[2]))
