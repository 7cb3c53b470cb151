"""Topics of a real broker, in batches and streams. What was read is known by what was produced before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from headwater.events import (
    Committed,
    CreateTable,
    CreateView,
    DatasetId,
    Event,
    Format,
    Gap,
    Input,
    JobStarted,
    Output,
    StatementFailed,
    TableName,
)
from headwater.events.health import GapReason
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode, StartPosition, StartReason
from headwater.events.tables import ViewSource
from tests.kit.spark.driver import Driver, edges, of, the
from tests.kit.spark.java_lint import complaints_of_javac
from tests.kit.spark.kafka_broker import NOW, Broker, broker_fixture, kafka_driver_fixture
from tests.kit.spark.streams import Case, Start, barriers, commits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


pytestmark = [
    pytest.mark.kafka,
    pytest.mark.needs("kafka"),
    pytest.mark.sample(5, keep=("test_javac_agrees",)),
]

SECRET: Final = "hunter2-is-secret"
WITH_SECRETS: Final = {
    "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required password='{SECRET}';",
    "kafka.ssl.truststore.password": SECRET,
    "kafka.ssl.key.password": SECRET,
}
"""Records of long ago would be gone at once."""


broker = broker_fixture


driver = kafka_driver_fixture


class Place:
    """A case's own topic with five records, three and two, and a path to write to."""

    def __init__(self, driver: Driver, broker: Broker) -> None:
        self.driver = driver
        self.broker = broker
        self.name = driver.name()
        self.topic = broker.topic(self.name, (1_000, 2_000, 3_000), (1_000, 3_000))
        self.path = str(driver.warehouse / self.name)

    def events_of(self, **options: str) -> list[Event]:
        """What is recorded of a batch that reads this into a path."""
        return self.events_of_frame(self.broker.read(self.driver.spark, **options))

    def events_of_frame(self, frame: DataFrame) -> list[Event]:
        return self.driver.events_of(lambda _: frame.write.mode("overwrite").parquet(self.path))

    def exact(self, **offsets: Mapping[str, int]) -> dict[str, str]:
        """Options for offsets of this topic."""
        return {f"{key}ingOffsets": json.dumps({self.topic: each}) for key, each in offsets.items()}

    def table(self, *columns: str) -> DataFrame:
        """Rows of a table that is no topic."""
        path = str(self.driver.warehouse / f"{self.name}_rows")
        self.driver.spark.range(3).selectExpr("cast(id as string) k", "cast(id as string) v").write.parquet(path)
        return self.driver.spark.read.parquet(path).selectExpr(*columns)


@pytest.fixture
def place(driver: Driver, broker: Broker) -> Place:
    return Place(driver, broker)


def topic(name: str) -> Any:
    """A key of dictionaries too, which a type checker doesn't see of a model."""
    return DatasetId(namespace="kafka://events", name=name)


def where(each: Input | Output | StartPosition | ViewSource) -> Any:
    return each.dataset


def as_read(each: Input) -> tuple[Any, Any, ReadMode]:
    return each.since.version if each.since else None, each.version, each.mode


def only_input(events: list[Event]) -> Input:
    (found,) = the(Committed, events).inputs
    assert found.format is Format.KAFKA
    return found


def gaps(events: list[Event]) -> list[tuple[GapReason, DatasetId | None]]:
    return [(gap.reason, gap.source.dataset if gap.source else None) for gap in of(Gap, events)]


@pytest.mark.smoke
def test_how_far_latest_was_isnt_known(place: Place) -> None:
    captured = place.events_of(subscribe=place.topic)
    read = only_input(captured)
    assert read.dataset == topic(place.topic)
    assert as_read(read) == (None, None, ReadMode.STATE)
    assert gaps(captured) == [(GapReason.NOT_EXACT, topic(place.topic))]


def test_up_to_given_offsets(place: Place) -> None:
    captured = place.events_of(subscribe=place.topic, **place.exact(end={"0": 2, "1": 2}))
    assert as_read(only_input(captured)) == (None, '{"0":2,"1":2}', ReadMode.STATE)
    assert the(Committed, captured).outputs[0].rows == 4
    assert not of(Gap, captured)


@pytest.mark.smoke
def test_between_given_offsets(place: Place) -> None:
    captured = place.events_of(subscribe=place.topic, **place.exact(start={"0": 1, "1": 0}, end={"0": 3, "1": 1}))
    assert as_read(only_input(captured)) == ('{"0":1,"1":0}', '{"0":3,"1":1}', ReadMode.CHANGES)
    assert the(Committed, captured).outputs[0].rows == 3
    assert not of(Gap, captured)


@pytest.mark.parametrize("kind", [1, 2])
def test_an_rdd_below_a_frame_shows_its_topic(place: Place, kind: int) -> None:
    """By Spark's sources of either kind: the topic and the offsets that were asked for, and a Gap for the latest."""
    place.driver.spark.conf.set("spark.sql.sources.useV1SourceList", "kafka" if kind == 1 else "")
    try:
        exact = place.broker.read(
            place.driver.spark,
            subscribe=place.topic,
            **place.exact(start={"0": 1, "1": 0}, end={"0": 3, "1": 1}),
        )
        latest = place.broker.read(place.driver.spark, subscribe=place.topic)
        known = place.driver.events_of(lambda _: exact.rdd.map(str).saveAsTextFile(f"{place.path}.txt"))
        rows = exact.rdd.map(lambda row: (str(row),))
        framed = place.events_of_frame(place.driver.spark.createDataFrame(rows, "v STRING"))
        unknown = place.driver.events_of(lambda _: latest.rdd.map(str).saveAsTextFile(f"{place.path}.all"))
    finally:
        place.driver.spark.conf.unset("spark.sql.sources.useV1SourceList")

    for events in (known, framed):
        read, rest = the(Committed, events).inputs
        assert (read.dataset, read.format, rest.dataset) == (topic(place.topic), Format.KAFKA, None)
        assert as_read(read) == ('{"0":1,"1":0}', '{"0":3,"1":1}', ReadMode.CHANGES)
        assert not of(Gap, events)
    assert as_read(the(Committed, unknown).inputs[0]) == (None, None, ReadMode.STATE)
    assert (GapReason.NOT_EXACT, topic(place.topic)) in gaps(unknown)


def test_one_partition_up_to_the_latest(place: Place) -> None:
    captured = place.events_of(subscribe=place.topic, **place.exact(start={"0": 1, "1": 0}, end={"0": 3, "1": -1}))
    assert as_read(only_input(captured)) == ('{"0":1,"1":0}', None, ReadMode.CHANGES)
    assert gaps(captured) == [(GapReason.NOT_EXACT, topic(place.topic))]


@pytest.mark.long
def test_one_partition_from_the_earliest(place: Place) -> None:
    captured = place.events_of(subscribe=place.topic, **place.exact(start={"0": 1, "1": -2}, end={"0": 3, "1": 2}))
    assert as_read(only_input(captured)) == (None, '{"0":3,"1":2}', ReadMode.STATE)


@pytest.mark.smoke
def test_times_become_offsets_in_the_driver(place: Place) -> None:
    captured = place.events_of(
        subscribe=place.topic, startingTimestamp=str(NOW + 2_000), endingTimestamp=str(NOW + 3_000)
    )
    assert as_read(only_input(captured)) == ('{"0":1,"1":1}', '{"0":2,"1":1}', ReadMode.CHANGES)
    assert the(Committed, captured).outputs[0].rows == 1


def test_each_topic_is_an_input(place: Place, broker: Broker) -> None:
    other = broker.topic(place.driver.name(), (1_000,))
    ends = json.dumps({place.topic: {"0": 3, "1": 2}, other: {"0": 1}})
    captured = place.events_of(subscribe=f"{place.topic}, {other}", endingOffsets=ends)
    read = {where(each): each.version for each in the(Committed, captured).inputs}
    assert read == {topic(place.topic): '{"0":3,"1":2}', topic(other): '{"0":1}'}
    assert the(Committed, captured).outputs[0].made_from == (0, 1)
    lineage = place.driver.lineage(the(Committed, captured))
    assert {f"value <- {place.topic}.value", f"value <- {other}.value"} <= edges(lineage)


@pytest.mark.smoke
def test_a_pattern_is_the_topics_that_were_read(place: Place, broker: Broker) -> None:
    more = broker.topic(f"{place.topic}_more", (1_000,))
    broker.topic(f"another_{place.driver.name()}", (1_000,))
    pattern = {
        "subscribePattern": f"{place.topic}(_more)?",
        "startingTimestamp": "0",
        "endingTimestamp": str(NOW + 3_000),
    }
    captured = place.events_of(**pattern)
    ends = {where(each): each.version for each in the(Committed, captured).inputs}
    assert ends == {topic(place.topic): '{"0":2,"1":1}', topic(more): '{"0":1}'}
    lineage = place.driver.lineage(the(Committed, captured))
    assert [each.dataset for each in lineage.inputs] == [topic(place.topic), topic(more)]
    assert {f"value <- {place.topic}.value", f"value <- {more}.value"} <= edges(lineage)
    assert not of(Gap, captured)


@pytest.mark.long
def test_a_pattern_up_to_the_latest(place: Place) -> None:
    captured = place.events_of(subscribePattern=f"{place.topic}.*")
    assert only_input(captured).dataset == topic(place.topic)
    assert gaps(captured) == [(GapReason.NOT_EXACT, topic(place.topic))]


def test_partitions_that_are_assigned(place: Place) -> None:
    captured = place.events_of(assign=json.dumps({place.topic: [1]}), **place.exact(start={"1": 1}, end={"1": 2}))
    assert as_read(only_input(captured)) == ('{"1":1}', '{"1":2}', ReadMode.CHANGES)


def test_a_partition_that_is_read_in_pieces(place: Place) -> None:
    captured = place.events_of(subscribe=place.topic, minPartitions="6", **place.exact(end={"0": 3, "1": 2}))
    assert as_read(only_input(captured)) == (None, '{"0":3,"1":2}', ReadMode.STATE)
    captured = place.events_of(subscribe=place.topic, minPartitions="6")
    assert as_read(only_input(captured)) == (None, None, ReadMode.STATE)


def test_two_ranges_of_one_topic(place: Place) -> None:
    ranges = ({"0": 1, "1": 1}, {"0": 3, "1": 2})
    one, other = (
        place.broker.read(place.driver.spark, subscribe=place.topic, **place.exact(end=end)) for end in ranges
    )
    captured = place.events_of_frame(one.union(other))
    assert [each.version for each in the(Committed, captured).inputs] == ['{"0":1,"1":1}', '{"0":3,"1":2}']


def test_an_exchange_that_is_used_again(place: Place) -> None:
    frame = place.broker.read(
        place.driver.spark, subscribe=place.topic, startingTimestamp="0", endingTimestamp=str(NOW + 9_000)
    )
    captured = place.events_of_frame(frame.alias("a").join(frame.alias("b"), "offset").selectExpr("offset"))
    assert only_input(captured).version == '{"0":3,"1":2}', "no record is as late: the latest as the driver found it"


def test_rows_that_were_cached(place: Place) -> None:
    frame = place.broker.read(place.driver.spark, subscribe=place.topic, **place.exact(end={"0": 1, "1": 1})).cache()
    captured = place.events_of_frame(frame)
    assert only_input(captured).version == '{"0":1,"1":1}'
    frame.unpersist()


def test_a_checkpoint_is_seen_through(place: Place) -> None:
    frame = place.broker.read(
        place.driver.spark, subscribePattern=f"{place.topic}.?", startingTimestamp="0", endingTimestamp=str(NOW + 3_000)
    )
    captured = place.events_of_frame(frame.selectExpr("value").localCheckpoint())
    assert only_input(captured).dataset == topic(place.topic)
    assert only_input(captured).version == '{"0":2,"1":1}'
    assert edges(place.driver.lineage(the(Committed, captured))) == {f"value <- {place.topic}.value"}


def test_what_neednt_be_read_isnt_reported(place: Place) -> None:
    captured = place.events_of_frame(place.broker.read(place.driver.spark, subscribe=place.topic).where("false"))
    assert not any(each.dataset for each in the(Committed, captured).inputs)
    assert not of(Gap, captured)


@pytest.mark.smoke
def test_two_names_of_a_broker_are_one(place: Place) -> None:
    one, other = (
        place.broker.read(
            place.driver.spark,
            **{"kafka.bootstrap.servers": servers, "subscribe": place.topic},
            **place.exact(end={"0": 1, "1": 1}),
        )
        for servers in (place.broker.servers, place.broker.otherwise)
    )
    captured = place.events_of_frame(one.union(other))
    assert only_input(captured).dataset == topic(place.topic)


def test_a_temporary_view_is_the_topic(place: Place) -> None:
    ends = json.dumps({place.topic: {"0": 1, "1": 1}})
    options = f"kafka.bootstrap.servers '{place.broker.servers}', subscribe '{place.topic}', endingOffsets '{ends}'"
    place.driver.run(f"CREATE TEMPORARY VIEW v_{place.name} USING kafka OPTIONS ({options})")
    captured = place.events_of_frame(place.driver.spark.sql(f"SELECT * FROM v_{place.name}"))
    assert only_input(captured).dataset == topic(place.topic)
    assert only_input(captured).version == '{"0":1,"1":1}'


@pytest.mark.smoke
def test_a_table_in_the_catalog_is_the_topic(place: Place) -> None:
    db = place.driver.database()
    secrets = ", ".join(f'{key} "{value}"' for key, value in WITH_SECRETS.items())
    where = f"kafka.bootstrap.servers '{place.broker.servers}', subscribe '{place.topic}', {secrets}"
    captured = place.driver.events_of(f"CREATE TABLE {db}.t USING kafka OPTIONS ({where})")
    made = the(CreateTable, captured)
    assert (made.dataset, made.format) == (topic(place.topic), Format.KAFKA)
    assert made.table is not None
    assert set(made.table.properties) == {"option.kafka.bootstrap.servers", "option.subscribe"}
    captured = place.events_of_frame(place.driver.spark.table(f"{db}.t"))
    assert only_input(captured).dataset == topic(place.topic)
    assert only_input(captured).table == TableName(catalog="spark_catalog", database=db, table="t")


def test_a_view_is_over_all_its_topics(place: Place, broker: Broker) -> None:
    other = broker.topic(place.driver.name(), (1_000,))
    db = place.driver.database()
    options = f"kafka.bootstrap.servers '{place.broker.servers}', subscribe '{place.topic},{other}'"
    place.driver.run(f"CREATE TABLE {db}.t USING kafka OPTIONS ({options})")
    view = the(CreateView, place.driver.events_of(f"CREATE VIEW {db}.v AS SELECT value FROM {db}.t")).view
    assert {where(each) for each in view.sources} == {topic(place.topic), topic(other)}
    assert {where(view.sources[each.input]) for each in view.lineage} == {topic(place.topic), topic(other)}


@pytest.mark.long
def test_the_other_reader_of_sparks(place: Place) -> None:
    before = str(place.driver.spark.conf.get("spark.sql.sources.useV1SourceList"))
    place.driver.spark.conf.set("spark.sql.sources.useV1SourceList", "parquet")
    try:
        captured = place.events_of(subscribe=place.topic, **place.exact(start={"0": 1, "1": 0}, end={"0": 3, "1": 1}))
        written = place.driver.events_of(lambda spark: append(spark, place))
    finally:
        place.driver.spark.conf.set("spark.sql.sources.useV1SourceList", before)
    assert only_input(captured).dataset == topic(place.topic)
    assert as_read(only_input(captured)) == ('{"0":1,"1":0}', '{"0":3,"1":1}', ReadMode.CHANGES)
    assert [each.dataset for each in the(Committed, written).outputs] == [topic(place.topic)]


def append(spark: SparkSession, place: Place) -> None:
    writer = spark.range(2).selectExpr("cast(id as string) value").write.format("kafka").mode("append")
    writer.options(**{"kafka.bootstrap.servers": place.broker.servers, "topic": place.topic}).save()


def outputs(events: list[Event]) -> dict[Any, tuple[CommitKind, OverwriteScope]]:
    return {where(each): (each.commit_kind, each.replaced) for each in the(Committed, events).outputs}


ADDED: Final = (CommitKind.APPEND, OverwriteScope.NOTHING)


@pytest.mark.smoke
def test_a_write_to_a_topic(place: Place) -> None:
    frame = place.table(
        "k as key", "v as value", "array(struct('h' as key, binary(v) as value)) as headers", "k as odd"
    )
    captured = place.driver.events_of(lambda _: place.broker.write(frame, topic=place.topic))
    assert outputs(captured) == {topic(place.topic): ADDED}
    lineage = place.driver.lineage(the(Committed, captured))
    rows = f"{place.path}_rows"
    assert edges(lineage) == {
        f"key <- {rows}.k",
        f"value <- {rows}.v",
        f"headers <- TRANSFORMATION {rows}.v",
    }
    assert [column.name for column in lineage.outputs[0].columns] == ["key", "value", "headers"]


def test_rows_that_are_added_under_a_name_in_sparks_catalog(place: Place) -> None:
    db = place.driver.database()
    where = {"kafka.bootstrap.servers": place.broker.servers, "subscribe": place.topic, "topic": place.topic}
    options = ", ".join(f"{key} '{text}'" for key, text in where.items())
    place.driver.run(f"CREATE TABLE {db}.t USING kafka OPTIONS ({options})")
    frame = place.broker.read(place.driver.spark, subscribe=place.topic, **place.exact(end={"0": 1, "1": 1}))
    captured = place.driver.events_of(
        lambda _: frame.write.format("kafka").mode("append").options(**where).saveAsTable(f"{db}.t")
    )
    assert outputs(captured) == {topic(place.topic): ADDED}


def test_the_option_goes_before_the_column(place: Place) -> None:
    frame = place.table("v as value", "'elsewhere' as topic")
    captured = place.driver.events_of(lambda _: place.broker.write(frame, topic=place.topic))
    assert outputs(captured) == {topic(place.topic): ADDED}


def test_a_topic_that_the_query_names(place: Place) -> None:
    frame = place.table("v as value", f"'{place.topic}' as topic").where("value > '0'").orderBy("value")
    captured = place.driver.events_of(lambda _: place.broker.write(frame))
    assert outputs(captured) == {topic(place.topic): ADDED}
    assert not of(Gap, captured)


def united(place: Place, other: str) -> DataFrame:
    place.table("k", "v").createOrReplaceTempView("ours")
    place.broker.read(
        place.driver.spark, subscribe=other, endingOffsets=json.dumps({other: {"0": 1}})
    ).createOrReplaceTempView("theirs")
    return place.driver.spark.sql(
        f"SELECT topic, value FROM (SELECT '{place.topic}' AS topic, v AS value FROM ours"
        f" UNION ALL SELECT '{other}', string(value) FROM theirs) WHERE value IS NOT NULL"
    )


@pytest.mark.smoke
def test_topics_of_a_union_are_each_of_their_own_rows(place: Place, broker: Broker) -> None:
    other = broker.topic(place.driver.name(), (1_000,))
    frame = united(place, other)
    captured = place.driver.events_of(lambda _: broker.write(frame))
    assert outputs(captured) == {topic(place.topic): ADDED, topic(other): ADDED}
    committed = the(Committed, captured)
    made = {where(each): [committed.inputs[n].dataset for n in each.made_from or ()] for each in committed.outputs}
    assert made[topic(other)] == [topic(other)]
    (rows,) = made[topic(place.topic)]
    assert rows is not None
    assert rows.name == f"{place.path}_rows"
    lineage = place.driver.lineage(committed)
    direct = {(each.output, each.input) for each in lineage.columns if each.target == ("value",)}
    sinks, sources = ([each.dataset for each in side] for side in (lineage.outputs, lineage.inputs))
    assert direct == {
        (sinks.index(topic(other)), sources.index(topic(other))),
        (sinks.index(topic(place.topic)), sources.index(rows)),
    }


def test_a_topic_named_twice_is_one(place: Place) -> None:
    frame = place.table("v as value", f"'{place.topic}' as topic")
    captured = place.driver.events_of(lambda _: place.broker.write(frame.union(frame)))
    assert outputs(captured) == {topic(place.topic): ADDED}


@pytest.mark.smoke
def test_a_topic_that_is_computed_isnt_known(place: Place) -> None:
    frame = place.table("v as value", f"concat('{place.topic[:-1]}', '{place.topic[-1]}') as topic")
    captured = place.driver.events_of(lambda _: place.broker.write(frame))
    assert outputs(captured) == {None: ADDED}
    (output,) = the(Committed, captured).outputs
    assert output.opaque
    assert gaps(captured) == [(GapReason.NOT_EXACT, None)]


def test_one_topic_is_named_and_another_computed(place: Place) -> None:
    named = place.table("v as value", f"'{place.topic}' as topic")
    computed = named.selectExpr("value", "lower(topic)")
    captured = place.driver.events_of(lambda _: place.broker.write(named.union(computed)))
    assert outputs(captured) == {topic(place.topic): ADDED, None: ADDED}
    assert gaps(captured) == [(GapReason.NOT_EXACT, None)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("end", "version", "reported_gaps"),
    [
        pytest.param({"0": 1, "1": 2}, '{"0":1,"1":2}', 0, id="given offsets"),
        pytest.param(None, None, 1, id="the latest"),
    ],
)
def test_from_topic_to_topic(
    place: Place, broker: Broker, end: Mapping[str, int] | None, version: str | None, reported_gaps: int
) -> None:
    other = broker.topic(place.driver.name(), ())
    options = {} if end is None else place.exact(end=end)
    frame = broker.read(place.driver.spark, subscribe=place.topic, **options).select("key", "value")
    captured = place.driver.events_of(lambda _: broker.write(frame, topic=other))
    assert outputs(captured) == {topic(other): ADDED}
    assert only_input(captured).dataset == topic(place.topic)
    assert only_input(captured).version == version
    assert len(of(Gap, captured)) == reported_gaps


def test_a_write_that_fails(place: Place) -> None:
    frame = place.broker.read(place.driver.spark, subscribe=place.topic).selectExpr("raise_error('no') as value")
    frame = frame.selectExpr("string(value) as value")
    captured = place.driver.events_of_failure(lambda _: place.broker.write(frame, topic=place.topic))
    failed = the(StatementFailed, captured)
    assert [each.dataset for each in failed.inputs] == [topic(place.topic)]
    assert [each.dataset for each in failed.outputs] == [topic(place.topic)]
    assert not of(Committed, captured)


@pytest.mark.smoke
def test_secrets_of_the_client_are_never_reported(place: Place) -> None:
    def both(spark: SparkSession) -> None:
        frame = place.broker.read(spark, subscribe=place.topic, failOnDataLoss="false", **WITH_SECRETS)
        place.broker.write(frame.select("value"), topic=place.topic, **WITH_SECRETS)

    captured = place.driver.events_of(both)
    lineage = place.driver.lineage(the(Committed, captured))
    assert dict(lineage.inputs[0].options) == {"subscribe": place.topic, "failondataloss": "false"}
    assert dict(lineage.outputs[0].options) == {"topic": place.topic}


def follow(case: Case, place: Place, topics: Mapping[str, str], checkpoint: str = "checkpoint") -> Start:
    """Copies topics into the place's own, which the rows name."""
    options = {"kafka.bootstrap.servers": place.broker.servers, "startingOffsets": "earliest", **WITH_SECRETS}
    frame = case.spark.readStream.format("kafka").options(**options, **topics).load()
    rows = frame.selectExpr("value", f"'{place.topic}' as topic")
    sink = {"kafka.bootstrap.servers": place.broker.servers, **WITH_SECRETS}
    return lambda: case.writer(rows, checkpoint, **sink).format("kafka").start()


def ranges(committed: Committed) -> dict[Any, tuple[Any, Any, ReadMode]]:
    return {where(each): as_read(each) for each in committed.inputs}


@pytest.mark.smoke
def test_a_stream_tells_of_the_topics_that_gave_something(driver: Driver, place: Place, broker: Broker) -> None:
    case = Case(driver)
    one, other = broker.topic(driver.name(), (1_000, 2_000), (1_000,)), broker.topic(driver.name(), (1_000,))
    topics = {"subscribe": f"{one},{other}"}
    captured = case.events_of(follow(case, place, topics))
    (first,) = commits(captured)
    assert first.barrier in barriers(case.checkpoint(), [0])
    assert ranges(first) == {
        topic(one): ('{"0":0,"1":0}', '{"0":2,"1":1}', ReadMode.CHANGES),
        topic(other): ('{"0":0}', '{"0":1}', ReadMode.CHANGES),
    }
    assert outputs([first]) == {topic(place.topic): ADDED}
    begins = {where(each): (each.version, each.reason) for each in the(JobStarted, captured).starts_at}
    assert begins == {
        topic(one): ('{"0":0,"1":0}', StartReason.EARLIEST),
        topic(other): ('{"0":0}', StartReason.EARLIEST),
    }
    assert edges(driver.lineage(first)) == {f"value <- {one}.value", f"value <- {other}.value"}
    broker.add(other, 0, 3_000)
    again = case.events_of(follow(case, place, topics))
    begins = {where(each): (each.version, each.reason) for each in the(JobStarted, again).starts_at}
    assert begins[topic(one)] == ('{"0":2,"1":1}', StartReason.CHECKPOINT)
    (second,) = commits(again)
    assert ranges(second) == {topic(other): ('{"0":1}', '{"0":2}', ReadMode.CHANGES)}
    assert not of(Gap, [*captured, *again])


@pytest.mark.long
def test_a_stream_of_a_pattern(driver: Driver, place: Place, broker: Broker) -> None:
    case = Case(driver)
    one, more = (broker.topic(f"of_{place.name}_{n}", (1_000,)) for n in range(2))
    captured = case.events_of(follow(case, place, {"subscribePattern": f"of_{place.name}_.*"}))
    (committed,) = commits(captured)
    assert ranges(committed) == {topic(name): ('{"0":0}', '{"0":1}', ReadMode.CHANGES) for name in (one, more)}


def test_no_secret_was_reported_by_any_case(driver: Driver, place: Place) -> None:
    ask: Callable[[Event], str] = lambda event: event.model_dump_json()  # noqa: E731
    place.events_of(subscribe=place.topic, **WITH_SECRETS)
    assert driver.bus.events
    assert not [event for event in driver.bus.events if "hunter2" in ask(event)]


@pytest.mark.smoke
def test_javac_agrees(driver: Driver, tmp_path: Path) -> None:
    assert not complaints_of_javac(driver.spark.sparkContext, tmp_path)
