"""A driver that is killed in the middle of a micro-batch, and the one after it: no snapshot of another batch is
reported, and in the end each is recorded with the batch that made it.

Truth: the commit files of the sinks, in which Delta keeps which query and batch each version is of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.kit.drivers import Ended, Event, Place
from tests.kit.spark.driver import DELTA
from tests.kit.spark.hosting import configure
from tests.kit.spark.streams import barriers, query_id

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.sample(1), pytest.mark.long]

JOB: Final = """
import os, signal, sys
from pyspark.sql import SparkSession
root, point, doomed = sys.argv[1:]
spark = SparkSession.builder.appName("orders").getOrCreate()
if not os.path.exists(root + "/source"):
    for number in range(3):
        spark.range(number, number + 1).write.format("delta").mode("append").save(root + "/source")
machine = spark._jvm.java.lang.ProcessHandle.current().pid()

def reached(here, number):
    if (here, number) == (point, int(doomed)):
        os.kill(machine, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

def write(frame, number):
    reached("begun", number)
    for name in ("one", "two"):
        writer = frame.write.format("delta").mode("append").option("txnAppId", "orders")
        writer.option("txnVersion", number).save(f"{root}/{name}")
        reached(name, number)

source = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).option("startingVersion", 0)
query = source.load(root + "/source").writeStream.foreachBatch(write).queryName("copy")
query = query.option("checkpointLocation", root + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
spark.stop()
"""
SINKS: Final = ("one", "two")


@pytest.mark.parametrize(
    ("point", "batch"),
    [
        ("one", 1),
        pytest.param("begun", 0, marks=pytest.mark.long),
        pytest.param("one", 0, marks=pytest.mark.long),
        pytest.param("begun", 1, marks=pytest.mark.long),
        ("two", 1),
        pytest.param("two", 2, marks=pytest.mark.long),
    ],
)
def test_killed_in_mid_batch(tmp_path: Path, java_home: Path, point: str, batch: int) -> None:
    place, root = Place(tmp_path, java_home), tmp_path / "data"
    configure(place, DELTA.packages, DELTA.conf)
    killed = place.python(JOB, str(root), point, str(batch))
    assert killed.code == -9, killed.err[-3000:]
    restarted = place.python(JOB, str(root), "never", "0")
    assert restarted.code == 0, restarted.err[-3000:]

    made = {(sink, version): number for sink in SINKS for version, number in batches(root / sink).items()}
    emitted = [each for run in (killed, restarted) for each in outputs(run)]
    assert [(sink, version, made[sink, version]) for sink, version, _, _ in emitted] == [
        (sink, version, number) for sink, version, number, _ in emitted
    ]
    assert {(sink, version) for sink, version, _, _ in emitted} == made.keys()
    checkpoint = root / "checkpoint"
    assert {(number, barrier) for _, _, number, barrier in emitted} == set(
        zip(range(3), barriers(checkpoint, range(3)), strict=True)
    )
    assert {each["incarnation"] for each in commits(restarted)} == {str(query_id(checkpoint))}
    assert [each for run in (killed, restarted) for each in run.of("Gap")] == []


@pytest.mark.long
def test_a_query_whose_driver_was_killed_goes_on_in_another_run(tmp_path: Path, java_home: Path) -> None:
    place, root = Place(tmp_path, java_home), tmp_path / "data"
    configure(place, DELTA.packages, DELTA.conf)
    killed = place.python(JOB, str(root), "begun", "2")
    restarted = place.python(JOB, str(root), "never", "0")
    first, second = (started(run) for run in (killed, restarted))
    assert first["run"] != second["run"]
    assert first["stream"]["query"] == second["stream"]["query"] == str(query_id(root / "checkpoint"))
    assert second["starts_at"][0]["reason"] == "CHECKPOINT"
    assert second["starts_at"][0]["snapshot"] == 1
    assert [each for each in restarted.statuses() if each.startswith("copy ")] == ["copy FINISHED"]
    assert [each for each in killed.statuses() if each.startswith("copy ")] == []


def batches(table: Path) -> dict[int, int]:
    """By version, the batch that made it."""
    found = {}
    for file in sorted((table / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            if "txn" in (action := json.loads(line)):
                found[int(file.stem)] = int(action["txn"]["version"])
    return found


def commits(run: Ended) -> list[Event]:
    return [each for each in run.of("Committed") if "incarnation" in each]


def outputs(run: Ended) -> Iterable[tuple[str, int, int, int]]:
    """Sink, version, batch and barrier, as they were reported."""
    for commit in commits(run):
        for output in commit["outputs"]:
            yield (
                output["dataset"]["name"].rpartition("/")[2],
                output["snapshot"],
                commit["batch_id"],
                commit["barrier"],
            )


def started(run: Ended) -> Event:
    return next(each for each in run.of("JobStarted") if each["scope"] == "QUERY")
