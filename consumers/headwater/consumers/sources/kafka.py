"""Events of a topic, in a consumer group. Where a partition is begun is what the store says: offsets stand there in one
transaction with the rows; those in Kafka follow, for others to see how far this is.

A topic that was deleted and made again is another one: offsets are kept by the ids of cluster and topic. Kafka's client
knows topics by their names: in a new one it goes on where it was in the older one, without a word.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headwater.consumers.sources.api import CLOCKS, END_SECONDS, Batch, Hole, Taken
from headwater.consumers.sources.kafka_topic import TopicIdentity
from headwater.consumers.sources.lines import Lines, Once
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import Partition

_LOG: Final = logging.getLogger(__name__)
KIND: Final = "kafka"
_ASK_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 2.0
_AHEAD_KILOBYTES: Final = "16384"
"""What the client reads ahead, so what a batch can be at most, however large events are."""
_FIXED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
}
"""What the promise of the writer stands on."""
Stored = Callable[[str], Mapping[Partition, int]]


class KafkaSource:
    def __init__(self, settings: Mapping[str, str], topic: str, group: str, stored: Stored | None) -> None:
        """`stored` gives what the store knows of a cluster's offsets of this group; None where Kafka keeps them."""
        broken = sorted(key for key, value in _FIXED.items() if settings.get(key, value) != value)
        if broken:
            raise ConfigurationError(
                f"{broken[0]} can't be set: offsets are the store's, and nothing may be passed over"
            )
        self._name = topic
        self._stored = stored
        self._trouble = ""
        self._heard_of = Once()
        self.away: str | None = None
        """Why nothing can come; None as long as something can. A client is told of no broker that it has lost, only
        that it has lost all."""
        told: dict[str, Any] = {
            "partition.assignment.strategy": "cooperative-sticky",
            "queued.max.messages.kbytes": _AHEAD_KILOBYTES,
            **settings,
            **_FIXED,
            "group.id": group,
            "error_cb": self._heard,
            "logger": Lines(),
        }
        if told.get("group.protocol") == "consumer":  # brokers assign there
            told.pop("partition.assignment.strategy")
        asked: dict[str, Any] = {**settings, "error_cb": self._heard, "logger": Lines()}
        try:
            self._client = Consumer(told)
            self._identity = TopicIdentity(asked, topic)
        except KafkaException as e:
            raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e
        self._cluster = ""
        self._holes: list[Hole] = []
        self._new: set[int] = set()
        """Partitions that came, of which nothing was told yet."""
        self._look_at = 0.0
        self.rebalances = 0
        self._at: dict[int, int] = {}
        """What comes next of a partition."""
        self._mine: set[int] = set()
        self._begun: set[int] = set()
        """Partitions of this topic that were read from somewhere."""
        self._subscribed = False
        self._paused: set[int] = set()
        self._kept: list[Message] = []

    @property
    def kind(self) -> str:
        return KIND

    @property
    def topic(self) -> str:
        return self._name

    @property
    def topic_id(self) -> str:
        """Empty until a broker has answered."""
        return self._identity.id

    def poll(self, most: int, timeout: float) -> Batch:
        self._identity.serve()
        messages = self._messages(most, timeout)
        records = tuple(map(self._taken, messages))
        self._refuse_another(records)
        self._look_for_holes(records)
        holes, self._holes = tuple(self._holes), []
        following = {each.partition: each.offset + 1 for each in records}
        self._at.update((partition.number, at) for partition, at in following.items())
        ends = {self._partition(number): 0 for number in self._new} | ({} if records else self._ends())
        self._new.clear()
        return Batch(records, following, holes, ends)

    def _refuse_another(self, records: Sequence[Taken]) -> None:
        """Where offsets go back it may be another topic that they are of."""
        if not any(each.offset < self._at.get(each.partition.number, 0) for each in records):
            return
        with suppress(KafkaException):  # who can't be asked now is asked soon
            if self._identity.is_another():
                self._give_back()
                raise TransientError(self._identity.words)

    def _look_for_holes(self, records: Sequence[Taken]) -> None:
        """What expired while it was waited for is passed over by the client without a word."""
        expected = dict(self._at)
        for each in records:
            number, offset = each.partition.number, each.offset
            at = expected.get(number, offset)
            expected[number] = offset + 1
            if offset > at:
                first = min(self._first(number), offset)
                if first > at:
                    self._holes.append(Hole(each.partition, at, first, GapReason.LOG_EXPIRED))

    def _first(self, number: int) -> int:
        try:
            place = TopicPartition(self._name, number)
            return int(self._client.get_watermark_offsets(place, timeout=_ASK_SECONDS)[0])
        except KafkaException as e:
            self._give_back()
            raise TransientError(self._explained(e.args[0])) from e

    def _ends(self) -> dict[Partition, int]:
        """Those that all was given of. Asked now and then, while nothing comes."""
        if not self._subscribed or time.monotonic() < self._look_at:
            return {}
        self._look_at, until = time.monotonic() + END_SECONDS, wall_micros() - CLOCKS
        try:
            return {
                self._partition(each.partition): until
                for each in self._client.assignment()
                if self._behind_in(each) == 0
            }
        except KafkaException:
            return {}

    def _messages(self, most: int, timeout: float) -> list[Message]:
        """`consume` would wait for all of them."""
        try:
            if not self._subscribed:
                self._begin()
            if self._paused:
                self._resume()
            kept, self._kept = self._kept, []
            first = self._client.poll(0 if kept else timeout)
            found = kept if first is None else [*kept, first, *self._client.consume(most - 1, 0)]
            self._refuse_faults(found)
        except KafkaException as e:
            self._give_back()
            raise TransientError(self._explained(e.args[0])) from e
        except HeadwaterError:
            self._give_back()
            raise
        return found

    def _refuse_faults(self, messages: Sequence[Message]) -> None:
        fault = next((error for each in messages if (error := each.error()) is not None), None)
        if fault is not None:
            raise TransientError(self._explained(fault))

    def _give_back(self) -> None:
        """What was taken and isn't given to anybody comes again, from where the store says; so does a partition of
        which that couldn't be found out: the client would begin it where it likes."""
        with suppress(KafkaException):
            self._client.unsubscribe()
        self._subscribed = False
        self._kept.clear()

    def rest(self) -> None:
        """A member that doesn't poll is taken for gone (max.poll.interval.ms). Pausing throws away what was fetched
        ahead, and goes on behind what was given."""
        try:
            if not self._subscribed:
                return
            assigned = self._client.assignment()
            self._client.pause(assigned)
            self._paused.update(each.partition for each in assigned)
            message = self._client.poll(0)
        except KafkaException as e:
            self._give_back()
            raise TransientError(self._explained(e.args[0])) from e
        if message is not None:  # of a partition that came just now
            self._kept.append(message)

    def _resume(self) -> None:
        """Those that are ours now. One that was lost meanwhile may still be paused when it comes back."""
        mine = [each for each in self._client.assignment() if each.partition in self._paused]
        self._client.resume(mine)
        self._paused.difference_update(each.partition for each in mine)

    def done(self, positions: Mapping[Partition, int]) -> None:
        """A group that has given a partition to somebody else can't commit it, and needn't."""
        told = [
            TopicPartition(self._name, each.number, at) for each, at in positions.items() if each.topic == self.topic_id
        ]
        if not told:
            return
        try:
            self._client.commit(offsets=told, asynchronous=True)
        except KafkaException as e:
            _LOG.debug("offsets in Kafka: %s", e)

    def behind(self) -> int | None:
        try:
            assigned = self._client.assignment()
            if not assigned and self.away is not None:
                self._client.list_topics(self._name, timeout=_LOOK_SECONDS)
            found = self._looked_at(assigned) if assigned else None
        except KafkaException:
            return None
        self.away = None
        return found

    def _looked_at(self, assigned: Sequence[TopicPartition]) -> int | None:
        """How much is to come, if it is still the same topic."""
        reached = {each.partition: self._reached_in(each) for each in assigned}
        if self._identity.is_another():
            _LOG.warning("%s", self._identity.words)
            self._give_back()
            return None
        self._identity.seen(reached)
        return sum(end - at for at, end in reached.values())

    def _behind_in(self, partition: TopicPartition) -> int:
        at, end = self._reached_in(partition)
        return end - at

    def _reached_in(self, partition: TopicPartition) -> tuple[int, int]:
        """What comes next, and what comes after all that there is."""
        low, high = self._client.get_watermark_offsets(partition, timeout=_LOOK_SECONDS)
        at = self._at.get(partition.partition, int(low))
        return at, max(at, int(high))

    def close(self) -> None:
        self._client.close()

    def _begin(self) -> None:
        """What the topic is, before anything is read of it."""
        try:
            self._cluster = str(self._client.list_topics(self._name, timeout=_ASK_SECONDS).cluster_id)
            found = self._identity.asked()
        except KafkaException as e:
            error: KafkaError = e.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise TransientError(f"there is no topic {self._name} yet: the first driver makes it") from e
            raise TransientError(self._explained(error)) from e
        self._become(found)
        self._client.subscribe([self._name], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        self._subscribed = True

    def _become(self, found: str) -> None:
        """What was of an older topic is at its end."""
        if found == self.topic_id:
            return
        stored = self._stored(self._cluster) if self._stored is not None else None
        self._holes += self._identity.become(found, self._cluster, self._mine, stored)
        self._at.clear()
        self._new.clear()
        self._begun.clear()

    def _assigned(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        known = self._known(partitions)
        for each in partitions:
            at = known.get(self._partition(each.partition))
            self._at.pop(each.partition, None)
            each.offset = OFFSET_BEGINNING
            if at is not None:
                each.offset = self._at[each.partition] = self._within(client, each, at)
        if self._identity.is_another():
            raise TransientError(self._identity.words)
        client.incremental_assign(list(partitions))
        numbers = {each.partition for each in partitions}
        begun = {number: self._at.get(number, 0) for number in numbers}
        self._identity.seen({number: (at, at) for number, at in begun.items()})
        for mine in (self._new, self._mine, self._begun):
            mine.update(numbers)
        self._rebalanced("came", partitions)

    def _revoked(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """The client takes them away itself."""
        self._mine.difference_update(each.partition for each in partitions)
        self._rebalanced("go to another writer", partitions)

    def _lost(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """The group has given them to others already."""
        self._mine.difference_update(each.partition for each in partitions)
        self._rebalanced("went to another writer, because this one wasn't heard", partitions)

    def _rebalanced(self, words: str, partitions: Sequence[TopicPartition]) -> None:
        self.rebalances += 1
        numbers = sorted(each.partition for each in partitions)
        _LOG.info("partitions of %s %s", self._name, words, extra={"headwater": {"partitions": numbers}})

    @property
    def partitions(self) -> int:
        """That this one reads now."""
        return len(self._client.assignment()) if self._subscribed else 0

    def _known(self, partitions: Sequence[TopicPartition]) -> Mapping[Partition, int]:
        if self._stored is not None:
            return self._stored(self._cluster)
        if self._identity.is_younger:  # what was committed before that was noticed is the older topic's
            partitions = [each for each in partitions if each.partition in self._begun]
        committed = self._client.committed(list(partitions), timeout=_ASK_SECONDS) if partitions else []
        return {self._partition(each.partition): each.offset for each in committed if each.offset >= 0}

    def _within(self, client: Consumer, partition: TopicPartition, at: int) -> int:
        """Where to begin. What expired before it was read is a hole."""
        low, high = client.get_watermark_offsets(partition, timeout=_ASK_SECONDS)
        if at < low:
            self._holes.append(Hole(self._partition(partition.partition), at, low, GapReason.LOG_EXPIRED))
            return int(low)
        if at > high:
            self._holes.append(Hole(self._partition(partition.partition), high, at, GapReason.LOG_RECREATED))
            return int(high)
        return at

    def _taken(self, message: Message) -> Taken:
        kind, millis = message.timestamp()
        appended = millis * 1_000 if kind == TIMESTAMP_LOG_APPEND_TIME else None
        told: Any = message.headers() or ()
        headers = tuple((name, value or b"") for name, value in told)
        number, offset = message.partition() or 0, message.offset() or 0
        key: Any = message.key()
        return Taken(bytes(message.value() or b""), self._partition(number), offset, appended, key, headers)

    def _partition(self, number: int) -> Partition:
        return Partition(self._cluster, self.topic_id, number)

    def _heard(self, error: KafkaError) -> None:
        """Why nothing comes is told here only."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - its name
            self.away = f"{self._name}: no broker answers"
        self._trouble = error.str()
        if self._heard_of.is_new(self._trouble):
            _LOG.warning("Kafka: %s", self._trouble)

    def _explained(self, error: KafkaError) -> str:
        cause = f" ({self._trouble})" if self._trouble and self._trouble != error.str() else ""
        return f"{self._name}: {error.str()}{cause}"
