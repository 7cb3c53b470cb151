"""What lies on a real topic: keys, partitions, headers, schemas, times; and what a topic is made with."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from zlib import crc32

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events.avro import Codec
from headwater.events.avro.registry import Confluent, HttpRegistry
from headwater.events.clock import wall_micros
from headwater.local import KafkaServer, Service
from headwater.publishers.kafka import KafkaFactory, KafkaListener
from headwater.spi import EventRecord, RecordBatch, RefusedRecordError, SpoolPosition
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch
from headwater.testing.memory import MemoryContext
from tests.kit.registry_server import schema_registry
from tests.kit.topics import APPEND_TIME, create_topic, messages_of
from tests.kit.waiting import PATIENCE, attempts, until

pytestmark = [pytest.mark.kafka, pytest.mark.sample(9)]

MINUTE = 60_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaServer]:
    with KafkaServer() as server:
        yield server


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def topic() -> str:
    return f"published-{uuid.uuid4()}"


def listener_on(broker: Service, topic: str, executor: Executor, **more: str) -> tuple[KafkaListener, MemoryContext]:
    context = MemoryContext("kafka", {"bootstrap.servers": broker.address, "topic": topic, **more}, executor)
    return KafkaFactory().create(context), context


def hand(listener: KafkaListener, records: RecordBatch) -> None:
    """Until all of them are acknowledged."""
    for _ in attempts("a listener that takes records", PATIENCE):
        with suppress(TransientError):
            listener.handle(records)
            break
    assert listener.flush(PATIENCE) == records.end


def refusal_of(listener: KafkaListener, records: RecordBatch) -> tuple[HeadwaterError, SpoolPosition | None]:
    """What is raised while these are handed over, and how far it had answered before that."""
    answer = None
    try:
        answer = listener.handle(records)
        answer = listener.flush(PATIENCE)
    except HeadwaterError as e:
        return e, answer
    raise AssertionError("nothing was refused")


def fault_of(listener: KafkaListener) -> HeadwaterError:
    """What it raises in the end, once it has asked."""
    for _ in attempts("an error for good", PATIENCE):
        with pytest.raises(HeadwaterError) as caught:
            listener.handle(batch(EXAMPLES))
        if isinstance(caught.value, TerminalError):
            break
    return caught.value


def kind_of(message: Message) -> str:
    return dict(message.headers() or [])["kind"].decode()  # type: ignore[union-attr]


def test_a_key_has_a_partition_and_each_partition_is_told_the_schemas_first(
    broker: KafkaServer, executor: Executor, topic: str
) -> None:
    listener, _ = listener_on(broker, topic, executor, **{"topic.partitions": "3"})
    hand(listener, batch(EXAMPLES))
    hand(listener, batch(EXAMPLES, first=100_000))
    assert listener.close(PATIENCE)
    messages = messages_of(broker, topic)
    assert len({message.partition() for message in messages}) == 3
    for _, partition in groupby(messages, Message.partition):
        for message in partition:
            value = message.value()
            assert isinstance(value, bytes)
            key = message.key()
            assert isinstance(key, bytes)
            assert message.partition() == crc32(key) % 3


def test_the_brokers_time_reaches_the_producers_clock(broker: KafkaServer, executor: Executor, topic: str) -> None:
    listener, context = listener_on(broker, topic, executor)
    before = wall_micros()
    hand(listener, batch(EXAMPLES))
    assert listener.close(PATIENCE)
    assert context.clock.observed
    assert all(abs(each - before) < MINUTE for each in context.clock.observed)


def test_times_that_are_the_producers_own_are_no_news(broker: KafkaServer, executor: Executor, topic: str) -> None:
    listener, context = listener_on(broker, topic, executor, **{"topic.config.message.timestamp.type": "CreateTime"})
    hand(listener, batch(EXAMPLES))
    assert listener.close(PATIENCE)
    assert context.clock.observed == []


def test_a_topic_is_made_as_it_has_to_be(broker: KafkaServer, executor: Executor, topic: str) -> None:
    settings = {"topic.partitions": "4", "topic.retention": "2 days", "topic.config.segment.bytes": "1048576"}
    listener, _ = listener_on(broker, topic, executor, **settings)
    hand(listener, batch(EXAMPLES[:1]))
    assert listener.close(PATIENCE)
    client = AdminClient({"bootstrap.servers": broker.address})
    assert len(client.list_topics(topic, timeout=PATIENCE).topics[topic].partitions) == 4
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = client.describe_configs([resource])[resource].result()
    assert {
        name: found[name].value
        for name in ("message.timestamp.type", "cleanup.policy", "retention.ms", "segment.bytes")
    } == {
        "message.timestamp.type": "LogAppendTime",
        "cleanup.policy": "delete",
        "retention.ms": "172800000",
        "segment.bytes": "1048576",
    }


def test_a_topic_that_may_not_be_made_is_asked_for(broker: KafkaServer, executor: Executor, topic: str) -> None:
    listener, _ = listener_on(broker, topic, executor, **{"topic.create": "false"})
    words = str(fault_of(listener))
    assert f"there is no topic {topic} at {broker.address}, and topic.create is false" in words
    assert f"kafka-topics.sh --bootstrap-server {broker.address} --create --topic {topic} --partitions 6" in words
    assert "--config message.timestamp.type=LogAppendTime --config cleanup.policy=delete" in words
    assert topic not in AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=PATIENCE).topics


def test_a_topic_that_cannot_be_made_is_reported_with_the_reason(
    broker: KafkaServer, executor: Executor, topic: str
) -> None:
    listener, _ = listener_on(broker, topic, executor, **{"topic.replication": "3"})
    words = str(fault_of(listener))
    assert "can't be made" in words
    assert "--replication-factor 3" in words


def test_a_topic_that_loses_events_is_warned_of(
    broker: KafkaServer, executor: Executor, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker.address, topic, settings={"cleanup.policy": "compact"})
    listener, _ = listener_on(broker, topic, executor)
    with caplog.at_level("WARNING"):
        hand(listener, batch(EXAMPLES[:1]))
    assert listener.close(PATIENCE)
    assert "has cleanup.policy=compact, where delete is needed: kafka-configs.sh" in caplog.text
    assert "has message.timestamp.type=CreateTime, where LogAppendTime is needed" in caplog.text


@pytest.mark.parametrize("others", [3, 2_000])
def test_what_was_acknowledged_beside_a_failure_is_no_answer_yet(
    broker: KafkaServer, executor: Executor, topic: str, others: int
) -> None:
    """The bus hears of the failure only, and hands all of it over again, perhaps cut into other batches. Of many
    records most are still to be taken when the broker refuses one: why it did is reported all the same."""
    listener, _ = listener_on(broker, topic, executor)
    known, (small,) = batch(EXAMPLES[:1]), batch(EXAMPLES[:1], first=20).records
    create_topic(broker.address, topic, settings={"max.message.bytes": "6000", **APPEND_TIME})
    hand(listener, known)

    def at(position: int, data: bytes) -> EventRecord:
        return EventRecord(SpoolPosition(position), data, small.key, small.headers, small.decode)

    def found() -> int:
        """Events on the topic; a sender that begins anew tells their schema again."""
        return sum(kind_of(each) == EXAMPLES[0].kind for each in messages_of(broker, topic))

    large = at(50, small.data + os.urandom(20_000))
    records = [at(20, small.data), at(30, small.data), large, *(at(60 + n, small.data) for n in range(others))]
    error, heard = HeadwaterError(), SpoolPosition(0)
    while not isinstance(error, RefusedRecordError):
        error, answer = refusal_of(listener, RecordBatch(records))
        heard = max(heard, answer or heard)  # it may have answered before the broker refused one
    assert heard < large.position
    assert error.position == large.position, "the others are to be delivered without it"
    assert f"an event of {len(large.data)} bytes, and 6000 is the topic's limit" in str(error)
    answers: list[SpoolPosition | None] = []
    for record in [each for each in records[:2] if each.position > heard]:
        while True:
            with suppress(TransientError):
                answers.append(listener.handle(RecordBatch([record])))
                break
        answers.append(listener.flush(PATIENCE))
        assert answers[-1] == record.position
        assert all(each is None or each <= record.position for each in answers)
    before = found()
    hand(listener, RecordBatch(records[3:]))
    assert found() == before + others, "what stands behind it is in, once more at most"
    assert listener.close(PATIENCE)


def test_another_cluster_than_the_one_that_is_meant_gets_nothing(
    broker: KafkaServer, executor: Executor, topic: str
) -> None:
    listener, context = listener_on(broker, topic, executor, **{"cluster.id": "not-this-one"})
    for _ in attempts("words of another cluster", PATIENCE):
        with pytest.raises(TransientError) as caught:
            listener.handle(batch(EXAMPLES))
        words = str(caught.value)
        if "another cluster" in words:
            break
    assert "cluster.id names not-this-one" in words
    assert not listener.close(1)
    assert "cluster" in {cause for cause, _ in context.problems}
    assert topic not in AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=PATIENCE).topics


def test_with_a_registry_events_are_framed_for_it(broker: KafkaServer, executor: Executor, topic: str) -> None:
    with schema_registry() as registry:
        listener, _ = listener_on(broker, topic, executor, **{"schema.registry.url": registry.url})
        hand(listener, batch(EXAMPLES))
        assert listener.close(PATIENCE)
        messages = messages_of(broker, topic)
        reader = Codec(Confluent(HttpRegistry({"url": registry.url}), topic))
        decoded = [reader.decode(bytes(message.value() or b"")) for message in messages]
        subjects = set(registry.subjects)
    assert sorted(map(repr, decoded)) == sorted(map(repr, EXAMPLES))
    assert all(bytes(message.value() or b"")[:1] == b"\0" for message in messages)
    assert f"{topic}-headwater.events.Committed" in subjects


def test_a_registry_that_is_away_holds_events_back_and_loses_none(
    broker: KafkaServer, executor: Executor, topic: str
) -> None:
    with schema_registry() as registry:
        registry.failure = (503, "away")
        listener, _ = listener_on(broker, topic, executor, **{"schema.registry.url": registry.url})
        until(lambda: "the schema registry can't register" in what_holds_it_back(listener), "the registry", PATIENCE)
        registry.failure = None
        hand(listener, batch(EXAMPLES))
        assert listener.close(PATIENCE)
    assert len(messages_of(broker, topic)) == len(EXAMPLES)


def what_holds_it_back(listener: KafkaListener) -> str:
    with pytest.raises(TransientError) as caught:
        listener.handle(batch(EXAMPLES))
    return str(caught.value)


def test_a_registry_that_refuses_a_schema_is_for_somebody_to_see_to(
    broker: KafkaServer, executor: Executor, topic: str
) -> None:
    with schema_registry() as registry:
        registry.failure = (409, "incompatible")
        listener, _ = listener_on(broker, topic, executor, **{"schema.registry.url": registry.url})
        assert "the schema registry refuses" in str(fault_of(listener))


def test_a_registry_needs_an_address(broker: KafkaServer, executor: Executor, topic: str) -> None:
    with pytest.raises(ConfigurationError, match=r"schema\.registry\.url"):
        listener_on(broker, topic, executor, **{"schema.registry.timeout": "3"})
