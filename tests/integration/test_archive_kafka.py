"""A topic of a real broker in an archive: every record once and as it was, for DuckDB and Spark to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from headwater.cli import main
from headwater.consumers.archive.ordered_rows import Verification, missing_offsets
from headwater.consumers.archive.table import EventArchive
from headwater.local import Service
from tests.kit.archive.records import read_all
from tests.kit.archive.topics import Truth, as_truth, send, truth
from tests.kit.events.raw_records import kind_of
from tests.kit.spark.driver import DELTA
from tests.kit.spark.session import spark_session
from tests.kit.topics import new_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 3


def run(kafka: Service, topic: str, directory: Path, *more: str) -> None:
    flags = ["--bus", f"kafka://{kafka.address}/{topic}", "--archive", str(directory), "--group", topic]
    assert main(["archive", "run", *flags, "--until-end", *more]) == 0


@pytest.mark.kafka
def test_every_record_is_archived_once_and_as_it_was(
    kafka: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, directory = new_topic(kafka.address, "archive", PARTITIONS), tmp_path / "archive"
    send(kafka.address, topic, range(400), PARTITIONS)
    run(kafka, topic, directory)
    send(kafka.address, topic, range(400, 600), PARTITIONS)
    run(kafka, topic, directory)
    run(kafka, topic, directory)  # there is nothing more
    expected = truth(kafka.address, topic)
    assert len(expected) == 600
    assert as_truth(read_all(directory, most=1_000)) == expected
    verification = Verification(EventArchive.open(directory))
    assert list(verification.run())
    assert (verification.damages, verification.unarchived) == ([], [])
    assert committed(kafka, topic) == dict.fromkeys(range(PARTITIONS), 200)
    check_duckdb(directory, expected)
    capsys.readouterr()
    assert main(["archive", "status", "--archive", str(directory), "-o", "json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["archive"]["records"] == 600
    assert [(each["first"], each["next"], each["records"]) for each in status["partitions"]] == [(0, 200, 200)] * 3
    assert main(["archive", "compact", "--archive", str(directory), "--before", "2999-01-01"]) == 0
    assert as_truth(read_all(directory, most=1_000)) == expected
    assert main(["archive", "verify", "--archive", str(directory)]) == 0


def committed(kafka: Service, topic: str) -> dict[int, int]:
    client = Consumer({"bootstrap.servers": kafka.address, "group.id": topic})
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = {each.partition: each.offset for each in client.committed(places, timeout=60)}
    client.close()
    return found


def check_duckdb(directory: Path, expected: Truth) -> None:
    events = DeltaTable(str(directory)).to_pyarrow_dataset()
    assert events.count_rows() == len(expected)
    rows = duckdb.sql('SELECT "partition", "offset", data, key, epoch_us(append_time) FROM events').fetchall()
    assert {row[:2]: row[2:] for row in rows} == {place: (v[0], v[1], v[3]) for place, v in expected.items()}
    kinds = dict(duckdb.sql("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
    assert kinds["undecoded"] == sum(value[0] == b"no event" for value in expected.values())
    assert set(kinds) == {"Committed", "CreateTable", "undecoded"}
    assert duckdb.sql("SELECT count(*) FROM events WHERE (error IS NULL) = (kind = 'undecoded')").fetchall() == [(0,)]


@pytest.mark.long
@pytest.mark.kafka
def test_what_the_topic_had_forgotten_is_a_gap_of_the_archive(kafka: Service, tmp_path: Path) -> None:
    topic, directory = new_topic(kafka.address, "archive"), tmp_path / "archive"
    send(kafka.address, topic, range(10), 1)
    run(kafka, topic, directory)
    send(kafka.address, topic, range(10, 30), 1)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 25)]).values()
    assert deleted.result().low_watermark == 25
    run(kafka, topic, directory)
    archive = EventArchive.open(directory)
    ((gap, _),) = missing_offsets(archive, archive.refresh().files)
    assert (gap.first, gap.end, gap.reason.value) == (10, 25, "LOG_EXPIRED")
    assert [each.offset for each in read_all(directory)] == [*range(10), *range(25, 30)]
    verification = Verification(EventArchive.open(directory))
    assert list(verification.run())
    assert [(hole.first, hole.end, hole.why) for hole in verification.unarchived] == [(10, 25, "missing")]


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[SparkSession]:
    with spark_session(java_home, **{"spark.jars.packages": ",".join(DELTA.packages), **DELTA.conf}) as session:
        yield session


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_spark_reads_the_archive(spark: SparkSession, tmp_path: Path) -> None:
    from tests.kit.archive.records import DAY, FIRST, NOON, append, records

    archive = EventArchive.create(tmp_path / "archive")
    found = records(FIRST, 0, 40) + records(FIRST, 40, 60, time=NOON + DAY)
    append(archive, found)
    frame = spark.read.format("delta").load(str(tmp_path / "archive"))
    assert {"day", "kind", "data", "headers", "datasets"} <= set(frame.columns)
    rows = frame.select("offset", "data", "key", "headers").collect()
    got = {
        row["offset"]: (bytes(row["data"]), bytes(row["key"]), [(h["name"], bytes(h["value"])) for h in row["headers"]])
        for row in rows
    }
    assert got == {each.offset: (each.data, each.key, list(each.headers)) for each in found}
    assert frame.where("day = '2026-03-02'").count() == 20
    commits = sum(kind_of(each.data) == "Committed" for each in found)
    assert frame.where("kind = 'Committed' AND size(datasets) > 0").count() == commits > 0
