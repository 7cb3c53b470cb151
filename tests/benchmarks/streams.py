"""What capture costs a stream: micro-batches from Delta to Delta with it and without, and what a thousand leave behind.

    python -m tests.benchmarks.streams [rounds] [batches] [of the long run]

Each round reads as many versions of a table, one with each micro-batch, at a trigger of a second. `wall` is what Spark
says that a trigger took, `cpu` all that the driver's JVM and this process used for it. The long run counts what the
JVM's heap and this process hold after so many micro-batches.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater import local
from headwater.events import Committed
from tests.benchmarks.driver_cpu import driver_cpu, show
from tests.kit.spark.driver import DELTA, TestBus, attached
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF: Final = {
    **DELTA.conf,
    "spark.jars.packages": ",".join(DELTA.packages),
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}


def main() -> None:
    rounds, batches, most = (
        int(sys.argv[n]) if len(sys.argv) > n else usual for n, usual in ((1, 3), (2, 20), (3, 1000))
    )
    with folder() as root, spark_session(local.java().home, **CONF, **{"spark.sql.warehouse.dir": str(root)}) as spark:
        spark.sql("CREATE TABLE source (id BIGINT, v STRING) USING delta")
        for number in range(batches):
            spark.sql(f"INSERT INTO source VALUES ({number}, 'x')")
        compare(spark, root, rounds, batches)
        long_run(spark, root, most)


def compare(spark: SparkSession, root: Path, rounds: int, batches: int) -> None:
    stream(spark, root / "warm", batches, "0 seconds")
    without, with_it, sizes = [], [], [0]
    for number in range(rounds):
        without.append(measured(spark, root / f"without-{number}", batches))
        with attached(spark) as (capture, bus):
            stream(spark, root / f"ready-{number}", 3, "0 seconds")
            capture.drain(30)
            before = len(bus.events)
            with_it.append(measured(spark, root / f"with-{number}", batches, partial(capture.drain, 30)))
            sizes = sizes_of(bus, before)
    show("BATCH", without, with_it, round(statistics.median(sizes)))


def sizes_of(bus: TestBus, before: int) -> list[int]:
    """Bytes of each micro-batch's one event, those aside that are reported once for the query."""
    events = zip(bus.events[before:], bus.bytes[before:], strict=True)
    return [size for event, size in events if isinstance(event, Committed)]


def measured(
    spark: SparkSession, place: Path, batches: int, settle: Callable[[], object] | None = None
) -> tuple[float, float]:
    cpu = driver_cpu(spark).total
    walls = stream(spark, place, batches, "1 second")
    if settle is not None:
        settle()
    return statistics.median(walls), (driver_cpu(spark).total - cpu) / batches * 1000


def stream(spark: SparkSession, place: Path, batches: int, trigger: str) -> list[float]:
    """Milliseconds of each trigger."""
    source: Any = spark.readStream.option("maxFilesPerTrigger", 1).option("startingVersion", 1).table("source")
    writer = source.writeStream.format("delta").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(processingTime=trigger).start(str(place / "sink"))
    try:
        while len(done := [each for each in query.recentProgress if each["numInputRows"]]) < batches:
            if query.exception() is not None:
                raise SystemExit(f"the query failed: {query.exception()}")
            time.sleep(0.2)
    finally:
        query.stop()
    return [float(each["durationMs"]["triggerExecution"]) for each in done[:batches]]


def long_run(spark: SparkSession, root: Path, most: int) -> None:
    """Rows that are made up, into files: a micro-batch takes some tens of milliseconds."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    with attached(spark) as (capture, bus):
        writer = rate.writeStream.format("parquet").option("checkpointLocation", str(root / "long"))
        query = writer.trigger(processingTime="0 seconds").start(str(root / "files"))
        try:
            for goal in (most // 5, most // 2, most):
                while (last := query.lastProgress) is None or last["batchId"] < goal:
                    if query.exception() is not None:
                        raise SystemExit(f"the query failed: {query.exception()}")
                    time.sleep(0.2)
                capture.drain(30)
                events = sum(isinstance(event, Committed) for event in bus.events)
                bus.events.clear()
                print(
                    f"LONG    {goal:6} micro-batches: {events} commits since, heap {heap(spark)} MB, process {rss()} MB"
                )
        finally:
            query.stop()


def heap(spark: SparkSession) -> int:
    context: Any = spark.sparkContext
    runtime = context._jvm.java.lang.Runtime.getRuntime()
    context._jvm.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory()) >> 20


def rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20


@contextmanager
def folder() -> Generator[Path, None, None]:
    root = Path(tempfile.mkdtemp())
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
