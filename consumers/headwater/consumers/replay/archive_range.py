"""Reads an archive from offsets to offsets: events that a topic has forgotten, with their partitions and offsets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from headwater.consumers.replay.ranges import BusRange, Positions, SeekableRange, StoredPositions
from headwater.consumers.sources import SourceBatch
from headwater.consumers.sources.archive import ArchiveSource
from headwater.lineage.bulk import BusPartition


class ArchiveRange(SeekableRange):
    def __init__(self, address: str, place: str, stored: StoredPositions) -> None:
        super().__init__(address, stored)
        self._source = ArchiveSource(place, "replay", self._begin_at)
        self.archive: Final = self._source.archive
        self.kind = self._source.kind
        self.topic = self._source.topic

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        known = self.archive.refresh().partitions
        return {where: BusRange(each.first, each.next) for where, each in known.items()}

    def offsets_at(self, time: datetime) -> None:  # noqa: ARG002 - an archive has days, and no index of offsets
        return None

    def _seek(self) -> None:
        self._source.rewind()

    def poll(self, most: int, timeout: float) -> SourceBatch:
        if not self._at.open_partitions():
            return SourceBatch((), {}, (), self._at.finished())
        batch = self._source.poll(most, timeout)
        records = tuple(record for record in batch.records if self._is_wanted(record.partition, record.offset))
        before = dict(self._at.next)
        for where, at in batch.next.items():
            if where in self._at.end:
                self._at.advance(where, at)
        moved = {where: at for where, at in self._at.next.items() if at != before[where]}
        return SourceBatch(records, moved, batch.gaps, self._at.finished())

    def close(self) -> None:
        self._source.close()

    def _begin_at(self, cluster: str) -> Positions:
        """Return where reading begins. Partitions that aren't to be read begin at their ends."""
        known = self.archive.refresh().partitions
        return {where: self._at.next.get(where, each.next) for where, each in known.items() if where.cluster == cluster}

    def _is_wanted(self, where: BusPartition, offset: int) -> bool:
        return self._at.next.get(where, 0) <= offset < self._at.end.get(where, 0)
