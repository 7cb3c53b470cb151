"""headwater watches the pipeline as any job, if asked. What it says of it may come over the bus that the pipeline
reads, so no micro-batch may be the cause of an event: each would be the cause of the next one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.events import JobStatusChanged
from headwater.events.avro import Codec
from headwater.lineage.store import Store
from headwater.local import KafkaServer
from headwater.testing.examples import EXAMPLES
from tests.kit.drivers import PATIENT
from tests.kit.spark.packages import package_settings
from tests.kit.topics import new_topic, values_of
from tests.kit.waiting import until
from tests.kit.writers.pipeline import GROUP, new_store, produce, url_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("pipeline own lineage"),
]
CODEC = Codec()
SECONDS = 400
NAME = "filling the store"
OF_A_RUN = {"JobStarted": 1, "JobStatusChanged": 2, "Closed": 1}
"""Of the application: a micro-batch is none of its own."""


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request, tmp_path, "sqlite") as opened:
        yield opened


class Pipeline:
    """A pipeline with its own lineage on the topic that it reads."""

    def __init__(self, kafka: KafkaServer, topic: str, store: Store, java_home: Path, place: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        self._environment = {
            **kept,
            "JAVA_HOME": str(java_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        (place / "sitecustomize.py").write_text(PATIENT.format(patience=SECONDS))
        conf = {
            **package_settings(java_home, kafka_package(str(pyspark.__version__))),
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.headwater.enabled": "true",
            "spark.headwater.listeners": "kafka",
            "spark.headwater.kafka.bootstrap.servers": kafka.address,
            "spark.headwater.kafka.topic": topic,
            "spark.headwater.job.heartbeat": "1 h",
            "spark.headwater.capture.wait": f"{SECONDS} s",
            "spark.headwater.spool.dir": str(place / "spool"),
        }
        self._conf = [f"--conf={key}={value}" for key, value in conf.items()]
        bus = ["--bus", f"kafka://{kafka.address}/{topic}"]
        self._flags = [*bus, "--store", url_of(store), "--group", GROUP]
        self._log = place / "pipeline.log"

    def run(self, *flags: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """`headwater pipeline run`. Under spark-submit Spark's JVM would get the signals."""
        command = [sys.executable, "-m", "headwater.cli", "pipeline", "run", "--master", "local[1]"]
        return self._started(*command, f"--conf=spark.app.name={NAME}", *self._conf, *self._flags, *flags)

    @contextmanager
    def _started(self, *command: str) -> Generator[subprocess.Popen[bytes]]:
        with self._log.open("a") as log:
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        assert process.wait(SECONDS) == 0, self._log.read_text()[-4000:]


def events_of_the_pipeline(kafka: KafkaServer, topic: str) -> list[Any]:
    """All events that nobody produced here."""
    ours = {each.event_id for each in EXAMPLES}
    events: list[Any] = [CODEC.decode(each) for each in values_of(kafka, topic)]
    return [each for each in events if each.event_id not in ours]


def stored(store: Store) -> int:
    return sum(store.bulk.offsets(GROUP).values())


def completed(store: Store) -> int:
    with store.engine.connect() as connection:
        query = "SELECT count(*) FROM writer_instants WHERE state = 'COMPLETED'"
        return int(connection.exec_driver_sql(query).scalar_one())


def test_a_watched_pipeline_does_not_feed_on_itself(
    kafka: KafkaServer, store: Store, java_home: Path, tmp_path: Path
) -> None:
    topic = new_topic(kafka.address, "pipeline")
    pipeline = Pipeline(kafka, topic, store, java_home, tmp_path)
    data = [CODEC.encode(each) for each in EXAMPLES]
    produce(kafka, topic, data[:-4], 1)
    with pipeline.run("--trigger", "100ms") as process:
        until(lambda: stored(store) >= len(data), "what the pipeline says of its start", seconds=SECONDS)
        for each in data[-4:]:
            batches, before = completed(store), stored(store)
            produce(kafka, topic, [each], 1)
            until(lambda: completed(store) > batches and stored(store) > before, "one more", seconds=SECONDS)  # noqa: B023
        assert completed(store) >= 5
        process.terminate()
        pipeline.wait(process)
    own = events_of_the_pipeline(kafka, topic)
    assert Counter(each.kind for each in own) == OF_A_RUN, "none of a micro-batch"
    ends = {each.job.name: each.status.value for each in own if isinstance(each, JobStatusChanged) and each.job}
    assert ends == {NAME: "ENDED"}
