"""Which offsets a micro-batch has to read: from where the store is, up to where the micro-batch ends.

The store's own offsets decide, as they do for the writer. A checkpoint may be ahead of a store that was restored from a
backup, or is new; then the range in between is read too, and nothing is lost. It may be behind a store that stored the
micro-batch before the driver died; then nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.sources import OffsetGap
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition


@dataclass(frozen=True)
class PlannedRanges:
    """What has to be read of each partition, and what can't be read any more."""

    ranges: Mapping[BusPartition, BusRange]
    gaps: tuple[OffsetGap, ...] = ()

    @property
    def size(self) -> int:
        return sum(each.size for each in self.ranges.values())


@dataclass(frozen=True)
class BatchOffsets:
    """The offsets of a micro-batch, and those that the bus has."""

    batch: Mapping[BusPartition, BusRange]
    available: Mapping[BusPartition, BusRange] = field(default_factory=dict)

    def plan(self, stored: Mapping[BusPartition, int]) -> PlannedRanges:
        """Return what has to be read, given the store's offsets."""
        ranges, gaps = dict[BusPartition, BusRange](), list[OffsetGap]()
        for partition, of_batch in self.batch.items():
            available = self.available.get(partition, of_batch)
            oldest = min(available.first, of_batch.end)
            at = stored.get(partition)
            if at is None:
                first = oldest
            elif at > max(available.end, of_batch.end):  # a log that lost its end counts on from there
                gaps.append(OffsetGap(partition, available.end, at, GapReason.LOG_RECREATED))
                first = min(of_batch.first, of_batch.end)
            else:
                first = max(at, oldest)
                if first > at:
                    gaps.append(OffsetGap(partition, at, first, GapReason.LOG_EXPIRED))
            if first < of_batch.end:
                ranges[partition] = BusRange(first, of_batch.end)
        return PlannedRanges(ranges, tuple(gaps))


def portions(
    ranges: Mapping[BusPartition, BusRange], cuts: Mapping[BusPartition, int], most: int
) -> Iterator[dict[BusPartition, BusRange]]:
    """Split ranges into portions of at most about `most` records: first what lies before each partition's cut, which
    is where the micro-batch itself begins, then the micro-batch in one portion."""
    before = {
        partition: BusRange(each.first, min(each.end, cuts.get(partition, each.first)))
        for partition, each in ranges.items()
        if each.first < cuts.get(partition, each.first)
    }
    share = max(1, most // max(1, len(before)))
    while before:
        yield {partition: BusRange(each.first, min(each.end, each.first + share)) for partition, each in before.items()}
        before = {
            partition: BusRange(each.first + share, each.end)
            for partition, each in before.items()
            if each.first + share < each.end
        }
    rest = {
        partition: BusRange(max(each.first, cuts.get(partition, each.first)), each.end)
        for partition, each in ranges.items()
    }
    rest = {partition: each for partition, each in rest.items() if each.size}
    if rest:
        yield rest
