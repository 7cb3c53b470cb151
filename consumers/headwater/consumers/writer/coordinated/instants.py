"""The content of an instant: the events that were read while it was open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.coordinated.limits import EVENT_BYTES
from headwater.consumers.writer.record_reader import ReadResult
from headwater.lineage.bulk import BusPartition, ConsumerOffset, DeadLetter, IngestProgress, WriteBatch
from headwater.lineage.rows import Row


@dataclass
class OpenInstant:
    """An instant until it is completed. Its events are kept, because they may have to be written again."""

    number: int
    epoch: int
    """The store's epoch before any of its rows was flushed."""
    begins: Sequence[int]
    """The position of each bucket when the instant was opened."""
    ends: Sequence[int] = ()
    """The position of each bucket when it was closed. All rows before have to be acknowledged."""
    opened: float = 0.0
    records: list[BusRecord] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    gaps: list[Row] = field(default_factory=list)
    next: dict[BusPartition, int] = field(default_factory=dict)
    read_to: dict[BusPartition, int] = field(default_factory=dict)
    """For partitions read to their end, the time up to which they were read completely."""
    bytes: int = 0
    new: list[Row] = field(default_factory=list)
    """Immutable rows, which the store has once the instant is completed."""
    must_rewrite: bool = False
    """Whether its events have to be written again, because a row was refused or omitted rows may be gone."""

    def add(self, batch: SourceBatch, read: ReadResult, gaps: Sequence[Row], epoch: int | None) -> None:
        """Add a batch. `epoch` is the cache's epoch before it was mapped."""
        self.records += batch.records
        self.dead_letters += read.dead_letters
        self.new += read.new
        self.gaps += gaps
        self.must_rewrite |= bool(read.left_out) and epoch != self.epoch
        self.read_to.update(batch.ends)
        for partition, at in batch.next.items():  # one that was lost and given back may begin again further back
            self.next[partition] = max(at, self.next.get(partition, at))
        # the bytes, and the texts that were made of them
        self.bytes += sum(EVENT_BYTES + 2 * len(each.data) for each in batch.records)

    def __bool__(self) -> bool:
        return bool(self.records or self.next or self.gaps or self.read_to)

    @property
    def stored_until(self) -> int | None:
        return max((each.append_time for each in self.records if each.append_time is not None), default=None)

    def work(self, group: str, kind: str, topic: str) -> WriteBatch:
        """Return what is written in the completing transaction, after the rows."""
        until = dict(self.read_to)
        for each in self.records:
            if each.append_time is not None:
                until[each.partition] = max(each.append_time, until.get(each.partition, each.append_time))
        return WriteBatch(
            dead_letters=tuple(self.dead_letters),
            ingests=tuple(IngestProgress(kind, partition, at, topic) for partition, at in until.items()),
            offsets=tuple(ConsumerOffset(group, partition, at) for partition, at in self.next.items()),
        )

    def ranges(self) -> dict[str, list[int]]:
        """Return where each partition ends, for readers of the timeline."""
        return {f"{each.topic}/{each.number}": [at] for each, at in self.next.items()}


def to_detail(**words: object) -> str:
    """Return a value of the timeline's column `detail`."""
    return json.dumps(words, separators=(",", ":"), sort_keys=True)
