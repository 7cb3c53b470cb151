"""Everything that is on a topic, read by a plain consumer of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from tests.kit.topics import messages_of


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
    return [_copy(each) for each in messages_of(config, topic)]


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
