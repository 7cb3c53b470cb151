"""Keeps what comes next of each partition of a topic, and finds the gaps.

The client silently skips records that expired before they were read, and knows a topic only by its name: unread records
of one that was deleted and made again are lost, and the new one is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from headwater.consumers.sources.api import BusRecord, OffsetGap, StoredOffsets
from headwater.consumers.sources.kafka_client import LOOK_SECONDS, TopicClient
from headwater.errors import TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition


class KafkaOffsets:
    """The offsets of one reader of a topic. Its methods raise a KafkaException if no broker answers."""

    def __init__(self, topic: TopicClient, stored: StoredOffsets | None) -> None:
        """`stored` returns the offsets of this group that the store has for a cluster; None if Kafka keeps them."""
        self._topic: Final = topic
        self._stored = stored
        self._gaps: list[OffsetGap] = []
        self._at: dict[int, int] = {}
        """What comes next of a partition."""
        self._begun: set[int] = set()
        """Partitions of this topic that were read from somewhere."""
        self._former: set[str] = set()
        """The ids of older topics of this name."""
        self._seen: dict[int, tuple[int, int]] = {}
        """What came next of a partition, and its end, when that was asked for last."""

    @property
    def words(self) -> str:
        """What happened if the topic is another one."""
        return f"{self._topic.name} was deleted and made again: the new topic is read from its beginning"

    def ends_without_gaps(self, records: Sequence[BusRecord]) -> dict[int, int] | None:
        """Return what comes next in the partitions of these records, by number. None if offsets don't follow each
        other, which is looked at then."""
        at, ends = self._at, dict[int, int]()
        for record in records:
            number, offset = record.partition.number, record.offset
            expected = ends.get(number)
            if (at.get(number, offset) if expected is None else expected) != offset:
                return None
            ends[number] = offset + 1
        return ends

    def go_back(self, records: Sequence[BusRecord]) -> bool:
        """Return whether a record is before what comes next, as the first ones of a recreated topic are."""
        return any(record.offset < self._at.get(record.partition.number, 0) for record in records)

    def find_gaps(self, records: Sequence[BusRecord]) -> None:
        """Record what expired between these records. What only compaction or a transaction left out is no gap."""
        expected = dict(self._at)
        for record in records:
            number, offset = record.partition.number, record.offset
            at = expected.get(number, offset)
            expected[number] = offset + 1
            if offset > at:
                first = min(self._topic.limits(number)[0], offset)
                if first > at:
                    self._gaps.append(OffsetGap(record.partition, at, first, GapReason.LOG_EXPIRED))

    def take_gaps(self) -> tuple[OffsetGap, ...]:
        """Return the gaps that were found since the last call."""
        gaps, self._gaps = tuple(self._gaps), []
        return gaps

    def advance(self, positions: Mapping[BusPartition, int]) -> None:
        self._at.update((where.number, at) for where, at in positions.items())

    def begin(self, partitions: Sequence[TopicPartition]) -> None:
        """Set the offsets at which the client begins with partitions that it got."""
        known = self._committed([partition.partition for partition in partitions])
        for partition in partitions:
            at = known.get(self._topic.partition(partition.partition))
            self._at.pop(partition.partition, None)
            partition.offset = OFFSET_BEGINNING
            if at is not None:
                partition.offset = self._at[partition.partition] = self._start_in_range(partition.partition, at)

    def record_begun(self, numbers: Collection[int]) -> None:
        """Record that partitions are read from where they stand."""
        self._seen.update({number: (at, at) for number in numbers for at in [self._at.get(number, 0)]})
        self._begun.update(numbers)

    def lag_in(self, number: int) -> int:
        at, end = self._reached_in(number)
        return end - at

    def lag(self, numbers: Sequence[int]) -> int | None:
        """Return how many offsets are left of these partitions; None if the topic was recreated."""
        reached = self._reached(numbers)
        if self.is_another():
            return None
        self._seen.update(reached)
        return sum(end - at for at, end in reached.values())

    def is_another(self) -> bool:
        """Return whether the topic was recreated. A broker that hasn't noticed yet still reports the old id."""
        return self._topic.fetch_id() not in {self._topic.id, *self._former}

    def switch_to(self, found: str, mine: Collection[int]) -> None:
        """Go on in the topic of another id, and record what is lost of the old one. `mine` are partitions that only
        this reader has."""
        if found in self._former:
            raise TransientError(f"{self._topic.name}: not all brokers know yet that it was deleted and made again")
        if self._topic.id:
            self._gaps += self._lost_ranges(mine)
            self._former.add(self._topic.id)
        self._topic.id = found
        for each in (self._at, self._begun, self._seen):
            each.clear()

    def _lost_ranges(self, mine: Collection[int]) -> Iterator[OffsetGap]:
        """Yield the unread ranges. Records that arrived since the last check may belong to either topic, so they count
        as unread."""
        stored = {} if self._stored is None else self._stored(self._topic.cluster)
        for number, (at, end) in sorted(self._seen.items()):
            where = self._topic.partition(number)
            if number in mine or stored.get(where, at + 1) <= at:
                yield OffsetGap(where, at, end if end > at else None, GapReason.LOG_RECREATED)

    def _reached(self, numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the next offset of partitions and their ends."""
        try:
            ends = self._topic.end_offsets(numbers)
            firsts = self._topic.first_offsets([each for each in numbers if each not in self._at])
        except KafkaException:  # after a change of leaders this one request fails until it knows them
            return {number: self._reached_in(number) for number in numbers}
        starts = {number: self._at.get(number, firsts.get(number, 0)) for number in numbers}
        return {number: (at, max(at, ends[number])) for number, at in starts.items()}

    def _reached_in(self, number: int) -> tuple[int, int]:
        """Return the next offset of a partition and its end."""
        low, high = self._topic.limits(number, LOOK_SECONDS)
        at = self._at.get(number, low)
        return at, max(at, high)

    def _committed(self, numbers: Sequence[int]) -> Mapping[BusPartition, int]:
        if self._stored is not None:
            return self._stored(self._topic.cluster)
        if self._former:  # what was committed before that was noticed is the older topic's
            numbers = [each for each in numbers if each in self._begun]
        return {self._topic.partition(number): at for number, at in self._topic.committed(numbers).items()}

    def _start_in_range(self, number: int, at: int) -> int:
        """Return where to begin, and record a gap if records expired before they were read."""
        low, high = self._topic.limits(number)
        if at < low:
            self._gaps.append(OffsetGap(self._topic.partition(number), at, low, GapReason.LOG_EXPIRED))
        elif at > high:
            self._gaps.append(OffsetGap(self._topic.partition(number), high, at, GapReason.LOG_RECREATED))
        return min(max(at, low), high)
