"""What belongs to an instant: the events that were taken in while it was open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from headwater.consumers.sources import Batch, Taken
from headwater.consumers.writer.coordinated.limits import EVENT_BYTES
from headwater.consumers.writer.reading import Read
from headwater.lineage.bulk import DeadLetter, Ingest, Offset, Partition, Work
from headwater.lineage.rows import Row


@dataclass
class Gathered:
    """What goes on being told of an instant until it is closed. Its events are kept until it is completed: some may
    have to be stored another way."""

    number: int
    epoch: int
    """As it was before any of its rows was flushed."""
    begins: Sequence[int]
    """How far each bucket was when it was opened, …"""
    ends: Sequence[int] = ()
    """… and when it was closed: it has to come so far."""
    opened: float = 0.0
    records: list[Taken] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    gaps: list[Row] = field(default_factory=list)
    next: dict[Partition, int] = field(default_factory=dict)
    read_to: dict[Partition, int] = field(default_factory=dict)
    """Up to when all is here of partitions that were read to their end."""
    bytes: int = 0
    new: list[Row] = field(default_factory=list)
    """What needn't be told again once it is completed."""
    again: bool = False
    """Whether its events have to be written another way: then its rows may not be all there are."""

    def add(self, batch: Batch, read: Read, gaps: Sequence[Row], epoch: int | None) -> None:
        """`epoch` is the one at which it was known what could be left out."""
        self.records += batch.records
        self.letters += read.letters
        self.new += read.new
        self.gaps += gaps
        self.again |= bool(read.left_out) and epoch != self.epoch
        self.read_to.update(batch.ends)
        for partition, at in batch.next.items():  # one that was lost and given back may begin again further back
            self.next[partition] = max(at, self.next.get(partition, at))
        # the bytes, and the texts that were made of them
        self.bytes += sum(EVENT_BYTES + 2 * len(each.data) for each in batch.records)

    def __bool__(self) -> bool:
        return bool(self.records or self.next or self.gaps or self.read_to)

    @property
    def stored_until(self) -> int | None:
        return max((each.appended for each in self.records if each.appended is not None), default=None)

    def work(self, group: str, kind: str, topic: str) -> Work:
        """All but its events: what has to be told in one transaction, after their rows."""
        until = dict(self.read_to)
        for each in self.records:
            if each.appended is not None:
                until[each.partition] = max(each.appended, until.get(each.partition, each.appended))
        return Work(
            letters=tuple(self.letters),
            ingests=tuple(Ingest(kind, partition, at, topic) for partition, at in until.items()),
            offsets=tuple(Offset(group, partition, at) for partition, at in self.next.items()),
        )

    def ranges(self) -> dict[str, list[int]]:
        """Of each partition where it ends, for whoever reads the timeline."""
        return {f"{each.topic}/{each.number}": [at] for each, at in self.next.items()}


def said(**words: object) -> str:
    """In a timeline's `detail`."""
    return json.dumps(words, separators=(",", ":"), sort_keys=True)
