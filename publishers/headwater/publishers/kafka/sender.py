"""One librdkafka producer, from its beginning to its first failure.

Up to then what it sent is in each partition in the order in which it was sent, without a gap: it is idempotent, never
gives a record up by itself, and stops for good where one is refused (`enable.gapless.guarantee`). After that whatever
isn't acknowledged is sent again by another one. So each sender leaves a beginning of the same sequence in a partition,
and whatever way those of several mix there, the first copies of all records are in order.

What was sent and isn't acknowledged, and how far everything is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from zlib import crc32

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message, Producer

from headwater.errors import TransientError
from headwater.events.keys import Headers
from headwater.publishers.kafka.cluster import KafkaTopic, oauth
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.errors import (
    CLUSTER,
    SILENCE,
    TOPIC,
    ErrorTracker,
    KafkaProblem,
    describe_error,
    is_cause,
)
from headwater.publishers.kafka.schemas import SchemaFraming
from headwater.spi import EventRecord, SpoolPosition


class PendingRecords:
    """The account of one sender: positions go in in order, and come out in any."""

    def __init__(self, acked_position: SpoolPosition | None) -> None:
        self.acked_position = acked_position
        """Up to here all is acknowledged."""
        self._in_order: deque[SpoolPosition] = deque()
        self._acked_early: set[SpoolPosition] = set()

    def __len__(self) -> int:
        return len(self._in_order) - len(self._acked_early)

    @property
    def is_empty(self) -> bool:
        return not self._in_order

    def add(self, position: SpoolPosition) -> None:
        self._in_order.append(position)

    def acknowledge(self, position: SpoolPosition) -> None:
        waiting = self._in_order
        if waiting[0] != position:
            self._acked_early.add(position)
            return
        waiting.popleft()
        while waiting and self._acked_early and waiting[0] in self._acked_early:
            position = waiting.popleft()
            self._acked_early.remove(position)
        self.acked_position = position


_ROOM_SECONDS: Final = 1.0
_CLUSTER_SECONDS: Final = 1.0
_SILENCE_SECONDS: Final = 10.0
_CAUSE_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.05


class StoppedError(TransientError):
    """Nothing can be sent any more; `KafkaSender.failure` has why, once it was served."""


@dataclass(frozen=True)
class SendFailure:
    """Why a sender stopped, and where."""

    problem: KafkaProblem
    position: SpoolPosition | None = None
    """Of the record that was refused; None where it was none of them."""
    size: int = 0
    """Of that record, in bytes."""
    is_cause: bool = True
    """Whether it tells why, and not only that something else failed."""


class KafkaSender:
    """For one thread."""

    def __init__(
        self,
        config: KafkaConfig,
        topic: KafkaTopic,
        schemas: SchemaFraming,
        errors: ErrorTracker,
        *,
        acked_position: SpoolPosition | None,
        observe: Callable[[int], None],
        one_by_one: bool,
    ) -> None:
        self.failure: SendFailure | None = None
        self.topic = topic
        self.acked_position = acked_position
        """Up to here everything is in that cluster."""
        settings: dict[str, Any] = dict(config.sender(topic.max_message_bytes, one_by_one=one_by_one))
        self._producer = Producer({**settings, **oauth(config), **errors.callbacks()})
        self._schemas = schemas
        self._errors = errors
        self._losses_seen = errors.losses
        self._pending = PendingRecords(acked_position)
        self._observe = observe
        self._acknowledged: Message | None = None
        self._last_answer_time = time.monotonic()
        self._offsets: dict[int, int] = {}
        """The last that was acknowledged, by partition."""

    @property
    def is_all_acked(self) -> bool:
        """Whether all that was sent is acknowledged."""
        return self._pending.is_empty and self.acked_position == self._pending.acked_position

    def send(self, record: EventRecord) -> None:
        """A HeadwaterError where it can't be sent now; it is not sent then."""
        where = crc32(record.key) % self.topic.partitions
        data = self._schemas.frame(record)
        position = record.position
        try:
            if self._pending.is_empty:
                self._last_answer_time = time.monotonic()
            self._pending.add(position)
            self._produce(data, record.key, record.headers, where, partial(self._delivered, position))
        except KafkaException as e:
            error: KafkaError = e.args[0]
            self._fail(error, position if is_cause(error) else None, len(data))
            raise StoppedError(describe_error(error).words) from e

    def serve(self, seconds: float) -> None:
        """Take in what was acknowledged; wait for all of it, so long."""
        deadline = time.monotonic() + seconds
        self._poll(0)
        while self.failure is None and not self._pending.is_empty and (left := deadline - time.monotonic()) > 0:
            self._poll(min(left, _POLL_SECONDS))
        if self.failure is not None:
            self._await_cause()
        self._observe_time()
        self._confirm()
        self._report_silence()

    def drop(self) -> None:
        """Send nothing any more. What is on its way may still arrive; nobody waits for it."""
        if hasattr(self, "_producer"):
            del self._producer  # the callbacks in it lead back here: it would live on until that is noticed

    def _produce(self, data: bytes, key: bytes, headers: Headers, where: int, done: Any) -> None:
        try:
            self._producer.produce(self.topic.name, data, key, where, done, None, 0, [*headers])
        except BufferError:
            self._await_room()
            self._produce(data, key, headers, where, done)

    def _await_room(self) -> None:
        full, deadline = len(self._producer), time.monotonic() + _ROOM_SECONDS
        while len(self._producer) >= full:
            if time.monotonic() > deadline:
                raise TransientError(self._errors.explain("librdkafka has no room for more"))
            self._poll(_POLL_SECONDS)

    def _poll(self, seconds: float) -> None:
        """What stops a producer for good comes as an exception, and not always as the right one."""
        try:
            self._producer.poll(seconds)
        except KafkaException as e:
            self._fail(e.args[0])
        except SystemError as e:
            if not isinstance(e.__cause__, KafkaException):
                raise
            self._fail(e.__cause__.args[0])

    def _await_cause(self) -> None:
        """The reports of all that wasn't sent come behind the news that nothing will be; one of them says why."""
        deadline = time.monotonic() + _CAUSE_SECONDS
        while len(self._producer) and time.monotonic() < deadline:
            self._poll(_POLL_SECONDS)

    def _delivered(self, position: SpoolPosition, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(error, position, len(message.value() or b""))
        elif self._is_newer(message):
            self._pending.acknowledge(position)
            self._acknowledged = message

    def _is_newer(self, message: Message) -> bool:
        """Offsets only grow in a topic: where they don't it was made anew, and there are no schemas in it."""
        partition, offset = message.partition(), message.offset()
        if offset is None or partition is None:  # a retry that turned out to be in already
            return True
        if offset > self._offsets.get(partition, -1):
            self._offsets[partition] = offset
            return True
        if self.failure is None:
            self.failure = SendFailure(KafkaProblem(TOPIC, "it was deleted and made again"))
        return False

    def _fail(self, error: KafkaError, position: SpoolPosition | None = None, size: int = 0) -> None:
        """Of all that fail together one record is the cause, or several: the first of them is reported."""
        known = self.failure
        if known is None or (is_cause(error) and (not known.is_cause or _is_before(position, known.position))):
            self.failure = SendFailure(describe_error(error), position, size, is_cause=is_cause(error))

    def _observe_time(self) -> None:
        """The brokers' clock, where the topic's times are the brokers'."""
        message, self._acknowledged = self._acknowledged, None
        if message is None:
            return
        self._last_answer_time = time.monotonic()
        self._errors.clear()
        kind, millis = message.timestamp()
        if kind == TIMESTAMP_LOG_APPEND_TIME:
            self._observe(millis * 1000)

    def _confirm(self) -> None:
        """What was acknowledged counts, unless connections were lost meanwhile and somebody else may have taken them:
        then it counts once the same cluster answers again."""
        if self.acked_position == self._pending.acked_position:
            return
        seen = self._errors.losses
        if seen != self._losses_seen:
            cluster = self._cluster()
            if cluster is None:
                return
            if cluster != self.topic.cluster:
                words = f"cluster {self.topic.cluster} was written to, and now cluster {cluster} answers there"
                self.failure = SendFailure(KafkaProblem(CLUSTER, words))
                return
            self._losses_seen = seen
        self.acked_position = self._pending.acked_position

    def _cluster(self) -> str | None:
        try:
            return str(self._producer.list_topics(self.topic.name, timeout=_CLUSTER_SECONDS).cluster_id)
        except KafkaException:
            return None

    def _report_silence(self) -> None:
        silent = time.monotonic() - self._last_answer_time
        if not self._pending.is_empty and silent > _SILENCE_SECONDS:
            self._last_answer_time = time.monotonic()
            self._errors.add(KafkaProblem(SILENCE, self._errors.explain(f"no answer for {silent:.0f} s")))


def _is_before(position: SpoolPosition | None, other: SpoolPosition | None) -> bool:
    return position is not None and (other is None or position < other)
