"""What a job does before capture is ready is read when it is, and what can't be is a Gap.

Capture waits here until the job says so: how long a machine takes to start it doesn't matter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.jvm.last_start import read_last_start
from headwater.jvm.loader import ClassOrigin
from tests.kit.drivers import PYTHON, SESSION, Ended, Place
from tests.kit.spark.hosting import configure
from tests.kit.spark.versions import packages

KEPT = (
    "test_what_a_job_did_before_a_late_start_is_read_once_and_in_order",
    "test_a_job_that_ends_before_capture_is_ready_is_a_gap",
)
pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.sample(2, keep=KEPT)]
LATE = """
import threading
from headwater.listeners.installation import InstallationFactories, contexts
go, factories = threading.Event(), contexts.factories
def make(*parts):
    go.wait()
    return factories.make_capture(*parts)
contexts.factories = InstallationFactories(factories.open_bus, make)
"""
KEEPING = """
from headwater.listeners.installation import installation
class Joined(installation.DaemonThread):
    def start(self):
        super().start()
        assert self.join(240)
installation.DaemonThread = Joined
"""
"""The job goes on only when what it does is kept, which otherwise takes the time that a machine takes."""
READY = """
go.set()
assert contexts._running[0]._worker.call(lambda: None, 120)
"""
LAST = """
spark.range(3).write.saveAsTable('late')
assert contexts._running[0].flush(120)
spark.stop()
"""


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    made = Place(tmp_path, java_home, patience=None)
    made.configure({"spark.headwater.capture.wait": "1s"})
    return made


def run(place: Place, job: str, before: str = KEEPING) -> Ended:
    ended = place.python(LATE + before + SESSION + job)
    assert ended.code == 0, ended.err
    return ended


def tables(ended: Ended) -> list[str]:
    """The tables and directories that were written, in the order in which that was reported."""
    outputs = [output for event in ended.of("Committed") for output in event["outputs"]]
    return [each["table"]["table"] if "table" in each else Path(each["dataset"]["name"]).name for each in outputs]


def test_what_a_job_did_before_a_late_start_is_read_once_and_in_order(place: Place) -> None:
    """Statements, those that fail, jobs of RDDs, threads born within, and blocks: each as it would be read at once."""
    job = """
import headwater.listeners as headwater
spark.range(3).write.saveAsTable("first")
spark.sql("CREATE TABLE IF NOT EXISTS first (id bigint) USING parquet")
spark.sql("CREATE TABLE IF NOT EXISTS made (id bigint) USING parquet")
try: spark.sql("INSERT INTO first SELECT raise_error('no')")
except Exception as e: assert "no" in str(e)
with headwater.job("block"):
    spark.sql("INSERT INTO made SELECT id FROM first")
spark.sparkContext.parallelize(["a"]).saveAsTextFile("text")
spark.table("first").write.parquet("files")
"""
    ended = run(place, job + READY + LAST)

    written = dict(zip(tables(ended), ended.of("Committed"), strict=True))
    assert len(written) == len(ended.of("Committed"))
    assert [name for name in written if name != "text"] == ["first", "made", "files", "late"]
    assert [name for name, event in written.items() if event["job"]["name"] == "block"] == ["made"]
    assert written["text"]["outputs"][0]["format"] == "TEXT"
    assert [event["identifier"]["table"] for event in ended.of("CreateTable")] == ["first", "made", "late"]
    assert not ended.of("Gap")
    assert "is read later" in ended.err


def test_a_stream_of_a_late_start_gives_its_batches_to_a_function(place: Place) -> None:
    """What the function writes is a statement of the micro-batch: that is only known of a query while it runs."""
    job = """
import os
os.makedirs("in"); open("in/a.csv", "w").write("1\\n")
def write(rows, number): rows.write.mode("append").saveAsTable("sink")
stream = spark.readStream.schema("id int").csv("in").writeStream.foreachBatch(write).trigger(availableNow=True)
query = stream.option("checkpointLocation", "checkpoint").start()
"""
    whole = job + "query.awaitTermination()\n" + READY + LAST
    ended = run(place, whole)
    assert [name for name in tables(ended) if name != "in"] == ["sink", "late"]
    assert not ended.of("Gap")


def test_what_was_not_kept_is_a_gap(place: Place) -> None:
    """Where nothing at all is waited for, the first statements come before there is anybody to keep them."""
    place.configure({"spark.headwater.capture.wait": "0s"})
    ended = run(place, "spark.range(3).write.saveAsTable('early')\n" + READY + LAST, before="")

    assert tables(ended)[-1] == "late"
    gap = ended.of("Gap")[0]
    assert gap["detail"].startswith("what the job did in the first ")
    assert gap["first_time"] < gap["last_time"] <= ended.of("Committed")[-1]["time"]
    assert gap["run"] == ended.of("Committed")[-1]["run"]


def test_a_job_that_ends_before_capture_is_ready_is_a_gap(place: Place) -> None:
    ended = run(place, "spark.range(3).write.saveAsTable('early')\nspark.stop()\n")

    (gap,) = ended.of("Gap")
    assert gap["detail"].startswith("the application ended before capture was ready")


def test_a_job_that_ends_before_there_is_a_spool_says_so(place: Place) -> None:
    """A Gap has nowhere to go: the driver's log is all there is."""
    place.configure({"spark.headwater.capture.wait": "0s"})
    never = LATE.replace("factories.open_bus, make)", "lambda *_, **__: go.wait(), make)")
    ended = place.python(never + SESSION + "spark.stop()\n")

    assert (ended.code, ended.events) == (0, [])
    assert "what it did isn't recorded, and as there was no spool yet, not even as a Gap" in ended.err


def test_a_driver_that_ends_before_its_classes_are_kept_says_so_and_the_next_one_keeps_them(
    tmp_path: Path, java_home: Path
) -> None:
    """Behind a start that compiles, what nothing needed so far takes seconds more: here it waits for the end."""
    place = Place(tmp_path, java_home)
    cache = str(tmp_path / "cache")
    root = Path(cache, "class-files")
    slow = """
import logging, threading
logging.basicConfig(level=logging.INFO)
from headwater.jvm.loader import SharedLoader
SharedLoader.keep = lambda *_: threading.Event().wait()
"""
    begun = f"""
import pathlib, time
deadline = time.monotonic() + 120
while not list(pathlib.Path({str(root)!r}).glob("begun-*.jar")) and time.monotonic() < deadline: time.sleep(0.05)
"""
    ended = place.python(slow + SESSION + begun + "spark.stop()\n", HEADWATER_CACHE=cache)
    assert "the end came before all classes were compiled and kept: the next driver compiles the rest" in ended.err
    assert [each.name.partition("-")[0] for each in root.glob("*.jar")] == ["begun"]
    first = read_last_start(root)
    assert first is not None
    assert first.origin is ClassOrigin.COMPILER

    joined = f"""
import pathlib, threading, time
deadline = time.monotonic() + 120
while list(pathlib.Path({str(root)!r}).glob("begun-*.jar")) and time.monotonic() < deadline: time.sleep(0.05)
for each in threading.enumerate():
    if each.name == "headwater-classes": each.join()
"""
    ended = place.python(SESSION + joined + "spark.stop()\n", HEADWATER_CACHE=cache)
    assert not list(root.glob("begun-*.jar")), ended.err
    place.python(SESSION + "spark.stop()\n", HEADWATER_CACHE=cache)
    last = read_last_start(root)
    assert last is not None
    assert (last.origin, last.spark) == (ClassOrigin.CACHE, first.spark)


ICEBERG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
    "spark.sql.catalog.ice.warehouse": "{warehouse}/ice",
}


def test_what_a_late_start_has_of_iceberg_is_exact_or_a_gap(place: Place) -> None:
    """Its hooks come when its first statements are over: their snapshots are looked for, as a table's own metadata has
    them, and that nobody saw what was committed outside of statements is a Gap. It compiles, as nothing is kept."""
    configure(place, packages("iceberg"), ICEBERG)
    job = """
spark.range(3).writeTo("ice.db.first").create()
spark.sql("INSERT INTO ice.db.first SELECT id FROM ice.db.first")
"""
    show = """
print(*[each.snapshot_id for each in spark.table("ice.db.first.snapshots").sort("committed_at").collect()])
"""
    whole = LATE + KEEPING + SESSION + job + show + READY + LAST
    ended = place.python(whole, HEADWATER_CACHE=str(place.folder / "empty"))

    assert ended.code == 0, ended.err
    assert tables(ended) == ["first", "first", "late"], [gap["detail"] for gap in ended.of("Gap")]
    created, inserted = (event["outputs"][0] for event in ended.of("Committed")[:2])
    assert [created.get("snapshot"), inserted.get("snapshot")] == [int(each) for each in ended.out.split()[-2:]]
    assert created["snapshot"] == inserted["parent"]
    assert [gap["detail"] for gap in ended.of("Gap")] == [
        "capture was late, and what was committed outside of statements until then wasn't seen"
    ]


BUSY = 4
KEPT_ON_TIME = "what it does until then is read later"
FIRST = {
    "parquet": """
spark.range(3).write.saveAsTable("first")
spark.sql("INSERT INTO first SELECT id FROM first")
""",
    "iceberg": """
spark.range(3).writeTo("ice.db.first").create()
spark.sql("INSERT INTO ice.db.first SELECT id FROM ice.db.first")
print(*[each.snapshot_id for each in spark.table("ice.db.first.snapshots").sort("committed_at").collect()])
""",
}
DONE = """
from headwater.listeners.installation import contexts
assert contexts._running[0]._worker.call(lambda: None, 200)
assert contexts._running[0].flush(200)
spark.stop()
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "iceberg"])
def test_a_driver_on_a_busy_core_that_has_to_compile_finds_every_statement(
    tmp_path: Path, java_home: Path, kind: str
) -> None:
    """As it is at night on an edge node, with the usual wait. On a slow machine that is over long before the classes
    are compiled; where it is over before anything can be kept, that is said."""
    place = Place(tmp_path, java_home, patience=None)
    if kind == "iceberg":
        configure(place, packages("iceberg"), ICEBERG)
    core = str(min(os.sched_getaffinity(0)))
    loop = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(["taskset", "-c", core, *loop]) for _ in range(BUSY)]
    try:
        text = 'spark.sparkContext.parallelize(["a"]).saveAsTextFile("text")\n'
        job = place.script(SESSION + text + FIRST[kind] + DONE)
        ended = place.run("taskset", "-c", core, PYTHON, job, HEADWATER_CACHE=str(tmp_path / "empty"))
    finally:
        for each in busy:
            each.kill()
            each.wait()

    assert ended.code == 0, ended.err
    gaps = [gap["detail"] for gap in ended.of("Gap")]
    assert not [detail for detail in gaps if "can't" in detail]
    if "headwater isn't ready after" in ended.err and KEPT_ON_TIME not in ended.err:
        assert any("before capture saw it" in detail for detail in gaps)
        return
    assert sorted(tables(ended)) == ["first", "first", "text"], gaps
    snapshots = [output.get("snapshot") for event in ended.of("Committed") for output in event["outputs"]]
    shown = ended.out.split()[-2:] if kind == "iceberg" else []
    assert [each for each in snapshots if each is not None] == [int(each) for each in shown]
