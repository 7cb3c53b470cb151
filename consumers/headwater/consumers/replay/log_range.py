"""Reads a local log from offsets to offsets, without a cursor of its own: the log's readers don't notice it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from headwater.consumers.replay.ranges import BusRange, SeekableRange, StoredPositions
from headwater.consumers.sources import BusRecord, OffsetGap, SourceBatch
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.sources.local_log import KIND, MOST_BYTES, REASONS, log_partition
from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.journal import LocalLog
from headwater.journal.reader import Tail
from headwater.lineage.bulk import BusPartition


class LogRange(SeekableRange):
    kind = KIND

    def __init__(self, address: str, directory: Path, stored: StoredPositions) -> None:
        if not directory.is_dir():
            raise ConfigurationError(
                f"{directory} isn't there: name the directory that drivers write to (spark.headwater.log.dir)"
            )
        super().__init__(address, stored)
        self._log = LocalLog.open(directory)
        self.directory: Final = self._log.directory
        self.topic = str(self.directory)
        self._names: dict[BusPartition, str] = {}
        self._tails: dict[BusPartition, Tail] = {}

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        found = {}
        for name in self._log.partitions():
            where = log_partition(self._log.directory, name)
            self._names[where] = name
            reader = self._log.reader(name)
            first = reader.first_offset()
            found[where] = BusRange(first, max(first, reader.next_offset()))
        return found

    def offsets_at(self, time: datetime) -> None:  # noqa: ARG002 - a log has no index of times
        return None

    def _seek(self) -> None:
        self._close_tails()
        for where in self._at.open_partitions():
            self._tails[where] = self._log.reader(self._names[where]).tail(self._at.next[where])

    def poll(self, most: int, timeout: float) -> SourceBatch:  # noqa: ARG002 - what is to be read is there
        records, gaps, moved = list[BusRecord](), list[OffsetGap](), dict[BusPartition, int]()
        partitions, latest = self._at.open_partitions(), wall_micros() + CLOCK_SKEW_MICROS
        share = max(1, most // max(1, len(partitions)))
        for where in partitions:
            if len(records) >= most:
                break
            end = self._at.end[where]
            batch = self._tails[where].read(min(share, most - len(records), end - self._at.next[where]), MOST_BYTES)
            gaps += [OffsetGap(where, each.first, each.end_offset, REASONS[each.reason]) for each in batch.missing]
            records += [
                BusRecord(each.value, where, each.offset, min(each.time, latest), each.key, each.headers)
                for each in batch.records
                if each.offset < end
            ]
            self._at.advance(where, batch.position)
            moved[where] = self._at.next[where]
        return SourceBatch(tuple(records), moved, tuple(gaps), self._at.finished())

    def close(self) -> None:
        self._close_tails()

    def _close_tails(self) -> None:
        for tail in self._tails.values():
            tail.close()
        self._tails.clear()
