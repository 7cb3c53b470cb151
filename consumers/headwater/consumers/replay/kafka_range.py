"""Reads a Kafka topic from offsets to offsets, without a consumer group: the writer's members don't notice it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Final

from confluent_kafka import KafkaError, Message

from headwater.consumers.replay.ranges import BusRange, Positions, SeekableRange, StoredPositions
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.sources.kafka import KIND
from headwater.consumers.sources.kafka_client import ASK_SECONDS, TopicClient, bus_record
from headwater.errors import TerminalError, TransientError
from headwater.events.clock import micros_of
from headwater.lineage.bulk import BusPartition

_GROUP: Final = "headwater-replay"
"""The client wants a group. It is never joined, because partitions are assigned here."""
_BY_RANGE: Final = {"enable.partition.eof": "true", "auto.offset.reset": "error"}
_NEWEST_SECONDS: Final = 60.0
_NEWEST_AT_ONCE: Final = 1_000


class KafkaRange(SeekableRange):
    kind = KIND

    def __init__(self, address: str, settings: Mapping[str, str], topic: str, stored: StoredPositions) -> None:
        super().__init__(address, stored)
        self.topic = topic
        self._topic = TopicClient(settings, topic, _GROUP, _BY_RANGE)
        self._first: dict[BusPartition, int] = {}
        """The first offset of each partition when it was asked for first. What was gone by then is known."""

    def ranges(self) -> dict[BusPartition, BusRange]:
        with self._topic.explained():
            numbers, found = self._topic.describe(), self._topic.fetch_id()
            if self._topic.id not in {"", found}:
                raise TransientError(f"{self.topic} was deleted and made again during the replay: begin again")
            self._topic.id = found
            there = {self._topic.partition(number): BusRange(*self._topic.limits(number)) for number in numbers}
        self._first = {where: each.first for where, each in there.items()} | self._first
        return there

    def offsets_at(self, time: datetime) -> Positions:
        ends, millis = self.ranges(), micros_of(time) // 1_000
        with self._topic.explained():
            asked = [self._topic.place(end.number, millis) for end in ends]
            found = self._topic.consumer.offsets_for_times(asked, timeout=ASK_SECONDS)
        return {
            where: each.offset if each.offset >= 0 else ends[where].end
            for each in found
            for where in [self._topic.partition(each.partition)]
        }

    def poll(self, most: int, timeout: float) -> SourceBatch:
        if not self._at.open_partitions():
            return SourceBatch((), {}, (), self._at.finished())
        with self._topic.explained():
            first = self._topic.poll(timeout)
            messages = [] if first is None else [first, *self._topic.consumer.consume(most - 1, 0)]
        before = dict(self._at.next)
        records = tuple(self._records(messages))
        self._leave_finished()
        moved = {each: at for each, at in self._at.next.items() if at != before[each]}
        return SourceBatch(records, moved, (), self._at.finished())

    def close(self) -> None:
        self._topic.close()

    def _records(self, messages: Sequence[Message]) -> Iterable[BusRecord]:
        for message in messages:
            where, offset, error = (
                self._topic.partition(message.partition() or 0),
                message.offset() or 0,
                message.error(),
            )
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its name
                    raise TerminalError(f"{self.topic}: events expired before they were read: {error.str()}")
                raise self._topic.errors.explain(error)
            if where not in self._at.end:
                continue
            if error is None and self._at.next[where] <= offset < self._at.end[where]:
                self._at.advance(where, offset + 1)
                yield bus_record(message, where)
            else:  # what is before it are markers of transactions, or what compaction left out
                self._at.advance(where, offset)

    def _seek(self) -> None:
        """Fetch from where the partitions stand. A finished one isn't fetched, and what had expired isn't asked for."""
        with self._topic.explained():
            for partition in self._at.open_partitions():
                first = self._topic.limits(partition.number)[0]
                self._refuse_loss(partition, first)
                self._at.advance(partition, first)
            self._topic.consumer.assign(
                [
                    self._topic.place(partition.number, self._at.next[partition])
                    for partition in self._at.open_partitions()
                ]
            )

    def _refuse_loss(self, where: BusPartition, first: int) -> None:
        at = max(self._at.next[where], self._first.get(where, 0))
        if first > at:
            raise TerminalError(
                f"{self.topic}: events expired before they were read: offsets {at} to {first - 1} of partition "
                f"{where.number}"
            )

    def _leave_finished(self) -> None:
        still = {partition.number for partition in self._at.open_partitions()}
        finished = [each for each in self._topic.consumer.assignment() if each.partition not in still]
        if finished:
            self._topic.consumer.incremental_unassign(finished)


def read_newest(settings: Mapping[str, str], topic: str, most: int) -> Iterator[list[BusRecord]]:
    """Yield the newest records, at most so many of each partition, each partition's in their order."""
    with closing(KafkaRange("", settings, topic, dict)) as source:
        there = source.ranges()
        source.read(
            {where: max(each.first, each.end - most) for where, each in there.items()},
            {where: each.end for where, each in there.items()},
        )
        until = time.monotonic() + _NEWEST_SECONDS
        while source.lag():
            batch = source.poll(_NEWEST_AT_ONCE, 0.2)
            if batch:
                until = time.monotonic() + _NEWEST_SECONDS
            elif time.monotonic() > until:
                raise TransientError(f"{topic}: nothing came for {_NEWEST_SECONDS:g} s: is a broker away?")
            if batch.records:
                yield list(batch.records)
