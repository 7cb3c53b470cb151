"""Reads events of a Kafka topic in a consumer group.

Offsets are kept in the store, in one transaction with the rows. Those in Kafka follow, so that others can see the
progress. They are kept per cluster id and topic id, because a recreated topic is another one. Kafka's client knows
topics only by name and would silently continue in the new topic at the offset of the old one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
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

from headwater.consumers.sources.api import (
    CLOCK_SKEW_MICROS,
    END_CHECK_SECONDS,
    BusRecord,
    OffsetGap,
    SourceBatch,
    StoredOffsets,
)
from headwater.consumers.sources.kafka_topic import TopicIdentity
from headwater.consumers.sources.librdkafka_log import LibrdkafkaLogger, RepeatFilter
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
KIND: Final = "kafka"
_ASK_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 2.0
_LEAVE_SECONDS: Final = 10.0
_LEAVE_POLL_SECONDS: Final = 0.05
_AHEAD_KILOBYTES: Final = "16384"
"""How much the client prefetches. This limits a batch, however large events are."""
_FIXED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
}
"""Settings that the writer's guarantees depend on."""


class KafkaSource:
    def __init__(self, settings: Mapping[str, str], topic: str, group: str, stored: StoredOffsets | None) -> None:
        """`stored` returns the offsets of this group that the store has for a cluster; None if Kafka keeps them."""
        broken = sorted(key for key, value in _FIXED.items() if settings.get(key, value) != value)
        if broken:
            raise ConfigurationError(
                f"{broken[0]} can't be set: offsets are the store's, and nothing may be passed over"
            )
        self._name = topic
        self._stored = stored
        self._last_error = ""
        self._repeat_filter = RepeatFilter()
        self.outage: str | None = None
        """Why nothing can arrive, or None. The client reports only the loss of all brokers, not of a single one."""
        settings_given: dict[str, Any] = {
            "partition.assignment.strategy": "cooperative-sticky",
            "queued.max.messages.kbytes": _AHEAD_KILOBYTES,
            **settings,
            **_FIXED,
            "group.id": group,
            "error_cb": self._on_error,
            "logger": LibrdkafkaLogger(),
        }
        if settings_given.get("group.protocol") == "consumer":  # brokers assign there
            settings_given.pop("partition.assignment.strategy")
        asked: dict[str, Any] = {**settings, "error_cb": self._on_error, "logger": LibrdkafkaLogger()}
        try:
            self._client = Consumer(settings_given)
            self._identity = TopicIdentity(asked, topic)
        except KafkaException as e:
            raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e
        self._cluster = ""
        self._gaps: list[OffsetGap] = []
        self._new: set[int] = set()
        """Assigned partitions that no batch has mentioned yet."""
        self._look_at = 0.0
        self.rebalances = 0
        self._at: dict[int, int] = {}
        """What comes next of a partition."""
        self._partitions: dict[int, BusPartition] = {}
        self._mine: set[int] = set()
        self._left: set[int] = set()
        """Partitions that another member could have read since the last poll, even if they are ours again."""
        self._begun: set[int] = set()
        """Partitions of this topic that were read from somewhere."""
        self._subscribed = False
        self._paused: set[int] = set()
        self._unread_messages: list[Message] = []

    @property
    def kind(self) -> str:
        return KIND

    @property
    def topic(self) -> str:
        return self._name

    @property
    def topic_id(self) -> str:
        """The topic's id; empty until a broker has answered."""
        return self._identity.id

    def poll(self, most: int, timeout: float) -> SourceBatch:
        self._identity.poll()
        messages = self._messages(most, timeout)
        partition = self._partition
        records = tuple([bus_record(each, partition(each.partition() or 0)) for each in messages])
        ends = self._ends_without_gaps(records)
        if ends is None:
            self._refuse_another(records)
            self._find_offset_gaps(records)
            ends = {each.partition.number: each.offset + 1 for each in records}
        gaps, self._gaps = tuple(self._gaps), []
        following = {each.partition: each.end for each in gaps if each.reason is GapReason.LOG_EXPIRED and each.end}
        following.update((partition(number), at) for number, at in ends.items())
        self._at.update((where.number, at) for where, at in following.items())
        reached = {partition(number): 0 for number in self._new} | ({} if records else self._ends())
        self._new.clear()
        self._left.clear()
        return SourceBatch(records, following, gaps, reached)

    def _ends_without_gaps(self, records: Sequence[BusRecord]) -> dict[int, int] | None:
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

    def _refuse_another(self, records: Sequence[BusRecord]) -> None:
        """Check for a recreated topic when offsets go backwards."""
        if not any(each.offset < self._at.get(each.partition.number, 0) for each in records):
            return
        with suppress(KafkaException):  # who can't be asked now is asked soon
            if self._identity.is_another():
                self._give_back()
                raise TransientError(self._identity.words)

    def _find_offset_gaps(self, records: Sequence[BusRecord]) -> None:
        """Record gaps: the client silently skips records that expired before they were read."""
        expected = dict(self._at)
        for each in records:
            number, offset = each.partition.number, each.offset
            at = expected.get(number, offset)
            expected[number] = offset + 1
            if offset > at:
                first = min(self._first(number), offset)
                if first > at:
                    self._gaps.append(OffsetGap(each.partition, at, first, GapReason.LOG_EXPIRED))

    def _first(self, number: int) -> int:
        try:
            place = TopicPartition(self._name, number)
            return int(self._client.get_watermark_offsets(place, timeout=_ASK_SECONDS)[0])
        except KafkaException as e:
            self._give_back()
            raise TransientError(self._explain(e.args[0])) from e

    def _ends(self) -> dict[BusPartition, int]:
        """Return the partitions that were read to their end. Checked from time to time, while nothing arrives."""
        if not self._subscribed or time.monotonic() < self._look_at:
            return {}
        self._look_at, until = time.monotonic() + END_CHECK_SECONDS, wall_micros() - CLOCK_SKEW_MICROS
        try:
            return {
                self._partition(each.partition): until for each in self._client.assignment() if self._lag_in(each) == 0
            }
        except KafkaException:
            return {}

    def _messages(self, most: int, timeout: float) -> list[Message]:
        """Poll one message, then take what is prefetched. `consume` alone would wait until it has all."""
        try:
            if not self._subscribed:
                self._begin()
            if self._paused:
                self._resume()
            waiting, self._unread_messages = self._unread_messages, []
            first = self._client.poll(0 if waiting else timeout)
            found = waiting if first is None else [*waiting, first, *self._client.consume(most - 1, 0)]
            self._refuse_faults(found)
        except KafkaException as e:
            self._give_back()
            raise TransientError(self._explain(e.args[0])) from e
        except HeadwaterError:
            self._give_back()
            raise
        return found

    def _refuse_faults(self, messages: Sequence[Message]) -> None:
        fault = next((error for each in messages if (error := each.error()) is not None), None)
        if fault is not None:
            raise TransientError(self._explain(fault))

    def _give_back(self) -> None:
        """Unsubscribe. Records that weren't returned come again from the store's offsets. This also prevents the client
        from choosing an offset itself where ours couldn't be determined."""
        with suppress(KafkaException):
            self._client.unsubscribe()
        self._subscribed = False
        self._unread_messages.clear()

    def rewind(self) -> None:
        """Leave the group. The next poll joins it, which reads the store's offsets."""
        self._give_back()

    def rest(self) -> None:
        """Pause all partitions and poll, so that the broker doesn't remove this member (max.poll.interval.ms). Pausing
        discards prefetched records."""
        try:
            if not self._subscribed:
                return
            assigned = self._client.assignment()
            self._client.pause(assigned)
            self._paused.update(each.partition for each in assigned)
            message = self._client.poll(0)
        except KafkaException as e:
            self._give_back()
            raise TransientError(self._explain(e.args[0])) from e
        if message is not None:  # of a partition that came just now
            self._unread_messages.append(message)

    def _resume(self) -> None:
        """Resume our partitions. One that was lost and came back can still be paused."""
        mine = [each for each in self._client.assignment() if each.partition in self._paused]
        self._client.resume(mine)
        self._paused.difference_update(each.partition for each in mine)

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        """Commit offsets in Kafka. A partition that another member has taken over can't be committed, and needn't."""
        settings_given = [
            TopicPartition(self._name, each.number, at) for each, at in positions.items() if each.topic == self.topic_id
        ]
        if not settings_given:
            return
        try:
            self._client.commit(offsets=settings_given, asynchronous=True)
        except KafkaException as e:
            _LOG.debug("offsets in Kafka: %s", e)

    def owns(self, partition: BusPartition) -> bool:
        if not self._subscribed or partition.topic != self.topic_id or partition.number in self._left:
            return False
        return partition.number in {each.partition for each in self._client.assignment()}

    def lag(self) -> int | None:
        try:
            assigned = self._client.assignment()
            if not assigned and self.outage is not None:
                self._client.list_topics(self._name, timeout=_LOOK_SECONDS)
            found = self._looked_at(assigned) if assigned else None
        except KafkaException:
            return None
        self.outage = None
        return found

    def _looked_at(self, assigned: Sequence[TopicPartition]) -> int | None:
        """Return the lag, unless the topic was recreated."""
        reached = self._reached_in_all([each.partition for each in assigned])
        if self._identity.is_another():
            _LOG.warning("%s", self._identity.words)
            self._give_back()
            return None
        self._identity.record_reached(reached)
        return sum(end - at for at, end in reached.values())

    def _reached_in_all(self, numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the next offset of partitions and their ends."""
        try:
            ends = self._identity.end_offsets(numbers)
            firsts = self._identity.first_offsets([each for each in numbers if each not in self._at])
        except KafkaException:  # after a change of leaders this one request fails until it knows them
            return {number: self._reached_in(TopicPartition(self._name, number)) for number in numbers}
        starts = {number: self._at.get(number, firsts.get(number, 0)) for number in numbers}
        return {number: (at, max(at, ends[number])) for number, at in starts.items()}

    def _lag_in(self, partition: TopicPartition) -> int:
        at, end = self._reached_in(partition)
        return end - at

    def _reached_in(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the next offset of a partition and its end."""
        low, high = self._client.get_watermark_offsets(partition, timeout=_LOOK_SECONDS)
        at = self._at.get(partition.partition, int(low))
        return at, max(at, int(high))

    def close(self) -> None:
        """Leave the group, and wait for that a limited time.

        The client waits for the group's coordinator until its session ends, and in some states for ever. Nothing is
        lost without it: offsets are the store's, and brokers remove a member that is silent.
        """
        leaving = threading.Thread(target=self._close_client, name="headwater-leave-group", daemon=True)
        leaving.start()
        leaving.join(_LEAVE_SECONDS)
        if leaving.is_alive():
            _LOG.warning(
                "%s: no broker confirmed within %g s that this member left its group", self._name, _LEAVE_SECONDS
            )

    def _close_client(self) -> None:
        try:
            self._client.close()
        except (KafkaException, RuntimeError, HeadwaterError) as e:  # what its callbacks raise, too
            _LOG.debug("%s: leaving the group: %s", self._name, e)

    def _begin(self) -> None:
        """Subscribe, after asking for the topic's id."""
        try:
            self._cluster = str(self._client.list_topics(self._name, timeout=_ASK_SECONDS).cluster_id)
            found = self._identity.fetch_id()
        except KafkaException as e:
            error: KafkaError = e.args[0]
            if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise TransientError(f"there is no topic {self._name} yet: the first driver makes it") from e
            raise TransientError(self._explain(error)) from e
        self._become(found)  # before it leaves: what is lost of an older topic is lost of the partitions it had
        self._leave()
        self._client.subscribe(
            [self._name], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        self._subscribed = True

    def _leave(self) -> None:
        """Wait until an unsubscription has taken effect.

        During a rebalance the client puts it off, and forgets it when it is subscribed again. Then it would go on where
        it stood, behind records that nobody stored.
        """
        deadline = time.monotonic() + _LEAVE_SECONDS
        while self._client.assignment():
            if time.monotonic() > deadline:
                raise TransientError(f"{self._name}: the group is rebalancing, and partitions can't be given back yet")
            self._client.poll(_LEAVE_POLL_SECONDS)  # what it returns comes again

    def _become(self, found: str) -> None:
        """Switch to a recreated topic, and record what is lost of the old one."""
        if found == self.topic_id:
            return
        stored = self._stored(self._cluster) if self._stored is not None else None
        self._gaps += self._identity.switch_to(found, self._cluster, self._mine, stored)
        self._at.clear()
        self._new.clear()
        self._begun.clear()

    def _on_assign(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """A KafkaException must not leave a callback: the client raises something in its place, in `poll`, that is no
        exception of Python's. Nobody can catch it, and the thread ends that polls."""
        try:
            self._begin_reading(client, partitions)
        except KafkaException as e:
            raise TransientError(self._explain(e.args[0])) from e

    def _begin_reading(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        known = self._committed_offsets(partitions)
        for each in partitions:
            at = known.get(self._partition(each.partition))
            self._at.pop(each.partition, None)
            each.offset = OFFSET_BEGINNING
            if at is not None:
                each.offset = self._at[each.partition] = self._start_in_range(client, each, at)
        if self._identity.is_another():
            raise TransientError(self._identity.words)
        client.incremental_assign(list(partitions))
        numbers = {each.partition for each in partitions}
        begun = {number: self._at.get(number, 0) for number in numbers}
        self._identity.record_reached({number: (at, at) for number, at in begun.items()})
        for mine in (self._new, self._mine, self._begun):
            mine.update(numbers)
        self._log_rebalance("came", partitions)

    def _on_revoke(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Record that partitions go to another member; the client unassigns them itself."""
        self._record_left(partitions)
        self._log_rebalance("go to another writer", partitions)

    def _on_lost(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Record that the group gave partitions to others, because this member wasn't heard of."""
        self._record_left(partitions)
        self._log_rebalance("went to another writer, because this one wasn't heard", partitions)

    def _record_left(self, partitions: Sequence[TopicPartition]) -> None:
        numbers = {each.partition for each in partitions}
        self._mine -= numbers
        self._left |= numbers

    def _log_rebalance(self, words: str, partitions: Sequence[TopicPartition]) -> None:
        self.rebalances += 1
        numbers = sorted(each.partition for each in partitions)
        _LOG.info("partitions of %s %s", self._name, words, extra={"headwater": {"partitions": numbers}})

    @property
    def partitions(self) -> int:
        """How many partitions this writer reads now."""
        return len(self._client.assignment()) if self._subscribed else 0

    def _committed_offsets(self, partitions: Sequence[TopicPartition]) -> Mapping[BusPartition, int]:
        if self._stored is not None:
            return self._stored(self._cluster)
        if self._identity.is_younger:  # what was committed before that was noticed is the older topic's
            partitions = [each for each in partitions if each.partition in self._begun]
        committed = self._client.committed(list(partitions), timeout=_ASK_SECONDS) if partitions else []
        return {self._partition(each.partition): each.offset for each in committed if each.offset >= 0}

    def _start_in_range(self, client: Consumer, partition: TopicPartition, at: int) -> int:
        """Return where to begin, and record a gap if records expired before they were read."""
        low, high = client.get_watermark_offsets(partition, timeout=_ASK_SECONDS)
        if at < low:
            self._gaps.append(OffsetGap(self._partition(partition.partition), at, low, GapReason.LOG_EXPIRED))
            return int(low)
        if at > high:
            self._gaps.append(OffsetGap(self._partition(partition.partition), high, at, GapReason.LOG_RECREATED))
            return int(high)
        return at

    def _partition(self, number: int) -> BusPartition:
        """Return the partition of this number, the same object for each of its records."""
        known = self._partitions.get(number)
        if known is None or known[:2] != (self._cluster, self.topic_id):
            known = self._partitions[number] = BusPartition(self._cluster, self.topic_id, number)
        return known

    def _on_error(self, error: KafkaError) -> None:
        """Receive an error of the client. It reports connection problems only here."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - its name
            self.outage = f"{self._name}: no broker answers"
        self._last_error = error.str()
        if self._repeat_filter.is_new(self._last_error):
            _LOG.warning("Kafka: %s", self._last_error)

    def _explain(self, error: KafkaError) -> str:
        cause = f" ({self._last_error})" if self._last_error and self._last_error != error.str() else ""
        return f"{self._name}: {error.str()}{cause}"


def bus_record(message: Message, partition: BusPartition) -> BusRecord:
    """Return a message as a record. It has a time only where the broker sets it."""
    kind, millis = message.timestamp()
    append_time = millis * 1_000 if kind == TIMESTAMP_LOG_APPEND_TIME else None
    found: Any = message.headers() or ()
    headers = tuple([(name, value or b"") for name, value in found])
    key: Any = message.key()
    return BusRecord(bytes(message.value() or b""), partition, message.offset() or 0, append_time, key, headers)
