"""Finds what the sources no longer have: a replay from them would lose it, or leave a gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headwater.consumers.replay.ranges import BusRange, Positions
from headwater.consumers.sources import OffsetGap
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition


class MissingOffsets(NamedTuple):
    """Offsets of a partition that no source has."""

    partition: BusPartition
    first: int
    end: int

    @property
    def gap(self) -> OffsetGap:
        """How the store records them."""
        return OffsetGap(self.partition, self.first, self.end, GapReason.LOG_EXPIRED)


def find_missing_offsets(
    sources: Iterable[Mapping[BusPartition, BusRange]], start: Positions, live: Positions
) -> list[MissingOffsets]:
    """Return the offsets between and before sources that are read one after the other, and before where the live store
    is.

    `start` are the offsets up to which everything is there already, `live` those that the live store has read.
    """
    at, missing = dict(start), list[MissingOffsets]()
    for ranges in sources:
        for partition, (first, end) in sorted(ranges.items()):
            here = at.get(partition, 0)
            if first > here:
                missing.append(MissingOffsets(partition, here, first))
            at[partition] = max(here, end)
    for partition, end in sorted(live.items()):
        here = at.get(partition, 0)
        if here < end:
            missing.append(MissingOffsets(partition, here, end))
    return missing


def describe_missing_offsets(missing: Iterable[MissingOffsets], names: Mapping[str, str], most: int = 8) -> str:
    """Return missing offsets in words. `names` are the names of topics by their ids."""
    each = list(missing)
    words = [_words(one, names) for one in each[:most]]
    return "; ".join(words) + (f"; and {len(each) - most} more" if len(each) > most else "")


def _words(missing: MissingOffsets, names: Mapping[str, str]) -> str:
    where = missing.partition
    topic = names.get(where.topic)
    name = topic if topic is not None else f"{where.topic} of cluster {where.cluster}, which no source is"
    return f"offsets {missing.first} to {missing.end - 1} of partition {where.number} of {name}"
