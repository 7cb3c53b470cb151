"""What belongs to an instant: the events of one batch, which one process reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.consumers.sources import SourceBatch
from headwater.consumers.writer.coordinated.slice_reader import ReadReply
from headwater.lineage.bulk import BusPartition

_EVENT_BYTES = 500
"""The memory of an event without its bytes."""
_NOTHING = ReadReply({}, (), (), 0)


@dataclass
class Instant:
    """An instant until it is completed. Its events are kept, because they may have to be written again."""

    number: int
    batch: SourceBatch
    read_epoch: int | None
    """The store's epoch that the reading process knew."""
    epoch: int | None = None
    """The store's epoch before anything of the instant was written."""
    read: ReadReply = _NOTHING
    must_rewrite: bool = False
    """Whether its events have to be written again, because a row was refused or omitted rows may be gone."""

    def shares(self) -> Mapping[int, bytes]:
        """Return what each bucket has to write, once the instant is read and opened."""
        is_doubtful = self.read.left_out > 0 and self.read_epoch != self.epoch
        self.must_rewrite = self.read.is_refused or is_doubtful
        return {} if self.must_rewrite else self.read.shares

    @property
    def memory(self) -> int:
        """About how much memory it takes."""
        return batch_bytes(self.batch) + sum(map(len, self.read.shares.values()))


def batch_bytes(batch: SourceBatch) -> int:
    return sum(_EVENT_BYTES + len(each.data) for each in batch.records)


def join(one: SourceBatch, other: SourceBatch) -> SourceBatch:
    """Return one batch of two that follow each other."""
    if not one:
        return other
    return SourceBatch(
        (*one.records, *other.records),
        _greatest(one.next, other.next),
        (*one.gaps, *other.gaps),
        _greatest(one.ends, other.ends),
    )


def _greatest(one: Mapping[BusPartition, int], other: Mapping[BusPartition, int]) -> dict[BusPartition, int]:
    """A partition that was lost and given back may begin again further back."""
    return {**one, **{partition: max(at, one.get(partition, at)) for partition, at in other.items()}}
