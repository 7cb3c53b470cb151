"""What a writer couldn't store is on a topic of Kafka's too, as it was, with what is known of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headwater.cli.app import main
from headwater.consumers.sources.dead_letter_topic import DeadLetterTopic
from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.writer.dead_letter_mirror import DeadLetterMirror
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.plain_pipeline import PlainPipeline
from headwater.consumers.writer.runner import Runner
from headwater.errors import TransientError
from headwater.events import Committed, DatasetId, JobName, Output, TableName
from headwater.events.avro import Codec
from headwater.lineage.bulk import DeadLetter
from headwater.lineage.store import Store, open_store
from headwater.local import KafkaServer
from tests.kit.topics import create_topic, new_topic
from tests.kit.waiting import attempts, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.kafka,
    pytest.mark.sample(1, keep=("test_letters_are_on_their_topic_as_they_were",)),
]
PATIENCE = 60.0
BAD: list[tuple[bytes | None, bytes, list[tuple[str, str | bytes | None]]]] = [
    (b"key", b"no event", [("made-by", b"a hand")]),
    (None, b"", []),
    (b"k2", b"\0" * 40, []),
]


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = new_topic(kafka.address, "letters")
    client = Producer({**kafka.client_config(), "enable.idempotence": True})
    for key, value, headers in BAD:
        client.produce(name, value, key, headers=headers)
    assert client.flush(PATIENCE) == 0
    return name


@pytest.fixture
def store(kafka: KafkaServer, topic: str, tmp_path: Path) -> Iterator[Store]:
    """With the letters of that topic."""
    with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        settings = settings_of(kafka)
        source = KafkaSource(settings, topic, "g", lambda cluster: opened.bulk.offsets("g", cluster))
        runner = Runner(source, PlainPipeline(opened.bulk, "g", "kafka", topic), until_end=True)
        try:
            asyncio.run(asyncio.wait_for(runner.run(), PATIENCE))
        finally:
            source.close()
        assert runner.metrics.dead_letters == len(BAD)
        yield opened


def settings_of(kafka: KafkaServer) -> dict[str, str]:
    return {name: str(value) for name, value in kafka.client_config().items()}


def mirrored(kafka: KafkaServer, topic: str, store: Store) -> int:
    made = DeadLetterTopic({**settings_of(kafka), "session.timeout.ms": "6000"}, f"{topic}.dead-letters")
    try:
        return DeadLetterMirror(store.bulk, topic, lambda: made, WriterMetrics()).send_pending()
    finally:
        made.close()


def was_sent(sender: DeadLetterTopic, letter: DeadLetter) -> bool:
    try:
        sender.cluster()
        sender.send([letter])
    except TransientError:
        return False
    return True


def headers(message: Message) -> dict[str, str]:
    answer: Any = message.headers()
    return {name: value.decode() for name, value in answer}


def found(kafka: KafkaServer, topic: str) -> list[Message]:
    client = Consumer({**kafka.client_config(), "group.id": str(uuid4())})
    place = TopicPartition(f"{topic}.dead-letters", 0, 0)
    _, high = client.get_watermark_offsets(place, timeout=30)
    client.assign([place])
    messages = [client.poll(PATIENCE) for _ in range(high)]
    client.close()
    return [each for each in messages if each is not None]


def test_letters_are_on_their_topic_as_they_were(kafka: KafkaServer, topic: str, store: Store) -> None:
    assert (mirrored(kafka, topic, store), mirrored(kafka, topic, store)) == (3, 0)
    messages = found(kafka, topic)
    assert [(each.key(), each.value()) for each in messages] == [(key, value) for key, value, _ in BAD]
    topic_id = next(iter(store.bulk.offsets("g"))).topic
    answer = headers(messages[0])
    assert answer.pop("headwater.error")
    assert int(answer.pop("headwater.append-time")) > 0
    assert answer == {
        "made-by": "a hand",
        "headwater.reason": "UNDECODABLE",
        "headwater.topic": topic,
        "headwater.topic-id": topic_id,
        "headwater.partition": "0",
        "headwater.offset": "0",
    }


def test_what_the_topic_has_no_room_for_is_reported_without_its_bytes(
    kafka: KafkaServer, topic: str, store: Store
) -> None:
    name = f"{topic}.dead-letters"
    create_topic(kafka.address, name, settings={"max.message.bytes": "1000"})
    letter = next(store.bulk.dead_letters())[1]
    sender = DeadLetterTopic(settings_of(kafka), name)
    sender.send([letter, replace(letter, data=b"x" * 5_000), letter])
    sender.close()
    values = [each.value() for each in found(kafka, topic)]
    assert sorted(values, key=lambda value: value or b"") == [None, letter.data, letter.data]
    (short,) = [each for each in found(kafka, topic) if each.value() is None]
    assert "5000 bytes" in headers(short)["headwater.left-out"]


def test_a_topic_that_went_away_is_made_again(kafka: KafkaServer, topic: str, store: Store) -> None:
    name = f"{topic}.dead-letters"
    sender = DeadLetterTopic(settings_of(kafka), name)
    letter = next(store.bulk.dead_letters())[1]
    sender.cluster()
    admin = AdminClient(kafka.client_config())
    admin.delete_topics([name])[name].result()
    until(lambda: was_sent(sender, letter), "a topic that is made again", 2 * PATIENCE, 0.1)
    sender.close()
    assert found(kafka, topic)


def test_what_the_store_of_a_catalog_refused_is_there_too(kafka: KafkaServer, tmp_path: Path) -> None:
    topic, table = new_topic(kafka.address, "letters"), TableName(catalog="lake", database="d", table="t")
    output = Output(dataset=DatasetId(namespace="s3://x", name="t"), table=table, snapshot=1)
    stamp = {"producer": uuid4(), "sequence": 1, "family_sequence": 1}
    commit = Committed(job=JobName(name="etl"), barrier=1, outputs=(output,)).model_copy(update=stamp)
    data = Codec().encode(commit)
    client = Producer({**kafka.client_config(), "enable.idempotence": True})
    client.produce(topic, data)
    assert client.flush(PATIENCE) == 0
    stores = ["--store", f"{tmp_path}/store.db", "--catalog-store", f"lake={tmp_path}/lake.db"]
    with open_store(f"sqlite:///{tmp_path}/lake.db") as lake:
        with lake.engine.begin() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER no_commits BEFORE INSERT ON commits BEGIN SELECT RAISE(ABORT, 'constraint failed'); END"
            )
        for _ in attempts(
            "letters that are sent", PATIENCE
        ):  # what one couldn't send before it ended, the next one does
            assert main(["writer", "run", "--bus", f"kafka://{kafka.address}/{topic}", *stores, "--until-end"]) == 0
            ((_, letter),) = lake.bulk.dead_letters()
            if not lake.bulk.unsent_dead_letters(letter.partition.cluster, topic, 1):
                break
    assert [each.value() for each in found(kafka, topic)] == [data]
