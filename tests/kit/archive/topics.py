"""A topic with records of many kinds for tests of the archive, and what a plain client reads of it: the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer

from headwater.consumers.sources import BusRecord
from tests.kit.archive.records import DATA
from tests.kit.topics import messages_of

Truth = dict[tuple[int, int], tuple[bytes, bytes | None, tuple[tuple[str, bytes], ...], int]]
"""Value, key, headers and append time in microseconds, by partition and offset."""


def send(address: str, topic: str, numbers: Sequence[int], partitions: int) -> None:
    """Send events, and now and then something that is none."""
    client = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number in numbers:
        data = b"no event" if number % 50 == 7 else DATA[number % len(DATA)]
        key = None if number % 13 == 0 else b"default/etl_%d" % (number % 10)
        headers: list[tuple[str, str | bytes | None]] = [("kind", b"x"), ("sequence", b"%d" % number)]
        client.produce(topic, data, key=key, headers=headers[: number % 3], partition=number % partitions)
    assert client.flush(60) == 0


def truth(address: str, topic: str) -> Truth:
    """Everything that is on the topic."""
    found: Truth = {}
    for message in messages_of(address, topic):
        pairs: Any = message.headers() or ()
        key: Any = message.key()
        place = (message.partition() or 0, message.offset() or 0)
        time = message.timestamp()[1] * 1_000
        found[place] = (message.value() or b"", key, tuple((name, value) for name, value in pairs), time)
    return found


def as_truth(records: Sequence[BusRecord]) -> Truth:
    """Records of a source in the same form. An AssertionError if one is there twice."""
    found: Truth = {}
    for each in records:
        place = (each.partition.number, each.offset)
        assert place not in found, f"{place} is there twice"
        assert each.append_time is not None
        found[place] = (each.data, each.key, each.headers, each.append_time)
    return found
