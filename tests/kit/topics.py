"""Topics of a test's own on the broker that tests share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import uuid4

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.local import KafkaServer
from tests.kit.waiting import PATIENCE, attempts, until

APPEND_TIME: Final[Mapping[str, str]] = {"message.timestamp.type": "LogAppendTime"}
"""As a topic of events should be: only then a reader knows by when everything has come."""


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
    """Delete a topic and create it again: its name is free a moment after the older one is gone."""
    admin.delete_topics([name])[name].result()
    until(
        lambda: admin.create_topics([NewTopic(name, partitions, 1)])[name].exception() is None,
        "the name of a topic that was deleted",
        pause=0.1,
    )


def messages_of(broker: KafkaServer | str, topic: str) -> list[Message]:
    """All that is there, each partition in its order, by what any client of Kafka does. An address names a broker."""
    config = {"bootstrap.servers": broker} if isinstance(broker, str) else broker.client_config()
    consumer = Consumer({**config, "group.id": str(uuid4())})
    partitions = [
        TopicPartition(topic, each) for each in consumer.list_topics(topic, PATIENCE).topics[topic].partitions
    ]
    ends = {each.partition: consumer.get_watermark_offsets(each, PATIENCE) for each in partitions}
    consumer.assign([TopicPartition(topic, each, low) for each, (low, _) in ends.items()])
    found: list[Message] = []
    for _ in attempts(f"all messages of {ends}", PATIENCE):
        if len(found) >= sum(high - low for low, high in ends.values()):
            break
        found += [each for each in consumer.consume(500, timeout=0.1) if each.error() is None]
    consumer.close()
    return sorted(found, key=lambda each: (each.partition(), each.offset()))
