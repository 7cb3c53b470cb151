"""A topic that is read from offsets to offsets on a real broker: what lies between, and what was there and is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headwater.consumers.replay.kafka_range import KafkaRange, read_newest
from headwater.consumers.replay.ranges import Positions
from headwater.errors import TerminalError, TransientError
from headwater.local import KafkaServer
from tests.kit.topics import new_topic, recreate_topic
from tests.kit.waiting import attempts, until

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

SETTINGS = {"log_level": "0"}


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    return new_topic(kafka.address, "range", 2)


@pytest.fixture
def source(kafka: KafkaServer, topic: str) -> Iterator[KafkaRange]:
    with closing(KafkaRange("kafka://x", settings_of(kafka), topic, dict)) as source:
        yield source


def settings_of(kafka: KafkaServer) -> dict[str, str]:
    return {**SETTINGS, "bootstrap.servers": kafka.address}


def transactions(kafka: KafkaServer, topic: str) -> None:
    """Three records, two that are aborted, one more; behind each of the three transactions lies its marker."""
    producer = Producer({**settings_of(kafka), "transactional.id": topic})
    producer.init_transactions(60)
    for values, is_kept in (("abc", True), ("de", False), ("f", True)):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(60)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(60)


def produced(kafka: KafkaServer, topic: str, count: int) -> None:
    producer = Producer(settings_of(kafka))
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def truncated(kafka: KafkaServer, topic: str, before: int) -> None:
    admin = AdminClient(kafka.client_config())  # it has to live until the answer is there
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(60)


def ends_of(source: KafkaRange) -> Positions:
    return {where: each.end for where, each in source.ranges().items()}


def read(source: KafkaRange) -> list[tuple[int, bytes]]:
    found = list[tuple[int, bytes]]()
    for _ in attempts("the end of the range"):
        if not source.lag():
            break
        found += [(each.offset, each.data) for each in source.poll(2, 0.2).records]
    return found


def test_markers_and_aborted_records_belong_to_a_range_and_are_no_records(
    kafka: KafkaServer, topic: str, source: KafkaRange
) -> None:
    """A range ends where the topic does, though no record is at its last offsets."""
    transactions(kafka, topic)
    source.read({}, ends_of(source))
    assert source.lag() == 9
    assert read(source) == [(0, b"a"), (1, b"b"), (2, b"c"), (7, b"f")]
    pages = read_newest(settings_of(kafka), topic, 3)
    assert [each.data for page in pages for each in page] == [b"f"], "of the last three offsets one is a record"


def test_a_range_begins_behind_what_was_gone_when_it_was_asked_for(
    kafka: KafkaServer, topic: str, source: KafkaRange
) -> None:
    """A replay has said before that these are lost."""
    produced(kafka, topic, 10)
    truncated(kafka, topic, 6)
    source.read({}, ends_of(source))
    assert [offset for offset, _ in read(source)] == [6, 7, 8, 9]


def test_what_expires_after_a_range_was_planned_is_an_error(kafka: KafkaServer, topic: str, source: KafkaRange) -> None:
    """The plan says that nothing is lost: a store that is rebuilt by it would lack these events, and nobody would
    know."""
    produced(kafka, topic, 10)
    ends = ends_of(source)
    source.read(dict.fromkeys(ends, 3), ends)
    truncated(kafka, topic, 6)
    with pytest.raises(TerminalError, match="expired before they were read: offsets 3 to 5 of partition 0"):
        source.read(dict.fromkeys(ends, 3), ends)


def test_a_topic_that_was_made_anew_is_another_one(kafka: KafkaServer, topic: str, source: KafkaRange) -> None:
    source.ranges()
    recreate_topic(AdminClient(kafka.client_config()), topic, 2)
    words = "was deleted and made again during the replay"
    assert until(lambda: words in refusal(source), "the brokers to know it")


def refusal(source: KafkaRange) -> str:
    try:
        source.ranges()
    except TransientError as e:
        return str(e)
    return ""
