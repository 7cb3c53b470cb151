"""A store that Spark's executors rebuild has the rows of the writer, from each kind of source, and takes its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.cli import main
from headwater.consumers.replay.archive_range import ArchiveRange
from headwater.consumers.replay.filling import BulkReaderMaker, ReplayInterrupted, ReplaySettings
from headwater.consumers.replay.kafka_range import KafkaRange
from headwater.consumers.replay.ranges import LogRange, Positions, RangeSource
from headwater.consumers.replay.replay import Replay, ReplayResult
from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, BatchWriter
from headwater.consumers.spark.pipeline.polled_batches import SparkRangeReader
from headwater.consumers.spark.pipeline.writing_tasks import StoreWriting
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.lineage.replacement.areas import Area, create_area, drop_area
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.local import KafkaServer
from headwater.testing.examples import EXAMPLES
from tests.kit.events.mixture import events
from tests.kit.topics import new_topic
from tests.kit.waiting import PATIENCE
from tests.kit.writers.pipeline import (
    GROUP,
    digest_in,
    kafka_session,
    new_store,
    produce,
    url_of,
    written_by_writer,
)
from tests.kit.writers.set_back import write_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("pipeline"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # Spark 3.5 compares the versions of pandas so
    pytest.mark.filterwarnings("ignore:distutils Version classes are deprecated:DeprecationWarning"),
]
CODEC = Codec()
SOUND = [CODEC.encode(each) for each in [*events(120, shapes=10), *EXAMPLES]]
EVERYTHING = [*SOUND, b"no event", SOUND[0][:-1], *SOUND[:40]]
MOST = 90
"""Of a portion: each source has several."""


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[SparkSession]:
    with kafka_session(java_home) as session:
        yield session


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request, tmp_path) as opened:
        yield opened
        for area in Area:
            drop_area(StoreOptions.at(url_of(opened)), area)


def by_spark(
    spark: SparkSession, servers: str = "", is_stopping: Callable[[], bool] = lambda: False
) -> BulkReaderMaker:
    def make(store: Store, options: StoreOptions) -> SparkRangeReader:
        settings = BatchSettings(GROUP, 2, MOST, is_stopping)
        make_writer = partial(BatchWriter, store.bulk, StoreWriting(options, PATIENCE))
        kafka = {"bootstrap.servers": servers}
        return SparkRangeReader(spark, store.bulk, make_writer, settings, kafka=lambda _: kafka, most_invalid=100)

    return make


def replayed(store: Store, sources: list[RangeSource], make: BulkReaderMaker | None) -> ReplayResult:
    settings = ReplaySettings(group=GROUP, batch=MOST)
    options = StoreOptions.at(url_of(store))
    return Replay(options, sources, settings, lambda _: None, make_bulk_reader=make).run()


def fresh_offsets(store: Store) -> Callable[[], Positions]:
    def offsets() -> Positions:
        with create_area(StoreOptions.at(url_of(store)), Area.FRESH) as fresh:
            return fresh.bulk.offsets(GROUP)

    return offsets


def kafka_range(kafka: KafkaServer, topic: str, store: Store) -> KafkaRange:
    settings = {name: str(value) for name, value in kafka.client_config().items()}
    return KafkaRange(f"kafka://{kafka.address}/{topic}", settings, topic, fresh_offsets(store))


def test_an_archive_and_then_its_topic_while_a_driver_is_stopped_between(
    spark: SparkSession, kafka: KafkaServer, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The topic goes on where the archive ends. The second run goes on behind the portions of the first one."""
    topic, directory = new_topic(kafka.address, "pipeline", 3), tmp_path / "archive"
    produce(kafka, topic, EVERYTHING[:150])
    bus = ["--bus", f"kafka://{kafka.address}/{topic}", "--archive", str(directory), "--group", topic]
    assert main(["archive", "run", *bus, "--until-end"]) == 0
    capsys.readouterr()
    produce(kafka, topic, EVERYTHING[150:], seed=8)
    written_by_writer(kafka, topic, store)
    before = digest_in(store)
    portions: list[int] = []

    def is_stopping() -> bool:
        portions.append(1)
        return len(portions) == 3

    def sources() -> list[RangeSource]:
        return [ArchiveRange("archive:x", str(directory), fresh_offsets(store)), kafka_range(kafka, topic, store)]

    with pytest.raises(ReplayInterrupted, match="the same command goes on"):
        replayed(store, sources(), by_spark(spark, kafka.address, is_stopping))
    done = sum(fresh_offsets(store)().values())
    assert 0 < done < len(EVERYTHING)
    result = replayed(store, sources(), by_spark(spark, kafka.address))
    assert result.is_switched
    assert result.events == len(EVERYTHING) - done
    with open_store(url_of(store)) as after:
        assert digest_in(after) == before
        assert sum(after.bulk.offsets(GROUP).values()) == len(EVERYTHING)


def test_a_local_log(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    log = LocalLog.open(tmp_path / "log")
    with log.writer() as writer:
        for each in EVERYTHING:
            writer.append(each)
    write_all(log, store)
    before = digest_in(store)
    result = replayed(store, [LogRange("log:x", log.directory, fresh_offsets(store))], by_spark(spark))
    assert result.is_switched
    assert (result.missing, result.events) == ([], len(EVERYTHING))
    with open_store(url_of(store)) as after:
        assert digest_in(after) == before


def test_the_command(
    java_home: Path, kafka: KafkaServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another process, with a session of its own."""
    import json
    import subprocess
    import sys

    import pyspark

    from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
    from tests.kit.spark.packages import package_settings

    topic = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, topic, EVERYTHING)
    written_by_writer(kafka, topic, store)
    before = digest_in(store)
    jars = package_settings(java_home, kafka_package(str(pyspark.__version__)))
    conf = [f"--conf={key}={value}" for key, value in {**jars, "spark.ui.enabled": "false"}.items()]
    command: list[Any] = [
        sys.executable,
        "-m",
        "headwater.cli",
        "-o",
        "json",
        "replay",
        "--by",
        "spark",
        "--master",
        "local[2]",
        *conf,
    ]
    bus = ["--from", f"kafka://{kafka.address}/{topic}", "--store", url_of(store), "--group", GROUP, "--batch", "200"]
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    done = subprocess.run([*command, *bus], capture_output=True, text=True, timeout=5 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["replay"]["switched"], "nothing but the answer is there"
    with open_store(url_of(store)) as after:
        assert digest_in(after) == before
