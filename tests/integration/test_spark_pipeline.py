"""The pipeline on Spark ends in the rows that the writer makes of the same bus, whatever goes wrong on the way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from sqlalchemy import text

from headwater.cli import main
from headwater.consumers.spark.pipeline import PipelineRun, run_pipeline, runner, store_events
from headwater.consumers.spark.pipeline.batch_writer import BatchWriter, OrderedBatches
from headwater.consumers.spark.pipeline.records import SCHEMA
from headwater.consumers.spark.pipeline.shares import shuffle_keys
from headwater.errors import ConfigurationError
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.lineage.bulk import DeadLetter, DeadLetterReason, bump_epoch
from headwater.lineage.store import Store
from headwater.local import KafkaServer
from headwater.testing.examples import EXAMPLES
from tests.kit.events.hostile import FIXED as HOSTILE
from tests.kit.events.hostile import new_topic as new_hostile_topic
from tests.kit.events.mixture import events
from tests.kit.events.written import digest_by_law
from tests.kit.topics import create_topic, new_topic
from tests.kit.waiting import until
from tests.kit.writers.coordinated import refusing
from tests.kit.writers.pipeline import (
    GROUP,
    assert_by_law,
    digest_in,
    kafka_session,
    new_store,
    options_for,
    produce,
    url_of,
    written_by_writer,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.xdist_group("pipeline"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # Spark 3.5 compares the versions of pandas so
    pytest.mark.filterwarnings("ignore:distutils Version classes are deprecated:DeprecationWarning"),
]
CODEC = Codec()
SOUND = [CODEC.encode(each) for each in [*events(400, shapes=20), *EXAMPLES]]
BAD = [b"no event", b"", SOUND[0][:-1], SOUND[0] + b"\0"]
EVERYTHING = [*SOUND, *BAD, *SOUND[:100]]
"""Events, what is none, and events that come again."""


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[SparkSession]:
    with kafka_session(java_home) as session:
        yield session


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def bus(kafka: KafkaServer) -> tuple[KafkaServer, str]:
    """A broker, and a topic with everything. Its id has a character that librdkafka prints otherwise than Kafka."""
    name = next(
        name
        for name in (new_topic(kafka.address, "pipeline", 3) for _ in count())
        if {*"+/-_"} & {*printed_id(kafka, name)}
    )
    produce(kafka, name, EVERYTHING)
    return kafka, name


def printed_id(kafka: KafkaServer, topic: str) -> str:
    admin = AdminClient(kafka.client_config())
    until(lambda: topic in admin.list_topics(timeout=60).topics, f"the topic {topic}")
    return str(admin.describe_topics(TopicCollection([topic]))[topic].result().topic_id)


def letters_of(store: Store) -> list[DeadLetter]:
    return sorted((each for _, each in store.bulk.dead_letters()), key=lambda each: (each.partition, each.position))


def test_rows_letters_and_offsets_are_those_of_the_writer(
    spark: SparkSession, bus: tuple[KafkaServer, str], store: Store, other: Store, tmp_path: Path
) -> None:
    kafka, topic = bus
    options = options_for(store, kafka, topic, most_records=300)
    figures = run_pipeline(spark, options)
    assert figures.events == len(EVERYTHING)
    assert figures.batches >= 2
    assert figures.repeats == 0
    assert written_by_writer(kafka, topic, other) == len(EVERYTHING)
    assert digest_in(store) == digest_in(other)
    pairs = zip(letters_of(store), letters_of(other), strict=True)
    assert [difference for pair in pairs for difference in differences(*pair)] == []
    assert len(letters_of(store)) == len(BAD)
    assert store.bulk.offsets(GROUP) == other.bulk.offsets(GROUP)
    assert all(each in stored_until(store) for each in stored_until(other))
    assert run_pipeline(spark, options).events == 0
    assert written_by_writer(kafka, topic, store) == 0, "a writer of the group goes on where the pipeline ended"


def test_each_bucket_has_a_partition_of_its_own(spark: SparkSession) -> None:
    for buckets in (1, 2, 7, 64):
        keys = spark.createDataFrame([(key,) for key in shuffle_keys(spark, buckets)], "key int")
        found = keys.repartition(buckets, "key").selectExpr("spark_partition_id()").distinct()
        assert found.count() == keys.count() == buckets


@pytest.mark.long
def test_any_record_costs_itself(spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path) -> None:
    """Names of headers that are no text come through the JVM, as no other test sends them."""
    topic = new_hostile_topic(kafka, HOSTILE)
    options = options_for(store, kafka, topic.name)
    assert run_pipeline(spark, options).events == 2 * topic.sound
    assert {each.position for each in letters_of(store)} == {0, 2, 4}


@pytest.mark.long
def test_a_topic_whose_producers_set_times_is_refused(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path
) -> None:
    """One of their times ends Spark's Kafka source on each attempt."""
    topic = new_hostile_topic(kafka, HOSTILE, "CreateTime")
    with pytest.raises(ConfigurationError, match=r"message\.timestamp\.type=LogAppendTime"):
        run_pipeline(spark, options_for(store, kafka, topic.name))


def differences(one: DeadLetter, other: DeadLetter) -> list[tuple[str, object, object]]:
    return [(name, value, vars(other)[name]) for name, value in vars(one).items() if value != vars(other)[name]]


def stored_until(store: Store) -> dict[int, int]:
    with store.engine.connect() as connection:
        found = connection.execute(
            text("SELECT partition_number, stored_until FROM ingest_progress WHERE source = 'kafka'")
        )
        return {each[0]: each[1] for each in found}


@pytest.mark.long
def test_a_new_store_gets_everything_whatever_another_one_has(
    spark: SparkSession, kafka: KafkaServer, store: Store, other: Store
) -> None:
    topic = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, topic, SOUND[:200])
    run_pipeline(spark, options_for(store, kafka, topic))
    produce(kafka, topic, SOUND[200:])
    options = options_for(other, kafka, topic, most_records=150)
    assert run_pipeline(spark, options).events == len(SOUND)
    run_pipeline(spark, options_for(store, kafka, topic))
    assert digest_in(other) == digest_in(store)
    assert other.bulk.offsets(GROUP) == store.bulk.offsets(GROUP)


@pytest.mark.long
def test_what_the_database_refuses_is_found_event_by_event(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path
) -> None:
    topic = new_topic(kafka.address, "pipeline", 3)
    commits = [CODEC.encode(each) for each in events(300) if each.kind == "Committed"]
    produce(kafka, topic, commits)
    refused = CODEC.decode(commits[7]).barrier  # type: ignore[union-attr]
    with refusing(store, "commits", f"barrier <> {refused}"):
        figures = run_pipeline(spark, options_for(store, kafka, topic))
    assert (figures.repeats, figures.dead_letters, figures.events) == (1, 1, len(commits))
    (letter,) = letters_of(store)
    assert (letter.reason, letter.data, letter.key) == (DeadLetterReason.REFUSED, commits[7], b"key")
    assert sum(store.bulk.offsets(GROUP).values()) == len(commits)
    with store.engine.connect() as connection:
        found = connection.execute(
            text("SELECT count(*), sum(CASE barrier WHEN :at THEN 1 END) FROM commits"), {"at": refused}
        )
        assert found.one() == (len(commits) - 1, None)


@pytest.mark.long
def test_a_store_from_a_backup_gets_what_it_lacks_without_new_events(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path
) -> None:
    """Its offsets are the only ones."""
    topic = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, topic, SOUND[:200])
    options = options_for(store, kafka, topic)
    run_pipeline(spark, options)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM commits")
        connection.exec_driver_sql("UPDATE consumer_offsets SET next_offset = 0")
    assert run_pipeline(spark, options).events == 200
    assert_by_law(store, kafka, topic)


@pytest.mark.long
def test_where_something_is_deleted_meanwhile_events_are_written_again(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of some events half of the rows may have been there when the deletion looked."""
    topic = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, topic, SOUND)
    complete = vars(OrderedBatches)["_complete"]

    def delete_before(writer: BatchWriter, *arguments: Any) -> None:
        if writer.figures.repeats == 0:
            with store.engine.begin() as connection:
                bump_epoch(connection)
                connection.exec_driver_sql("DELETE FROM reads")
        complete(writer, *arguments)

    monkeypatch.setattr(BatchWriter, "_complete", delete_before)
    assert run_pipeline(spark, options_for(store, kafka, topic)).repeats == 1
    times = {each.append_time for each in letters_of(store)}
    assert not times
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM reads").scalar_one() > 0
    assert_by_law(store, kafka, topic)


@pytest.mark.long
def test_a_store_that_loses_acknowledged_rows_gets_them_again(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover between the tasks' transactions and the driver's: offsets must not pass what is lost."""
    topic = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, topic, SOUND)
    complete, lost = vars(OrderedBatches)["_complete"], list[int]()

    def lose_before(writer: BatchWriter, *arguments: Any) -> None:
        if not lost:
            with store.engine.begin() as connection:
                lost.append(connection.exec_driver_sql("DELETE FROM commits").rowcount)
                connection.exec_driver_sql("DELETE FROM writer_marks")
        complete(writer, *arguments)

    monkeypatch.setattr(BatchWriter, "_complete", lose_before)
    figures = run_pipeline(spark, options_for(store, kafka, topic))
    assert (figures.set_backs, lost[0] > 0) == (1, True)
    assert_by_law(store, kafka, topic)


@pytest.mark.long
def test_a_stop_ends_what_tasks_do_and_the_next_run_goes_on(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks would run for ever."""
    topic, begun = new_topic(kafka.address, "pipeline", 3), tmp_path / "begun"
    produce(kafka, topic, SOUND[:100])
    run = PipelineRun(spark, options_for(store, kafka, topic))
    with monkeypatch.context() as patched:
        patched.setattr(runner, "kafka_frame", lambda *_: spark.range(1).mapInArrow(endless(str(begun)), SCHEMA))
        thread = threading.Thread(target=run.run)
        thread.start()
        try:
            until(begun.exists, "the tasks have begun")
        finally:
            run.stop()
            thread.join(60)
        assert not thread.is_alive()
    assert not store.bulk.offsets(GROUP)
    assert run_pipeline(spark, options_for(store, kafka, topic)).events == 100
    assert_by_law(store, kafka, topic)


def endless(begun: str) -> Any:
    def run(batches: Any) -> Any:
        import time
        from pathlib import Path

        Path(begun).touch()
        while Path(begun).exists():
            time.sleep(0.05)
        yield from batches

    return run


@pytest.mark.long
def test_a_topic_that_is_made_anew_is_read_from_its_beginning(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path
) -> None:
    topic = new_topic(kafka.address, "pipeline")
    produce(kafka, topic, SOUND[:100], 1)
    run = PipelineRun(spark, options_for(store, kafka, topic, interval=0.0))
    thread = threading.Thread(target=run.run)
    thread.start()
    try:
        until(lambda: sum(store.bulk.offsets(GROUP).values()) == 100, "the old topic")
        admin = AdminClient(kafka.client_config())
        admin.delete_topics([topic])[topic].result()
        until(lambda: topic not in admin.list_topics(timeout=60).topics, "no topic")
        create_topic(kafka.address, topic)
        produce(kafka, topic, SOUND[100:200], 1)
        until(lambda: len(store.bulk.offsets(GROUP)) == 2, "the new topic")
        until(lambda: sorted(store.bulk.offsets(GROUP).values()) == [100, 100], "all of it")
    finally:
        run.stop()
        thread.join(60)
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT bounds FROM gaps WHERE reason = 'LOG_RECREATED'").scalars().all()
    assert [json.loads(each)["first_offset"] for each in found] == [100]


@pytest.mark.long
def test_a_local_log_into_sqlite(spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    log = LocalLog.open(tmp_path / "log")
    with log.writer() as one, log.writer() as other:
        for number, each in enumerate(EVERYTHING):
            (one if number % 3 else other).append(each)
    with new_store(request, tmp_path, "sqlite") as store:
        options = pipeline_options(store, log=tmp_path / "log", most_records=200)
        figures = run_pipeline(spark, options)
        assert (figures.events, figures.dead_letters) == (len(EVERYTHING), len(BAD))
        assert figures.batches >= 2
        assert run_pipeline(spark, options).events == 0
        assert digest_in(store) == digest_by_law(appended(tmp_path / "log"))


@pytest.mark.long
def test_an_archive_that_grows_into_sqlite(spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    half = len(EVERYTHING) // 2
    with new_store(request, tmp_path, "sqlite") as store:
        for events in (EVERYTHING[:half], EVERYTHING[half:]):
            with LocalLog.open(tmp_path / "log").writer() as writer:
                for each in events:
                    writer.append(each)
            places = ["--bus", f"log:{tmp_path / 'log'}", "--archive", str(tmp_path / "archive")]
            assert main(["archive", "run", *places, "--until-end"]) == 0
            options = pipeline_options(store, archive=str(tmp_path / "archive"), most_records=200)
            assert run_pipeline(spark, options).events == len(events)
        assert run_pipeline(spark, options).events == 0
        assert digest_in(store) == digest_by_law(appended(tmp_path / "log"))


def appended(directory: Path) -> list[tuple[bytes, int | None]]:
    """The log's events, with the times at which they were appended."""
    log, times = LocalLog.open(directory), list[tuple[bytes, int | None]]()
    for name in log.partitions():
        with log.reader(name).tail(0) as tail:
            while found := tail.read(10_000):
                times += [(each.value, each.time) for each in found.records if each.value not in BAD]
    return times


def pipeline_options(store: Store, **more: Any) -> Any:
    from headwater.consumers.spark.pipeline import PipelineOptions
    from headwater.lineage.store import StoreOptions

    return PipelineOptions(StoreOptions.at(url_of(store)), group=GROUP, **more)


@pytest.mark.long
def test_a_frame_of_ones_own_moves_no_offsets(spark: SparkSession, bus: tuple[KafkaServer, str], store: Store) -> None:
    kafka, topic = bus
    servers = {"kafka.bootstrap.servers": kafka.address, "subscribe": topic}
    frame = spark.read.format("kafka").options(**servers).load()
    figures = store_events(frame, url_of(store), topic=topic)
    assert (figures.events, figures.dead_letters) == (len(EVERYTHING), len(BAD))
    assert not store.bulk.offsets("headwater-pipeline")
    assert len(letters_of(store)) == len(BAD)
