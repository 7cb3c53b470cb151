"""One topic of Kafka, as whoever reads it sees it: which one it is, what it has, and its records as they are.

All that reads a topic does so by `TopicClient`: a member of a consumer group (kafka), a reader from offset to offset
(kafka_range), and whoever gives a group its first offsets (group_start).

Logs what librdkafka reports, without repetitions: it reports every attempt to connect.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from headwater.consumers.sources.api import BusRecord
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.events.redaction import redact
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
_AGAIN_SECONDS: Final = 600.0
_MOST: Final = 1_000
_NUMBERS: Final = re.compile(r"\d+")


class RepeatFilter:
    """Recognizes messages that were logged recently. Numbers in them, such as durations, make no difference."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}

    def is_new(self, text: str) -> bool:
        now, about = self._clock(), _NUMBERS.sub("0", text)
        if now - self._said.get(about, -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return False
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said[about] = now
        return True


class LibrdkafkaLogger:
    """The `logger` of a client. librdkafka calls it while the client is polled, on that thread."""

    def __init__(self, once: RepeatFilter | None = None) -> None:
        self._once = once or RepeatFilter()

    def log(self, level: int, text: str, *arguments: object) -> None:
        line = text % arguments
        shown = level if self._once.is_new(line) else logging.DEBUG
        if _LOG.isEnabledFor(shown):
            _LOG.log(shown, "%s", redact(line))


ASK_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 2.0
_ELECTION_SECONDS: Final = 0.1
_AHEAD_KILOBYTES: Final = "16384"
"""How much the client prefetches. This limits a batch, however large events are."""
_FIXED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
}
"""Settings that the guarantees of whoever reads depend on."""
_ABSENT: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})  # noqa: SLF001 - its name
_LIKE_KAFKA: Final = str.maketrans("+/", "-_")
"""librdkafka prints an id in plain base64, Kafka and its Java clients in the one for URLs."""
UNREADABLE_HEADERS: Final = ("headwater.headers", b"not readable: the name of one isn't UTF-8")
"""Stands in the place of headers that can't be read."""
_CALL_HEADERS: Final[Callable[[Message], Sequence[tuple[str, bytes | None]] | None]] = methodcaller("headers")


class ClientErrors:
    """The errors that a client reports beside its answers. It reports connection problems only here."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._last = ""
        self._repeat_filter = RepeatFilter()
        self.outage: str | None = None
        """Why nothing can arrive, or None. The client reports only the loss of all brokers, not of a single one."""

    def receive(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - its name
            self.outage = f"{self._topic}: no broker answers"
        self._last = error.str()
        if self._repeat_filter.is_new(self._last):
            _LOG.warning("Kafka: %s", self._last)

    def explain(self, error: KafkaError) -> TransientError:
        """Return what an error says, with the connection problem behind it."""
        if error.code() in _ABSENT:
            return TransientError(f"there is no topic {self._topic} yet: the first driver makes it")
        cause = f" ({self._last})" if self._last and self._last != error.str() else ""
        return TransientError(f"{self._topic}: {error.str()}{cause}")


class TopicClient:
    """A client that reads a topic, and one that asks about it; for one thread.

    Kafka's client knows topics by name. One that is deleted and made again is another one, by its id. Methods raise a
    KafkaException if no broker answers; `explained` translates it.
    """

    def __init__(
        self, settings: Mapping[str, Any], topic: str, group: str, more: Mapping[str, str] | None = None
    ) -> None:
        """`more` are settings of the one that reads, over all others."""
        broken = sorted(key for key, value in _FIXED.items() if settings.get(key, value) != value)
        if broken:
            raise ConfigurationError(
                f"{broken[0]} can't be set: offsets are the store's, and nothing may be passed over"
            )
        self.name: Final = topic
        self.cluster = ""
        """The cluster that answered last; empty until one has."""
        self.id = ""
        """The topic that is read; empty until it is known."""
        self.errors: Final = ClientErrors(topic)
        self._partitions: dict[int, BusPartition] = {}
        asking: dict[str, Any] = {**settings, "error_cb": self.errors.receive, "logger": LibrdkafkaLogger()}
        reading = {"queued.max.messages.kbytes": _AHEAD_KILOBYTES, **asking, **_FIXED, "group.id": group}
        try:
            self.consumer: Consumer = Consumer({**reading, **(more or {}), "logger": LibrdkafkaLogger()})
            self._admin = AdminClient(asking)
        except KafkaException as e:
            raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e

    @contextmanager
    def explained(self) -> Generator[None]:
        """Raise a TransientError in the place of what the client raises."""
        try:
            yield
        except KafkaException as e:
            self._admin.poll(0)  # nobody polls the other client while no broker answers; this one says why
            raise self.errors.explain(e.args[0]) from e

    def partition(self, number: int) -> BusPartition:
        """Return the partition of this number, the same object for each of its records."""
        known = self._partitions.get(number)
        if known is None or known[:2] != (self.cluster, self.id):
            known = self._partitions[number] = BusPartition(self.cluster, self.id, number)
        return known

    def place(self, number: int, offset: int | None = None) -> TopicPartition:
        """Return a partition as the client writes it."""
        return TopicPartition(self.name, number) if offset is None else TopicPartition(self.name, number, offset)

    def describe(self) -> list[int]:
        """Learn which cluster answers, and return the numbers of the topic's partitions: none where there is none."""
        found = self.consumer.list_topics(self.name, timeout=ASK_SECONDS)
        self.cluster = str(found.cluster_id)
        about = found.topics[self.name]
        if about.error is not None and about.error.code() not in _ABSENT:
            raise KafkaException(about.error)
        return sorted(about.partitions)

    def fetch_id(self) -> str:
        """Return the id of the topic that has the name now, as Kafka's own tools print it."""
        asked = self._admin.describe_topics(TopicCollection([self.name]), request_timeout=ASK_SECONDS)
        return str(asked[self.name].result().topic_id).translate(_LIKE_KAFKA)

    def limits(self, number: int, timeout: float = ASK_SECONDS) -> tuple[int, int]:
        """Return the first offset of a partition and its end."""
        until = time.monotonic() + timeout
        while True:
            try:
                low, high = self.consumer.get_watermark_offsets(self.place(number), timeout=timeout)
            except KafkaException as e:  # noqa: PERF203 - it waits for a broker
                if e.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() >= until:
                    raise
                time.sleep(_ELECTION_SECONDS)  # the topic was just made, or its leader just went: ask who leads now
                self.consumer.list_topics(self.name, timeout=timeout)
            else:
                return int(low), int(high)

    def end_offsets(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the end of each partition. It takes one request, on a connection of its own: on the consumer's each
        would wait behind a fetch that waits for records."""
        return self._offsets(numbers, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def first_offsets(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the first offset of each partition."""
        return self._offsets(numbers, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def _offsets(self, numbers: Collection[int], which: OffsetSpec) -> dict[int, int]:
        if not numbers:
            return {}
        futures = self._admin.list_offsets(
            {self.place(number): which for number in numbers}, request_timeout=LOOK_SECONDS
        )
        try:
            return {place.partition: int(future.result().offset) for place, future in futures.items()}
        except KafkaException:
            self._admin.list_topics(self.name, timeout=LOOK_SECONDS)  # else it goes on asking the former leaders
            raise

    def committed(self, numbers: Collection[int]) -> dict[int, int]:
        """Return the offsets that the group has in Kafka, without partitions that have none."""
        asked = [self.place(number) for number in numbers]
        found = self.consumer.committed(asked, timeout=ASK_SECONDS) if asked else ()
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def poll(self, timeout: float) -> Message | None:
        """Return the next message, and serve the callbacks of both clients."""
        self._admin.poll(0)
        return self.consumer.poll(timeout)

    def close(self) -> None:
        """Let go of both clients, which would connect again and again for as long as they live. Only once nothing is
        asked any more: librdkafka aborts the process if an answer comes while a client is destroyed."""
        try:
            self.consumer.close()
        except (KafkaException, RuntimeError, HeadwaterError) as e:  # what its callbacks raise, too
            _LOG.debug("%s: closing: %s", self.name, e)
        if hasattr(self, "_admin"):
            del self._admin


def bus_record(message: Message, partition: BusPartition) -> BusRecord:
    """Return a message as a record, whatever its bytes are. It has a time only where the broker sets it.

    All that reads a topic goes through this function, because anybody who may write to it chooses each of those bytes.
    """
    kind, millis = message.timestamp()
    append_time = millis * 1_000 if kind == TIMESTAMP_LOG_APPEND_TIME else None
    value, offset = message.value() or b"", message.offset() or 0
    return BusRecord(value, partition, offset, append_time, message.key(), _headers(message))


def _headers(message: Message) -> tuple[tuple[str, bytes], ...]:
    """Return the headers, or one that says why they can't be read.

    The client makes text of the names. Where one isn't UTF-8, it returns a list with holes and an exception at once.
    Calls out of C notice that and raise a SystemError. Python's own calls don't notice once they are specialized
    (3.11 and later), and who touches such a hole crashes. So the client is called out of C, and asked once.
    """
    try:
        found = _CALL_HEADERS(message) or ()
    except (SystemError, UnicodeDecodeError):
        return (UNREADABLE_HEADERS,)
    return tuple([(name, value or b"") for name, value in found])
