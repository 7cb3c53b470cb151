"""A lens over topics of a real broker. A record's value is its partition and offset, so rows tell how far was read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import Committed
from headwater.lens import LensError, lens
from tests.kit.spark.driver import Driver, the
from tests.kit.spark.kafka_broker import NOW, Broker, broker_fixture, kafka_driver_fixture

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


pytestmark = [pytest.mark.kafka, pytest.mark.needs("kafka"), pytest.mark.long]
PIN = '{"0":2,"1":1}'
PINNED = ["0-0", "0-1", "1-0"]
ALL = ["0-0", "0-1", "0-2", "1-0", "1-1"]


broker = broker_fixture


driver = kafka_driver_fixture


class Topic:
    """A case's own topic with three records and two."""

    def __init__(self, driver: Driver, broker: Broker) -> None:
        self.spark = driver.spark
        self.broker = broker
        self.name = broker.topic(driver.name(), (1_000, 2_000, 3_000), (1_000, 3_000))
        self.lens_name = name_of(self.name)

    def read(self, **options: str) -> DataFrame:
        return self.broker.read(self.spark, **{"subscribe": self.name, **options})

    def pinned(self, version: str = PIN, **more: Any) -> Any:
        return lens(self.spark, pins={self.lens_name: version}, **more)

    def offsets(self, **offsets: Mapping[str, int]) -> dict[str, str]:
        return {f"{key}Offsets": json.dumps({self.name: each}) for key, each in offsets.items()}


@pytest.fixture
def topic(driver: Driver, broker: Broker) -> Topic:
    return Topic(driver, broker)


def name_of(topic: str) -> str:
    """What lineage calls a topic."""
    return f"kafka://events/{topic}"


def values(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.selectExpr("string(value)").collect())


def test_a_pinned_topic_is_read_up_to_its_offsets_whatever_came_later(driver: Driver, topic: Topic) -> None:
    """Fails if records behind the pin are read, or capture says another version than the pin."""
    topic.broker.add(topic.name, 0, 4_000)
    assert len(values(topic.read())) == 6
    path = str(driver.warehouse / topic.name)
    with topic.pinned():
        assert values(topic.read()) == PINNED
        assert values(topic.read(startingOffsets="earliest", endingOffsets="latest")) == PINNED
        assert values(topic.read(**topic.offsets(starting={"0": 1, "1": 0}))) == ["0-1", "1-0"], (
            "from where it is written"
        )
        events = driver.events_of(lambda _: topic.read().write.mode("overwrite").parquet(path))
    assert [each.version for each in the(Committed, events).inputs] == [PIN]
    assert len(values(topic.read())) == 6


def _by_pattern(topic: Topic) -> DataFrame:
    servers = {"kafka.bootstrap.servers": topic.broker.servers}
    options = {**servers, "subscribePattern": f"{topic.name}.*"}
    return topic.spark.read.format("kafka").options(**options).load()


def _assigned(topic: Topic) -> DataFrame:
    servers = {"kafka.bootstrap.servers": topic.broker.servers}
    options = {**servers, "assign": json.dumps({topic.name: [0, 1]})}
    return topic.spark.read.format("kafka").options(**options).load()


def _in_catalog(topic: Topic) -> DataFrame:
    options = f"kafka.bootstrap.servers '{topic.broker.servers}', subscribe '{topic.name}'"
    topic.spark.sql(f"CREATE TABLE IF NOT EXISTS c_{topic.name} USING kafka OPTIONS ({options})")
    return topic.spark.table(f"c_{topic.name}").alias("c").where("offset >= 0")


def _view(topic: Topic) -> DataFrame:
    options = f"kafka.bootstrap.servers '{topic.broker.servers}', subscribe '{topic.name}'"
    topic.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_{topic.name} USING kafka OPTIONS ({options})")
    return topic.spark.sql(f"SELECT value FROM v_{topic.name}")


def _other_reader(topic: Topic) -> DataFrame:
    before = str(topic.spark.conf.get("spark.sql.sources.useV1SourceList"))
    topic.spark.conf.set("spark.sql.sources.useV1SourceList", "parquet")
    try:
        return topic.read()
    finally:
        topic.spark.conf.set("spark.sql.sources.useV1SourceList", before)


WAYS: dict[str, Callable[[Topic], DataFrame]] = {
    "subscribePattern": _by_pattern,
    "assign": _assigned,
    "table in Spark's catalog": _in_catalog,
    "temporary view": _view,
    "the other reader of Spark's": _other_reader,
    "another address of the broker": lambda topic: topic.read(**{"kafka.bootstrap.servers": topic.broker.otherwise}),
    "in pieces": lambda topic: topic.read(minPartitions="6"),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_read_a_topic(topic: Topic, way: str) -> None:
    """Fails for a way whose records behind the pin are read, or that is refused although it is pinned."""
    assert values(WAYS[way](topic)) == ALL
    with topic.pinned():
        assert values(WAYS[way](topic)) == PINNED
    assert values(WAYS[way](topic)) == ALL


def test_a_topic_is_named_by_each_address_and_by_its_logical_name(topic: Topic) -> None:
    """Fails if a pin by an address isn't found, or one of another broker is."""
    port = topic.broker.servers.rpartition(":")[2]
    for cluster in ("events", topic.broker.servers, f"LOCALHOST:{port}"):
        with lens(topic.spark, pins={f"kafka://{cluster}/{topic.name}": PIN}):
            assert values(topic.read()) == PINNED
    elsewhere = lens(topic.spark, pins={f"kafka://elsewhere:9092/{topic.name}": PIN})
    with elsewhere, pytest.raises(Exception, match=f"says nothing of {topic.lens_name}"):
        topic.read()


def test_offsets_that_the_user_wrote_stay(topic: Topic) -> None:
    """Fails if time travel of one's own is pinned, or a partition up to the latest isn't."""
    with topic.pinned():
        assert values(topic.read(**topic.offsets(ending={"0": 1, "1": 0}))) == ["0-0"]
        assert values(topic.read(**topic.offsets(ending={"0": 1, "1": 2}))) == ["0-0", "1-0", "1-1"]
        assert values(topic.read(**topic.offsets(ending={"0": 1, "1": -1}))) == ["0-0", "1-0"]
    with lens(topic.spark):
        assert values(topic.read(**topic.offsets(ending={"0": 1, "1": 0}))) == ["0-0"], "pinned by its options"


def test_a_time_ends_a_read_where_it_comes_before_the_pin(topic: Topic) -> None:
    """Fails if a time that means the newest record goes past the pin, or an earlier one is lost."""
    early, late = str(NOW + 2_000), str(NOW + 9_000)
    by_partition = json.dumps({topic.name: {"0": NOW + 3_000, "1": NOW + 1_000}})
    with topic.pinned():
        assert values(topic.read(endingTimestamp=early)) == ["0-0", "1-0"]
        assert values(topic.read(endingTimestamp=late)) == PINNED
        assert values(topic.read(endingOffsetsByTimestamp=by_partition)) == ["0-0", "0-1"]
    with lens(topic.spark), pytest.raises(Exception, match=f"says nothing of {topic.lens_name}"):
        topic.read(endingTimestamp=early)


def test_a_range_says_from_where_it_is_read(topic: Topic) -> None:
    """Fails if a range's start is lost, or what the user wrote wins over it."""
    with topic.pinned('{"0": [1, 3], "1": [1, 1]}'):
        assert values(topic.read()) == ["0-1", "0-2"]
        assert values(topic.read(startingTimestamp=str(NOW + 3_000))) == ["0-1", "0-2"]


def test_a_partition_of_later_gives_nothing(topic: Topic) -> None:
    """Fails if records of a partition are read that wasn't there at that version."""
    topic.broker.enlarge(topic.name, 3)
    topic.broker.add(topic.name, 2, 1_000)
    with topic.pinned():
        assert values(topic.read()) == PINNED


def test_topics_beside_a_pinned_one_are_refused_unless_allowed(driver: Driver, topic: Topic) -> None:
    """Fails if a subscription or a pattern reads a topic as it is now of which the lens says nothing."""
    other = topic.broker.topic(f"{topic.name}_more", (1_000,))
    both = f"{topic.name},{other}"
    reads: list[Callable[[], DataFrame]] = [lambda: topic.read(subscribe=both), lambda: _by_pattern(topic)]
    with topic.pinned():
        for read in reads:
            with pytest.raises(Exception, match=f"says nothing of {name_of(other)}"):
                read()
    with topic.pinned(allowed=[name_of(other)]):
        assert values(topic.read(subscribe=both)) == sorted([*PINNED, "0-0"])
        assert values(_by_pattern(topic)) == sorted([*PINNED, "0-0"])
    with lens(topic.spark, allowed=["kafka://events/*"]):
        assert values(topic.read()) == ALL
    with (
        lens(driver.spark),
        pytest.raises(Exception, match=f"says nothing of {topic.lens_name}.*pin it to its offsets"),
    ):
        topic.read()


def test_offsets_that_the_broker_doesnt_have_are_refused(topic: Topic) -> None:
    """Fails if a read is shorter than the pin in silence: beyond the end, removed by retention, or of another topic."""
    for version, why in (
        ('{"0":4,"1":1}', "partition 0 ends at offset 3, before 4"),
        ('{"0":2,"1":1,"2":0}', "has no partition 2"),
    ):
        with topic.pinned(version), pytest.raises(Exception, match=why):
            topic.read()
    topic.broker.remove(topic.name, 0, 3)
    with topic.pinned(), pytest.raises(Exception, match=f"can't read {topic.lens_name} .* begins at offset 3, after 2"):
        topic.read()
    with topic.pinned('{"0":[2,3],"1":[0,1]}'), pytest.raises(Exception, match="a part of what was read"):
        topic.read()


def test_what_cant_be_pinned_is_refused_by_name(topic: Topic) -> None:
    """Fails if a stream, or what was made before the lens goes on to the newest record."""
    before = topic.read()
    options = {"kafka.bootstrap.servers": topic.broker.servers, "subscribe": topic.name}
    stream = topic.spark.readStream.format("kafka").options(**options)
    with topic.pinned(allowed=["stream:kafka"]):
        with pytest.raises(Exception, match=f"can't pin a streaming read of {topic.lens_name}"):
            stream.load()
        with pytest.raises(Exception, match="made before the lens"):
            before.collect()
    with pytest.raises(LensError, match="a topic's version is the offset"):
        topic.pinned("7").begin()
