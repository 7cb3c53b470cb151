"""Makes the client of a consumer group with the settings that the writer's guarantees depend on, and keeps what it
reports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message

from headwater.consumers.sources.api import BusRecord
from headwater.consumers.sources.kafka_topic import TopicIdentity
from headwater.consumers.sources.librdkafka_log import LibrdkafkaLogger, RepeatFilter
from headwater.errors import ConfigurationError
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
_AHEAD_KILOBYTES: Final = "16384"
"""How much the client prefetches. This limits a batch, however large events are."""
_FIXED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
}
"""Settings that the writer's guarantees depend on."""
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

    def explain(self, error: KafkaError) -> str:
        """Return what an error says, with the connection problem behind it."""
        cause = f" ({self._last})" if self._last and self._last != error.str() else ""
        return f"{self._topic}: {error.str()}{cause}"


def open_client(
    settings: Mapping[str, str], topic: str, group: str, errors: ClientErrors
) -> tuple[Consumer, TopicIdentity]:
    """Return a client of a consumer group, and one that asks about the topic."""
    broken = sorted(key for key, value in _FIXED.items() if settings.get(key, value) != value)
    if broken:
        raise ConfigurationError(f"{broken[0]} can't be set: offsets are the store's, and nothing may be passed over")
    asked: dict[str, Any] = {**settings, "error_cb": errors.receive, "logger": LibrdkafkaLogger()}
    joined = {
        "partition.assignment.strategy": "cooperative-sticky",
        "queued.max.messages.kbytes": _AHEAD_KILOBYTES,
        **asked,
        **_FIXED,
        "group.id": group,
    }
    if joined.get("group.protocol") == "consumer":  # brokers assign there
        joined.pop("partition.assignment.strategy")
    try:
        return Consumer({**joined, "logger": LibrdkafkaLogger()}), TopicIdentity(asked, topic)
    except KafkaException as e:
        raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e


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
