"""Ways to bring headwater to a driver, and clusters that run its executors: does the shipper start there, does every
event arrive, and do executors need anything of headwater's?
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.kit.drivers import BIN, SECONDS, Ended, Event, Place
from tests.kit.spark.clusters import SPARK_HOME, make_python, make_zip, standalone_cluster
from tests.kit.spark.packages import package_settings

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.spark, pytest.mark.xdist_group("clusters")]

HUDI = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1"
HUDI_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
CALL = "import headwater.listeners\n"
INSTALL = "headwater.listeners.install(spark)\n"
SESSION = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.appName("orders").getOrCreate()
"""
WRITE = """
def look(_):
    import importlib.util, sys
    return [(sys.executable, importlib.util.find_spec("headwater") is not None)]
((python, has_headwater),) = spark.sparkContext.parallelize([1], 1).flatMap(look).collect()
print("EXECUTOR", python, has_headwater)
twice = udf(lambda x: x * 2, "long")
spark.range(5).select("id", twice("id").alias("v")).write.parquet("a")
spark.read.parquet("a").write.parquet("b")
"""
HUDI_WRITE = """
spark.sql(
    "CREATE TABLE h (id INT, v STRING, ts LONG) USING hudi LOCATION '{place}/h' "
    "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
)
spark.sql("INSERT INTO h VALUES (1, 'k', 5)")
"""
STOP = "spark.stop()\n"


class ClusterPlace(Place):
    """Events go through the shipper into a local log; `python` runs the driver, `executor` the executors' workers."""

    def __init__(self, folder: Path, java_home: Path, python: Path, executor: Path) -> None:
        super().__init__(folder, java_home, patience=None)
        self.configure(
            {
                "spark.headwater.listeners": "log",
                "spark.log.level": "WARN",
                "spark.headwater.log.isolation": "process",
                "spark.headwater.log.dir": str(folder / "log"),
                "spark.executor.memory": "700m",
                "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "spark.hadoop.fs.defaultFS": "file:///",
            }
        )
        self.environment |= {
            "SPARK_HOME": str(SPARK_HOME),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "PYSPARK_PYTHON": str(executor),
        }
        del self.environment["PYTHONPATH"]

    def submit(self, script: str, *arguments: str | Path) -> Ended:
        return self.run(BIN / "spark-submit", *arguments, self.script(script))

    def ended(self, code: int, out: str, err: str) -> Ended:
        return Ended(code, out, err, self.delivered())

    def delivered(self) -> list[Event]:
        """What the local log has, in its order."""
        if not (self.folder / "log").exists():
            return []
        command = [str(BIN / "headwater"), "events", "cat", "--from", f"log:{self.folder / 'log'}", "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with Spark and all that headwater needs, but without headwater."""
    return make_python(tmp_path_factory.mktemp("bare") / "env", with_headwater=False)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with headwater, in an environment that was moved after it was made, as a packed one is."""
    folder = tmp_path_factory.mktemp("moved")
    python = make_python(folder / "made", with_headwater=True)
    (folder / "made").rename(folder / "env")
    return folder / "env" / python.relative_to(folder / "made")


def assert_delivered(ended: Ended, place: ClusterPlace, executor: Path, *, has_headwater: bool = False) -> None:
    """Every event is there once, from the first to the last, and nothing of headwater's was where tasks ran."""
    assert ended.code == 0, ended.out[-3000:] + ended.err[-3000:]
    assert f"EXECUTOR {executor} {has_headwater}" in ended.out, ended.out
    assert ended.kinds()[0] == "JobStarted"
    assert ended.kinds()[-1] == "Closed"
    assert ended.events[-1]["complete"] is True
    assert not ended.of("Gap")
    assert [int(each["sequence"]) for each in ended.events] == [*range(1, len(ended.events) + 1)]
    outputs = [output for each in ended.of("Committed") for output in each["outputs"]]
    assert [each["dataset"]["name"].rpartition("/")[2] for each in outputs][:2] == ["a", "b"]
    assert not list((place.folder / "spool").glob("*/*.segment")), "all was delivered"


@pytest.mark.parametrize("with_metadata", [True, False], ids=["with metadata", "the package alone"])
def test_a_driver_that_has_headwater_from_a_zip(
    with_metadata: bool, bare: Path, tmp_path: Path, java_home: Path
) -> None:
    archive = make_zip(tmp_path / "headwater.zip", with_metadata=with_metadata)
    place = ClusterPlace(tmp_path, java_home, bare, bare)
    script = CALL + SESSION + INSTALL + WRITE + STOP
    ended = place.submit(script, "--py-files", archive)
    assert_delivered(ended, place, bare, has_headwater=True)  # Spark sends the zip to executors too


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,1,1024]"])
def test_a_driver_in_an_environment_that_was_moved(
    master: str, moved: Path, bare: Path, tmp_path: Path, java_home: Path
) -> None:
    place = ClusterPlace(tmp_path, java_home, moved, bare)
    ended = place.submit(SESSION + WRITE + STOP, "--master", master)
    assert_delivered(ended, place, bare)


def test_a_standalone_cluster(moved: Path, bare: Path, tmp_path: Path, java_home: Path) -> None:
    """With Hudi, into whose commits a callback of headwater's is put: no executor needs it."""
    place = ClusterPlace(tmp_path, java_home, moved, bare)
    place.configure({**HUDI_SETTINGS, **package_settings(java_home, HUDI)})
    with standalone_cluster(tmp_path, java_home) as master:
        ended = place.submit(SESSION + WRITE + HUDI_WRITE.format(place=tmp_path) + STOP, "--master", master)
        refused = place.submit(STOP, "--master", master, "--deploy-mode", "cluster")
    assert_delivered(ended, place, bare)
    (hudi,) = [output for each in ended.of("Committed") for output in each["outputs"] if output.get("table")]
    assert hudi["snapshot"], "the callback gave it"
    said = [each.read_text(errors="replace") for each in (tmp_path / "work").rglob("std*")]
    assert said
    assert not [each for each in said if "headwater" in each or "ClassNotFound" in each]
    assert refused.code != 0
    assert "not supported for python applications on standalone clusters" in refused.err
