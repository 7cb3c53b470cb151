"""Everything that is on a topic, read by a plain consumer of Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, TopicPartition

from tests.kit.waiting import attempts

PATIENCE = 60.0


@dataclass(frozen=True)
class Copy:
    """One message."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: Mapping[str, bytes]
    time: int
    """In milliseconds."""
    is_broker_time: bool


def copies_on(config: Mapping[str, Any], topic: str) -> list[Copy]:
    """All committed messages from the beginning up to now, partition after partition, each in its order."""
    consumer = Consumer(
        {
            **config,
            "group.id": f"reader-{uuid.uuid4()}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            "reconnect.backoff.max.ms": 500,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        found = _read_to_the_ends(consumer, set(partitions))
    finally:
        consumer.close()
    return sorted(found, key=lambda copy: (copy.partition, copy.offset))


def _read_to_the_ends(consumer: Consumer, reading: set[int]) -> list[Copy]:
    found: list[Copy] = []
    for _ in attempts(lambda: f"the ends of partitions {reading}", PATIENCE):
        if not reading:
            break
        for message in consumer.consume(1000, timeout=0.2):
            error = message.error()
            if error is None:
                found.append(_copy(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                reading.discard(message.partition())
            else:
                assert error.retriable() or not error.fatal(), error.str()
    return found


def _copy(message: Any) -> Copy:
    kind, millis = message.timestamp()
    return Copy(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value() or b"",
        headers=dict(message.headers() or []),
        time=millis,
        is_broker_time=kind == TIMESTAMP_LOG_APPEND_TIME,
    )
