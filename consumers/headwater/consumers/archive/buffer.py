"""Rows that wait to be archived, and which offsets they are all records of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from headwater.consumers.archive.arrow import ArrowTable, pa, pc
from headwater.consumers.archive.columns import gap_rows
from headwater.consumers.archive.table import ArchivedRange
from headwater.consumers.sources.api import BusRecord, OffsetGap, SourceBatch
from headwater.lineage.bulk import BusPartition


@dataclass
class RowBuffer:
    """Rows of consecutive batches. Its size is that of the rows in memory."""

    topic: str
    tables: list[ArrowTable] = field(default_factory=list)
    first: dict[BusPartition, int] = field(default_factory=dict)
    end: dict[BusPartition, int] = field(default_factory=dict)
    gaps: list[OffsetGap] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    since: float = 0.0
    """When the first of it came."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.gaps)

    def add(self, table: ArrowTable, batch: SourceBatch, known: Mapping[BusPartition, int]) -> None:
        """Add a batch with its rows; `known` is where its partitions were expected to continue."""
        if not self:  # offsets without a record or gap, such as marks of transactions, aren't written for themselves
            self.since = time.monotonic()
        if table.num_rows:
            self.tables.append(table)
        self.size += table.nbytes
        self.rows += table.num_rows
        self.gaps += batch.gaps
        first = first_offsets(batch.records)
        for partition, end in batch.next.items():
            if end > known.get(partition, -1):
                self.first.setdefault(partition, known.get(partition, first.get(partition, end)))
                self.end[partition] = end

    def keep(self, is_ours: Callable[[BusPartition], bool]) -> None:
        """Drop what belongs to partitions that another process reads now: it archives them."""
        lost = [each for each in self.end if not is_ours(each)]
        if not lost:
            return
        for each in lost:
            del self.end[each], self.first[each]
        self.tables = [_without(table, lost) for table in self.tables]
        self.rows = sum(table.num_rows for table in self.tables)
        self.gaps = [gap for gap in self.gaps if gap.partition not in lost]

    def table(self) -> ArrowTable:
        """Return a row for each record and each gap."""
        topics = dict.fromkeys((gap.partition for gap in self.gaps), self.topic)
        return pa.concat_tables([*self.tables, gap_rows(self.gaps, topics)])

    def ranges(self) -> list[ArchivedRange]:
        return [ArchivedRange(each, self.first[each], end) for each, end in sorted(self.end.items())]


def first_offsets(records: Iterable[BusRecord]) -> dict[BusPartition, int]:
    """Return the first offset of each partition."""
    first: dict[BusPartition, int] = {}
    for record in records:
        if record.partition not in first:
            first[record.partition] = record.offset
    return first


def _without(table: ArrowTable, lost: Iterable[BusPartition]) -> ArrowTable:
    for each in lost:
        same_topic = pc.and_(pc.equal(table["cluster"], each.cluster), pc.equal(table["topic_id"], each.topic))
        table = table.filter(pc.invert(pc.and_(same_topic, pc.equal(table["partition"], each.number))))
    return table
