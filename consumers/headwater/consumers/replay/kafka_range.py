"""Reads a Kafka topic from offsets to offsets, without a consumer group: the writer's members don't notice it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headwater.consumers.replay.ranges import BusRange, Positions, RangePositions, StoredPositions
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.sources.kafka import KIND
from headwater.consumers.sources.kafka_client import bus_record
from headwater.consumers.sources.kafka_topic import TopicIdentity
from headwater.consumers.sources.librdkafka_log import LibrdkafkaLogger
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events.clock import micros_of
from headwater.lineage.bulk import BusPartition

_ASK_SECONDS: Final = 20.0
_AHEAD_KILOBYTES: Final = "16384"
_FIXED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "group.id": "headwater-replay",
}
"""The client wants a group. It is never joined, because partitions are assigned here."""


class KafkaRange:
    kind = KIND

    def __init__(self, address: str, settings: Mapping[str, str], topic: str, stored: StoredPositions) -> None:
        """`stored` returns the offsets of the store that is filled, for `rewind`."""
        self.address = address
        self.topic = topic
        self._stored = stored
        given: dict[str, Any] = {
            "queued.max.messages.kbytes": _AHEAD_KILOBYTES,
            **settings,
            **_FIXED,
            "logger": LibrdkafkaLogger(),
        }
        try:
            self._client = Consumer(given)
            self._identity = TopicIdentity({**settings, "logger": LibrdkafkaLogger()}, topic)
        except KafkaException as e:
            raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e
        self._cluster = ""
        self._at = RangePositions()
        self._partitions: dict[int, BusPartition] = {}

    def ranges(self) -> dict[BusPartition, BusRange]:
        try:
            numbers = self._ask_for_partitions()
            found = {}
            for number in numbers:
                place = TopicPartition(self.topic, number)
                low, high = self._client.get_watermark_offsets(place, timeout=_ASK_SECONDS)
                found[self._partition(number)] = BusRange(int(low), int(high))
        except KafkaException as e:
            raise TransientError(f"{self.topic}: {e.args[0].str()}") from e
        return found

    def offsets_at(self, time: datetime) -> Positions:
        ends, millis = self.ranges(), micros_of(time) // 1_000
        asked = [TopicPartition(self.topic, each.number, millis) for each in ends]
        try:
            found = self._client.offsets_for_times(asked, timeout=_ASK_SECONDS)
        except KafkaException as e:
            raise TransientError(f"{self.topic}: {e.args[0].str()}") from e
        return {
            where: each.offset if each.offset >= 0 else ends[where].end
            for each in found
            for where in [self._partition(each.partition)]
        }

    def read(self, start: Positions, end: Positions, complete_until: int = 0) -> None:
        self._at.begin(start, end, complete_until)
        self._assign()

    def poll(self, most: int, timeout: float) -> SourceBatch:
        if not self._at.open_partitions():
            return SourceBatch((), {}, (), self._at.finished())
        try:
            first = self._client.poll(timeout)
            messages = [] if first is None else [first, *self._client.consume(most - 1, 0)]
        except KafkaException as e:
            raise TransientError(f"{self.topic}: {e.args[0].str()}") from e
        before = dict(self._at.next)
        records = list(self._records(messages))
        self._leave_finished()
        moved = {each: at for each, at in self._at.next.items() if at != before[each]}
        return SourceBatch(tuple(records), moved, (), self._at.finished())

    def rest(self) -> None:
        """Do nothing: nobody waits for this client."""

    def done(self, positions: Positions) -> None:
        """Do nothing: offsets are the store's."""

    def rewind(self) -> None:
        known = self._stored()
        self._at.begin({each: known.get(each, 0) for each in self._at.end}, self._at.end, self._at.until)
        self._assign()

    def lag(self) -> int:
        return self._at.lag()

    def close(self) -> None:
        self._client.close()
        self._identity.close()

    def _records(self, messages: Sequence[Message]) -> Iterable[BusRecord]:
        for message in messages:
            where, offset, error = self._partition(message.partition() or 0), message.offset() or 0, message.error()
            if error is not None:
                if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its name
                    raise TerminalError(f"{self.topic}: events expired before they were read: {error.str()}")
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                    raise TransientError(f"{self.topic}: {error.str()}")
                if where in self._at.end:  # what is before it are markers of transactions
                    self._at.advance(where, offset)
                continue
            if self._at.next.get(where, 0) <= offset < self._at.end.get(where, 0):
                self._at.advance(where, offset + 1)
                yield bus_record(message, where)
            elif where in self._at.end:
                self._at.advance(where, offset)

    def _assign(self) -> None:
        """Fetch from where the partitions stand. A finished one isn't fetched, and what expired isn't asked for."""
        try:
            for each in self._at.open_partitions():
                place = TopicPartition(self.topic, each.number)
                self._at.advance(each, int(self._client.get_watermark_offsets(place, timeout=_ASK_SECONDS)[0]))
            self._client.assign(
                [TopicPartition(self.topic, each.number, self._at.next[each]) for each in self._at.open_partitions()]
            )
        except KafkaException as e:
            raise TransientError(f"{self.topic}: {e.args[0].str()}") from e

    def _leave_finished(self) -> None:
        still = {each.number for each in self._at.open_partitions()}
        finished = [each for each in self._client.assignment() if each.partition not in still]
        if finished:
            self._client.incremental_unassign(finished)

    def _ask_for_partitions(self) -> list[int]:
        described = self._client.list_topics(self.topic, timeout=_ASK_SECONDS)
        about = described.topics[self.topic]
        if about.error is not None:
            raise TransientError(f"{self.topic}: {about.error.str()}")
        cluster, found = str(described.cluster_id), self._identity.fetch_id()
        if self._identity.id not in {"", found}:
            raise TransientError(f"{self.topic} was deleted and made again during the replay: begin again")
        self._identity.id, self._cluster = found, cluster
        return sorted(about.partitions)

    def _partition(self, number: int) -> BusPartition:
        known = self._partitions.get(number)
        if known is None:
            known = self._partitions[number] = BusPartition(self._cluster, self._identity.id, number)
        return known
