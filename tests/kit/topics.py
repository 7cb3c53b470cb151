"""Topics of a test's own on the broker that tests share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.local import KafkaServer
from tests.kit.waiting import PATIENCE, until

APPEND_TIME: Final[Mapping[str, str]] = {"message.timestamp.type": "LogAppendTime"}
"""As a topic of events should be: only then a reader knows by when everything has come."""


Broker: TypeAlias = KafkaServer | str | Mapping[str, Any]
"""A server, its address, or what a client needs to reach it."""
_PLAIN: Final = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 20,
    "reconnect.backoff.max.ms": 500,
}


def new_topic(servers: str, prefix: str, partitions: int = 1, settings: Mapping[str, str] = APPEND_TIME) -> str:
    """Create a topic, and return its name, which nobody else has."""
    return create_topic(servers, f"{prefix}-{uuid4()}", partitions, settings)


def create_topic(
    servers: str | AdminClient, name: str, partitions: int = 1, settings: Mapping[str, str] = APPEND_TIME
) -> str:
    """Create a topic of this name, and return the name."""
    # A client has to live until the answer is there.
    admin = servers if isinstance(servers, AdminClient) else AdminClient({"bootstrap.servers": servers})
    new = NewTopic(name, partitions, 1, config=dict(settings))
    admin.create_topics([new], request_timeout=PATIENCE)[name].result(PATIENCE)
    return name


def recreate_topic(admin: AdminClient, name: str, partitions: int) -> None:
    """Delete a topic and create it again: its name is free a moment after the older one is gone.

    A broker that is slow to answer may have created the topic nevertheless, so the topic's id tells.
    """
    older = _topic_id(admin, name)
    admin.delete_topics([name])[name].result()
    answers: list[BaseException | None] = []

    def is_created() -> bool:
        answers.append(admin.create_topics([NewTopic(name, partitions, 1)])[name].exception())
        return answers[-1] is None or _topic_id(admin, name) not in {None, older}

    until(is_created, lambda: f"the name of a topic that was deleted: {answers[-1]}", pause=0.1)


def _topic_id(admin: AdminClient, name: str) -> str | None:
    try:
        return str(admin.describe_topics(TopicCollection([name]))[name].result(PATIENCE).topic_id)
    except KafkaException:  # it isn't there
        return None


def messages_of(broker: Broker, topic: str) -> list[Message]:
    """Return what is committed on a topic now, partition after partition, each in its order, by any client of Kafka."""
    return sorted(each_message(broker, topic), key=lambda each: (each.partition(), each.offset()))


def each_message(broker: Broker, topic: str) -> Iterator[Message]:
    """Yield what is committed on a topic now, each partition in its order."""
    with closing(_client(broker)) as client:
        reading = set(client.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)
        client.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in reading])
        while reading:
            for message in until(partial(client.consume, 1_000, 0.2), lambda: f"the ends of partitions {reading}"):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    reading.discard(message.partition() or 0)
                else:
                    assert error.retriable() or not error.fatal(), error.str()


def values_of(broker: Broker, topic: str) -> list[bytes]:
    return [each.value() or b"" for each in messages_of(broker, topic)]


def ends_of(broker: Broker, topic: str) -> dict[int, int]:
    """Return the end of each partition that has one other than 0."""
    with closing(_client(broker)) as client:
        numbers = client.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        ends = {
            each: client.get_watermark_offsets(TopicPartition(topic, each), timeout=PATIENCE)[1] for each in numbers
        }
    return {number: end for number, end in ends.items() if end}


def _client(broker: Broker) -> Consumer:
    if isinstance(broker, str):
        broker = {"bootstrap.servers": broker}
    config = broker if isinstance(broker, Mapping) else broker.client_config()
    return Consumer({**config, **_PLAIN, "group.id": str(uuid4())})
