"""The pipeline on a standalone cluster whose executors have nothing of headwater's: it comes as a zip, or within an
environment.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.events.avro import Codec
from headwater.lineage.store import Store
from headwater.local import KafkaServer
from tests.kit.drivers import BIN
from tests.kit.events.mixture import events
from tests.kit.spark.clusters import SPARK_HOME, make_python, make_zip, standalone_cluster
from tests.kit.spark.packages import package_settings
from tests.kit.topics import new_topic
from tests.kit.writers.pipeline import assert_by_law, new_store, produce, url_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("pipeline clusters"),
]
CODEC = Codec()
DATA = [CODEC.encode(each) for each in events(300, shapes=10)]
SECONDS = 420
APPLICATION = Path(__file__).parents[2] / "deploy" / "spark" / "pipeline.py"


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), java_home) as url:
        yield url


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, name, DATA)
    return name


def submit(java_home: Path, driver: Path, executor: str, *words: str | Path) -> str:
    """`spark-submit` of the script that is shipped; return what it said."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    environment = {
        **kept,
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_DRIVER_PYTHON": str(driver),
        "PYSPARK_PYTHON": executor,
    }
    packages = package_settings(java_home, kafka_package(str(pyspark.__version__)))
    conf = {**packages, "spark.executor.memory": "700m", "spark.ui.enabled": "false"}
    flags = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    command = [BIN / "spark-submit", *flags, *words]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
    return ended.stdout + ended.stderr


def flags_for(kafka: KafkaServer, topic: str, store: Store) -> list[str]:
    return ["--bus", f"kafka://{kafka.address}/{topic}", "--available-now", "--buckets", "2", "--store", url_of(store)]


def test_headwater_as_a_zip_is_enough_for_executors_that_have_the_rest(
    kafka: KafkaServer, topic: str, store: Store, master: str, tmp_path: Path
) -> None:
    bare = make_python(tmp_path / "bare", with_headwater=False)
    archive = make_zip(tmp_path / "headwater.zip", with_metadata=True)
    words: list[str | Path] = ["--master", master, "--py-files", archive, APPLICATION]
    submit(java_home_of(), bare, str(bare), *words, *flags_for(kafka, topic, store))
    assert_by_law(store, kafka, topic)


def test_an_environment_goes_to_executors_as_an_archive(
    kafka: KafkaServer, topic: str, store: Store, master: str, tmp_path: Path
) -> None:
    driver = make_python(tmp_path / "env", with_headwater=True)
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "env", ".")
    packed = ["--archives", f"{tmp_path}/environment.tar.gz#environment"]
    words: list[str | Path] = ["--master", master, *packed, APPLICATION]
    submit(java_home_of(), driver, "environment/bin/python", *words, *flags_for(kafka, topic, store))
    assert_by_law(store, kafka, topic)


def test_kafka_is_read_on_threads_of_spark_s_own(kafka: KafkaServer, topic: str, store: Store, tmp_path: Path) -> None:
    """Where Python is fed, Kafka's client may hang when a task is killed; Spark warns of that for each record."""
    driver = make_python(tmp_path / "env", with_headwater=True)
    flags = [*flags_for(kafka, topic, store), "--batch", "150"]
    said = submit(java_home_of(), driver, str(driver), "--master", "local[2]", APPLICATION, *flags)
    assert "UninterruptibleThread" not in said
    assert "AppInfoParser: Kafka version" in said, "Spark says what it does"
    assert_by_law(store, kafka, topic)


def java_home_of() -> Path:
    from headwater import local

    return local.java().home
