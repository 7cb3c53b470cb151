"""Reads events of a Kafka topic in a consumer group.

Offsets are kept in the store, in one transaction with the rows. Those in Kafka follow, so that others can see the
progress. They are kept per cluster id and topic id, because a recreated topic is another one. Kafka's client knows
topics only by name and would silently continue in the new topic at the offset of the old one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from headwater.consumers.sources.api import CLOCK_SKEW_MICROS, END_CHECK_SECONDS, BusRecord, SourceBatch, StoredOffsets
from headwater.consumers.sources.kafka_client import LOOK_SECONDS, TopicClient, bus_record
from headwater.consumers.sources.kafka_offsets import KafkaOffsets
from headwater.errors import HeadwaterError, TransientError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
KIND: Final = "kafka"
_STRATEGY: Final = "partition.assignment.strategy"
_LEAVE_SECONDS: Final = 10.0
_LEAVE_POLL_SECONDS: Final = 0.05


class KafkaSource:
    def __init__(self, settings: Mapping[str, str], topic: str, group: str, stored: StoredOffsets | None) -> None:
        """`stored` returns the offsets of this group that the store has for a cluster; None if Kafka keeps them."""
        strategy = {_STRATEGY: settings.get(_STRATEGY, "cooperative-sticky")}
        is_brokers = settings.get("group.protocol") == "consumer"  # brokers assign there
        self._topic = TopicClient(settings, topic, group, {} if is_brokers else strategy)
        self._client = self._topic.consumer
        self._offsets = KafkaOffsets(self._topic, stored)
        self._new: set[int] = set()
        """Assigned partitions that no batch has mentioned yet."""
        self._look_at = 0.0
        self.rebalances = 0
        self._mine: set[int] = set()
        self._left: set[int] = set()
        """Partitions that another member could have read since the last poll, even if they are ours again."""
        self._subscribed = False
        self._paused: set[int] = set()
        self._unread_messages: list[Message] = []

    @property
    def kind(self) -> str:
        return KIND

    @property
    def topic(self) -> str:
        return self._topic.name

    @property
    def topic_id(self) -> str:
        """The topic's id; empty until a broker has answered."""
        return self._topic.id

    @property
    def outage(self) -> str | None:
        """Why nothing can arrive, or None."""
        return self._topic.errors.outage

    @property
    def partitions(self) -> int:
        """How many partitions this writer reads now."""
        return len(self._client.assignment()) if self._subscribed else 0

    def poll(self, most: int, timeout: float) -> SourceBatch:
        messages = self._messages(most, timeout)
        partition = self._topic.partition
        records = tuple([bus_record(message, partition(message.partition() or 0)) for message in messages])
        ends = self._offsets.ends_without_gaps(records)
        if ends is None:
            self._refuse_another(records)
            with self._give_back_on_failure():
                self._offsets.find_gaps(records)
            ends = {record.partition.number: record.offset + 1 for record in records}
        gaps = self._offsets.take_gaps()
        following = {gap.partition: gap.end for gap in gaps if gap.reason is GapReason.LOG_EXPIRED and gap.end}
        following.update((partition(number), at) for number, at in ends.items())
        self._offsets.advance(following)
        reached = {partition(number): 0 for number in self._new} | ({} if records else self._ends())
        self._new.clear()
        self._left.clear()
        return SourceBatch(records, following, gaps, reached)

    def _refuse_another(self, records: Sequence[BusRecord]) -> None:
        """Check for a recreated topic when offsets go backwards."""
        if not self._offsets.go_back(records):
            return
        with suppress(KafkaException):  # who can't be asked now is asked soon
            if self._offsets.is_another():
                self._give_back()
                raise TransientError(self._offsets.words)

    def _ends(self) -> dict[BusPartition, int]:
        """Return the partitions that were read to their end. Checked from time to time, while nothing arrives."""
        if not self._subscribed or time.monotonic() < self._look_at:
            return {}
        self._look_at, until = time.monotonic() + END_CHECK_SECONDS, wall_micros() - CLOCK_SKEW_MICROS
        try:
            return {
                self._topic.partition(each.partition): until
                for each in self._client.assignment()
                if self._offsets.lag_in(each.partition) == 0
            }
        except KafkaException:
            return {}

    def _messages(self, most: int, timeout: float) -> list[Message]:
        """Poll one message, then take what is prefetched. `consume` alone would wait until it has all."""
        with self._give_back_on_failure():
            if not self._subscribed:
                self._begin()
            if self._paused:
                self._resume()
            waiting, self._unread_messages = self._unread_messages, []
            first = self._topic.poll(0 if waiting else timeout)
            found = waiting if first is None else [*waiting, first, *self._client.consume(most - 1, 0)]
            self._refuse_faults(found)
            return found

    def _refuse_faults(self, messages: Sequence[Message]) -> None:
        fault = next((error for message in messages if (error := message.error()) is not None), None)
        if fault is not None:
            raise self._topic.errors.explain(fault)

    @contextmanager
    def _give_back_on_failure(self) -> Generator[None]:
        """Give the partitions back where a block fails: the next poll joins the group again."""
        try:
            yield
        except KafkaException as e:
            self._give_back()
            raise self._topic.errors.explain(e.args[0]) from e
        except HeadwaterError:
            self._give_back()
            raise

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
        if not self._subscribed:
            return
        with self._give_back_on_failure():
            assigned = self._client.assignment()
            self._client.pause(assigned)
            self._paused.update(each.partition for each in assigned)
            message = self._client.poll(0)
        if message is not None:  # of a partition that came just now
            self._unread_messages.append(message)

    def _resume(self) -> None:
        """Resume our partitions. One that was lost and came back can still be paused."""
        mine = [each for each in self._client.assignment() if each.partition in self._paused]
        self._client.resume(mine)
        self._paused.difference_update(each.partition for each in mine)

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        """Commit offsets in Kafka. A partition that another member has taken over can't be committed, and needn't."""
        ours = [self._topic.place(each.number, at) for each, at in positions.items() if each.topic == self.topic_id]
        if not ours:
            return
        try:
            self._client.commit(offsets=ours, asynchronous=True)
        except KafkaException as e:
            _LOG.debug("offsets in Kafka: %s", e)

    def owns(self, partition: BusPartition) -> bool:
        if not self._subscribed or partition.topic != self.topic_id or partition.number in self._left:
            return False
        return partition.number in {each.partition for each in self._client.assignment()}

    def lag(self) -> int | None:
        try:
            assigned = self._client.assignment()
            if not assigned and self._topic.errors.outage is not None:
                self._client.list_topics(self.topic, timeout=LOOK_SECONDS)
            found = self._offsets.lag([each.partition for each in assigned]) if assigned else None
        except KafkaException:
            return None
        self._topic.errors.outage = None
        if assigned and found is None:
            _LOG.warning("%s", self._offsets.words)
            self._give_back()
        return found

    def close(self) -> None:
        """Leave the group, and wait for that a limited time.

        The client waits for the group's coordinator until its session ends, and in some states for ever. Nothing is
        lost without it: offsets are the store's, and brokers remove a member that is silent.
        """
        leaving = threading.Thread(target=self._topic.close, name="headwater-leave-group", daemon=True)
        leaving.start()
        leaving.join(_LEAVE_SECONDS)
        if leaving.is_alive():
            _LOG.warning(
                "%s: no broker confirmed within %g s that this member left its group", self.topic, _LEAVE_SECONDS
            )

    def _begin(self) -> None:
        """Subscribe, after asking for the topic's id."""
        with self._topic.explained():
            self._topic.describe()
            found = self._topic.fetch_id()
        if found != self.topic_id:
            self._offsets.switch_to(found, self._mine)  # before it leaves: an older topic is lost with what was ours
            self._new.clear()
        self._leave()
        self._client.subscribe(
            [self.topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
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
                raise TransientError(f"{self.topic}: the group is rebalancing, and partitions can't be given back yet")
            self._client.poll(_LEAVE_POLL_SECONDS)  # what it returns comes again

    def _on_assign(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """A KafkaException must not leave a callback: the client raises something in its place, in `poll`, that is no
        exception of Python's. Nobody can catch it, and the thread ends that polls."""
        try:
            self._begin_reading(client, partitions)
        except KafkaException as e:
            raise self._topic.errors.explain(e.args[0]) from e

    def _begin_reading(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._offsets.begin(partitions)
        if self._offsets.is_another():
            raise TransientError(self._offsets.words)
        client.incremental_assign(list(partitions))
        numbers = {partition.partition for partition in partitions}
        self._offsets.record_begun(numbers)
        self._new.update(numbers)
        self._mine.update(numbers)
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
        numbers = {partition.partition for partition in partitions}
        self._mine -= numbers
        self._left |= numbers

    def _log_rebalance(self, words: str, partitions: Sequence[TopicPartition]) -> None:
        self.rebalances += 1
        numbers = sorted(partition.partition for partition in partitions)
        _LOG.info("partitions of %s %s", self.topic, words, extra={"headwater": {"partitions": numbers}})
