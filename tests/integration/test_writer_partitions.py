"""What a source on a real broker says of its partitions: where they end, and what is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from headwater.consumers.sources import OffsetGap, SourceBatch
from headwater.consumers.sources import kafka as source_module
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.sources.kafka_offsets import KafkaOffsets
from headwater.errors import TransientError
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition
from headwater.local import KafkaServer
from tests.kit.topics import create_topic, new_topic, recreate_topic
from tests.kit.waiting import attempts, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.kafka,
    pytest.mark.sample(2, keep=("shorter",)),
]


class Reading:
    """A source, and what it gave."""

    def __init__(
        self,
        kafka: KafkaServer,
        topic: str,
        known: dict[int, int] | None = None,
        settings: dict[str, str] | None = None,
        *,
        is_offset_kafkas: bool = False,
        group: str = "",
    ) -> None:
        self._kafka, self.topic = kafka, topic
        self.records: list[tuple[int, int]] = []
        self.places: list[BusPartition] = []
        """Of each record."""
        self.ends: dict[int, int] = {}
        self.holes: list[OffsetGap] = []

        def stored(cluster: str) -> dict[BusPartition, int]:
            return {BusPartition(cluster, self.source.topic_id, number): at for number, at in (known or {}).items()}

        self.source = KafkaSource(
            {**{name: str(value) for name, value in kafka.client_config().items()}, **(settings or {})},
            topic,
            group or str(uuid4()),
            None if is_offset_kafkas else stored,
        )

    def until(self, holds: Callable[[], bool]) -> None:
        for _ in attempts(lambda: (self.records, self.ends, self.holes)):
            if holds():
                return
            with suppress(TransientError):  # brokers need a moment for a topic that was just made
                self._take(self.source.poll(100, 0.2))

    def _take(self, batch: SourceBatch) -> None:
        self.records += [(each.partition.number, each.offset) for each in batch.records]
        self.places += [each.partition for each in batch.records]
        self.ends.update((each.number, at) for each, at in batch.ends.items())
        self.holes += batch.gaps


@pytest.fixture
def admin(kafka: KafkaServer) -> AdminClient:
    return AdminClient(kafka.client_config())


@pytest.fixture
def topic(kafka: KafkaServer, admin: AdminClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(source_module, "END_CHECK_SECONDS", 0.0)
    name = new_topic(kafka.address, "partitions", 2)
    yield name
    admin.delete_topics([name])[name].result()


def produced(kafka: KafkaServer, topic: str, number: int, count: int) -> None:
    client = Producer({**kafka.client_config(), "enable.idempotence": True})
    for _ in range(count):
        client.produce(topic, b"x", partition=number)
    assert client.flush(60) == 0


def test_an_assignment_whose_offsets_cannot_be_asked_for_is_tried_again(
    kafka: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker went away while partitions were given out. What the client makes of its own exception there is none of
    Python's, so that neither a thread pool nor anybody else can catch it."""
    asked: list[int] = []
    within = KafkaOffsets._start_in_range

    def unanswered_at_first(self: KafkaOffsets, number: int, at: int) -> int:
        asked.append(number)
        if len(asked) == 1:
            self._topic.limits(number, timeout=0.0)
        return within(self, number, at)

    monkeypatch.setattr(KafkaOffsets, "_start_in_range", unanswered_at_first)
    produced(kafka, topic, 0, 3)
    read = Reading(kafka, topic, {0: 1, 1: 0})
    read.until(lambda: read.records == [(0, 1), (0, 2)])
    assert len(asked) > 1
    read.source.close()


@pytest.mark.sample(1)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_rewinds_during_a_rebalance_reads_again_from_the_stored_offset(
    kafka: KafkaServer, topic: str, admin: AdminClient, protocol: str
) -> None:
    """The client has taken its part in the rebalance, and waits for us to hear of the result. It would forget then that
    it was to give its partitions back."""
    settings, group = {"group.protocol": protocol}, str(uuid4())
    for partition in range(2):
        produced(kafka, topic, partition, 3)
    another = f"another-{topic}"
    create_topic(kafka.address, another)
    reading = Reading(kafka, topic, settings=settings, group=group)
    guest = Consumer({**kafka.client_config(), **settings, **COOPERATIVE[protocol], "group.id": group})
    stored = {(partition, at) for partition in range(2) for at in range(3)}
    with closing(reading.source), closing(guest):
        reading.until(lambda: stored <= set(reading.records))
        guest.subscribe([another])
        with polled(guest):
            until(lambda: members_of(admin, group) == 2, "a group of two")
            reading.records.clear()
            reading.source.rewind()
            reading.until(lambda: stored <= set(reading.records))
        first = {number: next(at for each, at in reading.records if each == number) for number in range(2)}
        assert first == {0: 0, 1: 0}
    admin.delete_topics([another])[another].result()


COOPERATIVE = {"classic": {"partition.assignment.strategy": "cooperative-sticky"}, "consumer": {}}


@contextmanager
def polled(client: Consumer) -> Iterator[None]:
    """A group waits in each rebalance for all its members, and a client takes part only while it polls. What reads in
    this thread waits for the rebalance in one call, so that the other one needs a thread of its own."""
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            client.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def members_of(admin: AdminClient, group: str) -> int:
    """How many members a group has that isn't rebalancing, as brokers see it."""
    described = admin.describe_consumer_groups([group])[group].result()
    return len(described.members) if described.state is ConsumerGroupState.STABLE else 0


@pytest.mark.long
def test_a_partition_that_another_member_had_for_a_while_is_not_owned(kafka: KafkaServer, topic: str) -> None:
    """What was polled of it comes again, and the other one may have done more of it meanwhile."""
    group = str(uuid4())
    for partition in range(2):
        produced(kafka, topic, partition, 3)
    reading = Reading(kafka, topic, group=group)
    source = reading.source
    guest = Consumer({**kafka.client_config(), **COOPERATIVE["classic"], "group.id": group})
    with closing(source):
        reading.until(lambda: len(reading.records) == 6)
        assert all(source.owns(each) for each in reading.places)
        with closing(guest):
            guest.subscribe([topic])
            until(lambda: guest.poll(0.05) is None and partitions_at_rest(source) == 1, "a partition to go")
        until(lambda: partitions_at_rest(source) == 2, "the partition to come back")
        assert {source.owns(each) for each in set(reading.places)} == {True, False}
        reading.until(lambda: len(reading.records) == 9)
        assert all(source.owns(each) for each in reading.places)


def partitions_at_rest(source: KafkaSource) -> int:
    source.rest()
    return source.partitions


def truncated(admin: AdminClient, topic: str, number: int, before: int) -> None:
    for future in admin.delete_records([TopicPartition(topic, number, before)]).values():
        future.result()


@pytest.mark.sample(1)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_where_partitions_end_is_reported_once_all_of_them_was_given(
    kafka: KafkaServer, topic: str, protocol: str
) -> None:
    produced(kafka, topic, 0, 5)
    reading = Reading(kafka, topic, settings={"group.protocol": protocol})
    reading.until(lambda: reading.ends == {0: 0, 1: 0} or len(reading.ends) == 2)
    reading.until(lambda: min(reading.ends.values()) > 0)
    assert len(reading.records) == 5
    assert max(reading.ends.values()) <= wall_micros() - CLOCK_SKEW_MICROS
    reading.source.close()


def test_what_is_truncated_before_it_begins_is_a_hole(kafka: KafkaServer, topic: str, admin: AdminClient) -> None:
    produced(kafka, topic, 0, 10)
    truncated(admin, topic, 0, 7)
    reading = Reading(kafka, topic, {0: 4})
    reading.until(lambda: len(reading.records) == 3)
    (hole,) = reading.holes
    assert (hole.first, hole.end, hole.reason) == (4, 7, GapReason.LOG_EXPIRED)
    reading.source.close()


def test_what_is_truncated_while_it_waits_is_a_hole(kafka: KafkaServer, topic: str, admin: AdminClient) -> None:
    produced(kafka, topic, 0, 4)
    reading = Reading(kafka, topic)
    reading.until(lambda: len(reading.records) == 4)
    reading.source.rest()  # it doesn't fetch
    produced(kafka, topic, 0, 6)
    truncated(admin, topic, 0, 8)
    reading.until(lambda: (0, 9) in reading.records)
    assert reading.records[4:] == [(0, 8), (0, 9)]
    (hole,) = reading.holes
    assert (hole.first, hole.end) == (4, 8)
    reading.source.close()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("protocol", "count", "is_offset_kafkas"),
    [("classic", 3, False), ("consumer", 20, False), ("classic", 20, True)],
    ids=["shorter", "longer", "offsets are Kafka's"],
)
def test_a_topic_that_is_made_anew_while_it_is_read_is_read_from_its_beginning(
    kafka: KafkaServer, topic: str, admin: AdminClient, protocol: str, count: int, *, is_offset_kafkas: bool
) -> None:
    """Whether the new one is shorter than what was read of the older one, or longer."""
    produced(kafka, topic, 0, 5)
    reading = Reading(kafka, topic, settings={"group.protocol": protocol}, is_offset_kafkas=is_offset_kafkas)
    reading.until(lambda: len(reading.records) == 5 and reading.source.lag() == 0)
    older = reading.source.topic_id
    reading.source.rest()  # it doesn't fetch
    produced(kafka, topic, 0, 4)
    assert reading.source.lag() == 4
    recreate_topic(admin, topic, 2)
    produced(kafka, topic, 0, count)
    reading.source.done({reading.places[0]: 5})  # nobody has noticed yet
    reading.until(lambda: reading.source.lag() == 0 and reading.source.topic_id != older)
    newer = reading.source.topic_id
    read = [at for (_, at), where in zip(reading.records, reading.places, strict=True) if where.topic == newer]
    assert read == list(range(count))
    found = [(each.partition.topic, each.partition.number, each.first, each.end) for each in reading.holes]
    assert found == [(older, 0, 5, 9), (older, 1, 0, None)]
    assert {each.reason for each in reading.holes} == {GapReason.LOG_RECREATED}
    reading.source.close()


def test_a_partition_that_is_added_is_read_from_its_beginning(
    kafka: KafkaServer, topic: str, admin: AdminClient
) -> None:
    reading = Reading(kafka, topic, settings={"topic.metadata.refresh.interval.ms": "500"})
    reading.until(lambda: len(reading.ends) == 2)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    produced(kafka, topic, 2, 3)
    reading.until(lambda: len(reading.records) == 3)
    assert reading.records == [(2, 0), (2, 1), (2, 2)]
    assert (reading.source.partitions, reading.source.rebalances >= 2) == (3, True)
    reading.source.close()


def test_a_broker_that_is_gone_is_reported_until_it_is_back(tmp_path: Path) -> None:
    with KafkaServer(directory=tmp_path) as broker:
        create_topic(broker.address, "events", 2, {})
        reading = Reading(broker, "events")

        def away() -> str | None:
            return reading.source.outage

        reading.until(lambda: len(reading.ends) == 2 or reading.source.lag() == 0)
        assert not away()
        broker.kill()
        reading.until(lambda: bool(away()))
        assert away() == "events: no broker answers"
        broker.restart()
        reading.until(lambda: reading.source.lag() == 0)
        assert not away()
        reading.source.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_ends_while_no_broker_answers_ends_soon(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client alone would wait until its session ends: for the coordinator, to which it wants to commit."""
    with KafkaServer(directory=tmp_path) as broker:
        create_topic(broker.address, "events", 2, {})
        produced(broker, "events", 0, 3)
        reading = Reading(broker, "events", settings={"group.protocol": protocol}, is_offset_kafkas=True)
        reading.until(lambda: len(reading.records) == 3)
        broker.kill()
        monkeypatch.setattr("headwater.consumers.sources.kafka._LEAVE_SECONDS", 1.0)
        reading.source.done({reading.places[0]: 3})
        began = time.monotonic()
        reading.source.close()
        assert time.monotonic() - began < 40, "its session would have lasted 45 s"
