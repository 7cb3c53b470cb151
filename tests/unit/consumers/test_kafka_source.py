"""A source over Kafka whose client meets faults: nothing that it took is passed over."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Uuid

from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.sources.kafka_client import LibrdkafkaLogger, RepeatFilter, TopicClient
from headwater.errors import TransientError
from headwater.lineage.bulk import BusPartition

NOWHERE = "127.0.0.1:1"


class Scripted:
    """A message, or a fault in the place of one."""

    def __init__(self, offset: int, fault: int | None = None) -> None:
        self._offset = offset
        self._fault = fault

    def error(self) -> KafkaError | None:
        return None if self._fault is None else KafkaError(self._fault)

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_LOG_APPEND_TIME, 1

    def headers(self) -> None:
        return None

    key = headers

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"%d" % self._offset


class Client:
    """Gives what it is asked to, and begins anew where it is subscribed again."""

    def __init__(self, given: Sequence[Sequence[Scripted] | Exception]) -> None:
        self._given = list(given)
        self._rest: Sequence[Scripted] | Exception = ()
        self.subscriptions = 0

    def subscribe(self) -> None:
        self.subscriptions += 1

    def unsubscribe(self) -> None:
        pass

    def assignment(self) -> list[Any]:
        return []

    def pause(self, _partitions: Sequence[Any]) -> None:
        pass

    def poll(self, _timeout: float) -> Scripted | None:
        found = self._given.pop(0)
        if isinstance(found, Exception):
            raise found
        if not found:
            return None
        self._rest = found[1:]
        if isinstance(self._given[0], Exception):
            self._rest = self._given.pop(0)
        return found[0]

    def consume(self, _most: int, _timeout: float) -> Sequence[Scripted]:
        if isinstance(self._rest, Exception):
            raise self._rest
        return self._rest


def source(client: Client) -> KafkaSource:
    def stored(_: str) -> Mapping[BusPartition, int]:
        return {}

    made = KafkaSource({"bootstrap.servers": NOWHERE, "log_level": "0"}, "topic", "group", stored)
    made.close()
    opened: Any = made
    opened._client = opened._topic.consumer = client
    # Its own would ask a broker, where there is none, for as long as it asks.
    opened._topic._admin = SimpleNamespace(poll=lambda _: None)
    opened._offsets.is_another = lambda: False

    def begin() -> None:
        client.subscribe()
        opened._subscribed = True

    opened._begin = begin
    return made


AWAY = KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.mark.parametrize(
    "faulty",
    [
        [[Scripted(0), Scripted(1), Scripted(2, KafkaError._MAX_POLL_EXCEEDED), Scripted(3)]],
        [[Scripted(0), Scripted(1)], AWAY],
        [[Scripted(0), Scripted(1)], TransientError("where it begins isn't known")],
        [AWAY],
    ],
    ids=["a fault among messages", "a fault behind the first", "an assignment that failed", "a fault at once"],
)
def test_what_was_taken_when_a_fault_came_comes_again(faulty: list[Any]) -> None:
    client = Client([*faulty, [Scripted(0), Scripted(1)], []])
    read = source(client)
    with pytest.raises(TransientError):
        read.poll(10, 0)
    assert client.subscriptions == 1
    batch = read.poll(10, 0)
    assert client.subscriptions == 2, "it would go on behind what nobody was given"
    assert [record.offset for record in batch.records] == [0, 1]


@pytest.mark.parametrize("fault", [AWAY, TransientError("where it begins isn't known")])
def test_an_assignment_that_fails_while_the_source_rests_is_asked_for_again(fault: Exception) -> None:
    """Else the client reads the partitions from an offset of its own choice."""
    client = Client([[Scripted(0)], [], fault, [Scripted(0)], []])
    read = source(client)
    assert read.poll(10, 0).records
    assert not read.poll(10, 0).records
    with pytest.raises(TransientError):
        read.rest()
    read.poll(10, 0)
    assert client.subscriptions == 2


@pytest.mark.parametrize(
    ("most", "least", "shown"),
    [(-1, -1, "_____________________w"), (-0x0410410410410411, 0, "----------8AAAAAAAAAAA")],
)
def test_a_topic_id_is_written_as_by_kafkas_own_tools(
    most: int, least: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's Uuid says these. Where the writer and a Spark job write one id in two ways, neither goes on where the
    other one ended."""
    found: Future[Any] = Future()
    found.set_result(SimpleNamespace(topic_id=Uuid(most, least)))
    topic = TopicClient({"bootstrap.servers": NOWHERE, "log_level": "0"}, "t", "g")
    asked = SimpleNamespace(describe_topics=lambda *_, **__: {"t": found})
    monkeypatch.setattr(topic, "_admin", asked)
    assert topic.fetch_id() == shown


def test_a_partition_whose_leader_is_elected_just_now_is_asked_again() -> None:
    """As it is for a moment after a topic was made, or a broker went."""
    asked: list[str] = []

    def get_watermark_offsets(*_: Any, **__: Any) -> tuple[int, int]:
        asked.append("offsets")
        if len(asked) == 1:
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return 3, 7

    client = TopicClient({"bootstrap.servers": NOWHERE, "log_level": "0"}, "t", "g")
    client.consumer = SimpleNamespace(  # type: ignore[assignment]
        get_watermark_offsets=get_watermark_offsets, list_topics=lambda *_, **__: asked.append("leaders")
    )
    assert client.limits(0) == (3, 7)
    assert asked == ["offsets", "leaders", "offsets"]


# What the Kafka client says of itself.


LOGGER = "headwater.consumers.sources.kafka_client"
REFUSED = ("%s [%s] %s", "FAIL", "rdkafka#consumer-1", "Connect to 127.0.0.1:9 failed (after %dms)")


def refused(lines: LibrdkafkaLogger, millis: int) -> None:
    text, *arguments = REFUSED
    lines.log(logging.ERROR, text, *arguments[:2], arguments[2] % millis)


def test_what_is_said_again_and_again_is_reported_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    lines = LibrdkafkaLogger(RepeatFilter(lambda: now))
    with caplog.at_level(logging.INFO, LOGGER):
        refused(lines, 1)
        refused(lines, 20)
        now = 599.0
        refused(lines, 1)
        assert len(caplog.records) == 1
        now = 600.0
        refused(lines, 1)
        lines.log(logging.WARNING, "%s", "something else")
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR", "WARNING"]
    assert "FAIL [rdkafka#consumer-1] Connect to 127.0.0.1:9 failed" in caplog.text


def test_with_debug_all_of_it_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    lines = LibrdkafkaLogger()
    with caplog.at_level(logging.DEBUG, LOGGER):
        for each in range(3):
            refused(lines, each)
    assert [each.levelname for each in caplog.records] == ["ERROR", "DEBUG", "DEBUG"]


def test_secrets_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    LibrdkafkaLogger().log(logging.ERROR, "%s", "sasl.password=hidden is wrong")
    assert caplog.records
    assert "hidden" not in caplog.text


def test_what_is_remembered_is_bounded() -> None:
    once = RepeatFilter(lambda: 0.0)
    words = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(5_000)]
    assert all(map(once.is_new, words))
    assert once.is_new(words[0]), "it was forgotten"
