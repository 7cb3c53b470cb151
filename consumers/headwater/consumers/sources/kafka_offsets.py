"""Keeps what comes next of each partition of a topic, and finds the gaps.

The client silently skips records that expired before they were read, and knows a topic only by its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from headwater.consumers.sources.api import BusRecord, OffsetGap, StoredOffsets
from headwater.consumers.sources.kafka_topic import TopicIdentity
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

_ASK_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 2.0


class KafkaOffsets:
    """The offsets of one reader of a topic. Its methods raise a KafkaException if no broker answers."""

    def __init__(self, client: Consumer, identity: TopicIdentity, topic: str, stored: StoredOffsets | None) -> None:
        """`stored` returns the offsets of this group that the store has for a cluster; None if Kafka keeps them."""
        self._client = client
        self._identity = identity
        self._topic = topic
        self._stored = stored
        self._gaps: list[OffsetGap] = []
        self._at: dict[int, int] = {}
        """What comes next of a partition."""
        self._begun: set[int] = set()
        """Partitions of this topic that were read from somewhere."""
        self._partitions: dict[int, BusPartition] = {}
        self.cluster = ""

    def partition(self, number: int) -> BusPartition:
        """Return the partition of this number, the same object for each of its records."""
        known = self._partitions.get(number)
        if known is None or known[:2] != (self.cluster, self._identity.id):
            known = self._partitions[number] = BusPartition(self.cluster, self._identity.id, number)
        return known

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
        return any(each.offset < self._at.get(each.partition.number, 0) for each in records)

    def find_gaps(self, records: Sequence[BusRecord]) -> None:
        """Record what expired between these records."""
        expected = dict(self._at)
        for each in records:
            number, offset = each.partition.number, each.offset
            at = expected.get(number, offset)
            expected[number] = offset + 1
            if offset > at:
                place = TopicPartition(self._topic, number)
                first = min(int(self._client.get_watermark_offsets(place, timeout=_ASK_SECONDS)[0]), offset)
                if first > at:
                    self._gaps.append(OffsetGap(each.partition, at, first, GapReason.LOG_EXPIRED))

    def take_gaps(self) -> tuple[OffsetGap, ...]:
        """Return the gaps that were found since the last call."""
        gaps, self._gaps = tuple(self._gaps), []
        return gaps

    def advance(self, positions: Mapping[BusPartition, int]) -> None:
        self._at.update((where.number, at) for where, at in positions.items())

    def begin(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Set the offsets at which the client begins with partitions that it got."""
        known = self._committed(partitions)
        for each in partitions:
            at = known.get(self.partition(each.partition))
            self._at.pop(each.partition, None)
            each.offset = OFFSET_BEGINNING
            if at is not None:
                each.offset = self._at[each.partition] = self._start_in_range(client, each, at)

    def record_begun(self, numbers: Collection[int]) -> None:
        """Record that partitions are read from where they stand."""
        begun = {number: self._at.get(number, 0) for number in numbers}
        self._identity.record_reached({number: (at, at) for number, at in begun.items()})
        self._begun.update(numbers)

    def switch_to(self, found: str, mine: Collection[int]) -> None:
        """Go on in a recreated topic, and record what is lost of the old one. `mine` are partitions that only this
        reader has."""
        stored = self._stored(self.cluster) if self._stored is not None else None
        self._gaps += self._identity.switch_to(found, self.cluster, mine, stored)
        self._at.clear()
        self._begun.clear()

    def lag_in(self, partition: TopicPartition) -> int:
        at, end = self._reached_in(partition)
        return end - at

    def reached(self, numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the next offset of partitions and their ends."""
        try:
            ends = self._identity.end_offsets(numbers)
            firsts = self._identity.first_offsets([each for each in numbers if each not in self._at])
        except KafkaException:  # after a change of leaders this one request fails until it knows them
            return {number: self._reached_in(TopicPartition(self._topic, number)) for number in numbers}
        starts = {number: self._at.get(number, firsts.get(number, 0)) for number in numbers}
        return {number: (at, max(at, ends[number])) for number, at in starts.items()}

    def _reached_in(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the next offset of a partition and its end."""
        low, high = self._client.get_watermark_offsets(partition, timeout=_LOOK_SECONDS)
        at = self._at.get(partition.partition, int(low))
        return at, max(at, int(high))

    def _committed(self, partitions: Sequence[TopicPartition]) -> Mapping[BusPartition, int]:
        if self._stored is not None:
            return self._stored(self.cluster)
        if self._identity.is_younger:  # what was committed before that was noticed is the older topic's
            partitions = [each for each in partitions if each.partition in self._begun]
        committed = self._client.committed(list(partitions), timeout=_ASK_SECONDS) if partitions else []
        return {self.partition(each.partition): each.offset for each in committed if each.offset >= 0}

    def _start_in_range(self, client: Consumer, partition: TopicPartition, at: int) -> int:
        """Return where to begin, and record a gap if records expired before they were read."""
        low, high = client.get_watermark_offsets(partition, timeout=_ASK_SECONDS)
        if at < low:
            self._gaps.append(OffsetGap(self.partition(partition.partition), at, low, GapReason.LOG_EXPIRED))
            return int(low)
        if at > high:
            self._gaps.append(OffsetGap(self.partition(partition.partition), high, at, GapReason.LOG_RECREATED))
            return int(high)
        return at
