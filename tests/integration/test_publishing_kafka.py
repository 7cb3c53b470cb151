"""An administrator's event on a real broker: by the key and with the headers that drivers' events have."""

from __future__ import annotations

from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Message

from headwater.cli import main
from headwater.events import JobName, LineageDeleted
from headwater.events.avro import Codec
from headwater.events.keys import KIND, key_of
from headwater.local import Service

pytestmark = pytest.mark.slow


def test_a_deletion_is_on_the_topic(kafka: Service, capsys: pytest.CaptureFixture[str]) -> None:
    topic = f"deletions-{uuid4()}"
    arguments = ["--job", "app", "--yes", "--bus", f"kafka://{kafka.address}/{topic}"]
    code = main(["lineage", "delete", "--scope", "data", *arguments, "--conf", "topic.replication=1"])
    assert (code, "it is on the bus" in capsys.readouterr().out) == (0, True)
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = next(each for each in iter(lambda: consumer.poll(60), None) if is_deletion(each))
    finally:
        consumer.close()
    event = Codec().decode(message.value() or b"")
    assert isinstance(event, LineageDeleted)
    assert event.of_job == JobName(name="app")
    assert message.key() == key_of(event)


def is_deletion(message: Message) -> bool:
    """Before the first event of a kind its schema is reported."""
    headers = message.headers() or []
    return (KIND, b"LineageDeleted") in list(headers.items() if isinstance(headers, dict) else headers)
