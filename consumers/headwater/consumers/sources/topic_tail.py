"""Reads the newest records of a topic without taking part in a consumer group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from headwater.consumers.sources.api import BusRecord
from headwater.consumers.sources.kafka_client import bus_record
from headwater.consumers.sources.kafka_topic import TopicIdentity
from headwater.consumers.sources.librdkafka_log import LibrdkafkaLogger
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.lineage.bulk import BusPartition

_ASK_SECONDS: Final = 20.0
_SECONDS: Final = 60.0
_AT_ONCE: Final = 1_000


def read_newest(settings: Mapping[str, str], topic: str, most: int) -> Iterator[list[BusRecord]]:
    """Yield the newest records, at most so many of each partition, each partition's in their order."""
    more: dict[str, Any] = {"group.id": "headwater-looks", "enable.auto.commit": "false", "logger": LibrdkafkaLogger()}
    try:
        client = Consumer({**settings, **more, "isolation.level": "read_committed"})
    except KafkaException as e:
        raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e
    try:
        with closing(client):
            yield from _read(client, dict(settings), topic, most)
    except KafkaException as e:
        raise TransientError(f"{topic}: {e.args[0].str()}") from e


def _read(client: Consumer, settings: Mapping[str, Any], topic: str, most: int) -> Iterator[list[BusRecord]]:
    found = client.list_topics(topic, timeout=_ASK_SECONDS)
    about = found.topics.get(topic)
    if about is None or about.error is not None:
        raise TerminalError(f"there is no topic {topic}: name the one that drivers write to, kafka://HOST:PORT/TOPIC")
    with closing(TopicIdentity({**settings, "logger": LibrdkafkaLogger()}, topic)) as asked:
        identity = asked.fetch_id()
    places = [TopicPartition(topic, number) for number in sorted(about.partitions)]
    limits = {each.partition: client.get_watermark_offsets(each, timeout=_ASK_SECONDS) for each in places}
    ends = {number: int(high) for number, (low, high) in limits.items() if high > low}
    client.assign([TopicPartition(topic, number, max(limits[number][0], end - most)) for number, end in ends.items()])
    until = time.monotonic() + _SECONDS
    while ends and time.monotonic() < until:
        messages = client.consume(_AT_ONCE, 0.2)
        records = [_record(each, str(found.cluster_id), identity) for each in messages]
        if records:
            until = time.monotonic() + _SECONDS
            yield records
        for place in client.position([TopicPartition(topic, number) for number in ends]):
            if place.offset >= ends[place.partition]:
                del ends[place.partition]
    if ends:
        raise TransientError(f"{topic}: nothing came for {_SECONDS:g} s, though there is more: is a broker away?")


def _record(message: Message, cluster: str, topic: str) -> BusRecord:
    if message.error() is not None:
        raise KafkaException(message.error())
    return bus_record(message, BusPartition(cluster, topic, message.partition() or 0))
