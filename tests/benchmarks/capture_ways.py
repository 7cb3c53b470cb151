"""The tap beside the simple alternative: a proxy of the JDK's that puts events into a queue, which Python reads.

    python -m tests.benchmarks.capture_ways [rounds] [statements]

The alternative does the least of what is needed: it finds the statement's end, and takes the plan as JSON. It makes no
events. The same INSERT for all three, in alternating rounds of one driver.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater import local
from tests.benchmarks.driver_cpu import measured
from tests.kit.spark.driver import attached
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSERT = "INSERT OVERWRITE b SELECT * FROM a"


class Proxied:
    """What `java.beans.EventHandler` lets through, read by a thread of Python's."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        jvm = context._jvm
        named = jvm.java.lang.Class.forName
        self._queue = jvm.java.util.concurrent.LinkedBlockingQueue(10_000)
        self._unit = jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        kind = named("org.apache.spark.scheduler.SparkListenerInterface")
        self._listener = jvm.java.beans.EventHandler.create(kind, self._queue, "offer", "", "onOtherEvent")
        self._bus = context._jsc.sc().listenerBus()
        self._bus.addToQueue(self._listener, "proxied")
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.read = 0

    def _run(self) -> None:
        while not self._is_stopped:
            event = self._queue.poll(200, self._unit)
            if event is not None and event.getClass().getSimpleName() == "SparkListenerSQLExecutionEnd":
                self.read += bool(event.qe().analyzed().toJSON())

    def drain(self) -> bool:
        self._bus.waitUntilEmpty(30_000)
        while not self._queue.isEmpty():
            threading.Event().wait(0.001)
        return True

    def stop(self) -> None:
        self._is_stopped = True
        self._thread.join()
        self._bus.removeListener(self._listener)


@contextmanager
def tap(spark: SparkSession) -> Generator[Callable[[], bool], None, None]:
    with attached(spark) as (capture, _):
        yield partial(capture.drain, 30)


@contextmanager
def proxy(spark: SparkSession) -> Generator[Callable[[], bool], None, None]:
    proxied = Proxied(spark)
    try:
        yield proxied.drain
    finally:
        proxied.stop()


@contextmanager
def nothing(spark: SparkSession) -> Generator[Callable[[], bool], None, None]:
    yield lambda: True


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    conf = {"spark.sql.warehouse.dir": tempfile.mkdtemp(), "spark.jars.packages": ""}
    options = "-XX:+UseSerialGC"
    with spark_session(local.java().home, **conf, **{"spark.driver.extraJavaOptions": options}) as spark:
        spark.sql("CREATE TABLE a (id INT, s STRING) USING parquet")
        spark.sql("CREATE TABLE b (id INT, s STRING) USING parquet")
        spark.sql("INSERT INTO a VALUES (1, 'x')")
        compare(spark, rounds, count)


def compare(spark: SparkSession, rounds: int, count: int) -> None:
    ways = {"nothing": nothing, "the tap": tap, "a proxy and toJSON": proxy}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            with way(spark) as drain:
                measured(spark, lambda: spark.sql(INSERT), 10, drain)
                taken = measured(spark, lambda: spark.sql(INSERT), count, drain)
            if number:  # the first warms up
                found[name].append(taken)
    print(f"{'ms per INSERT':<24}{'wall':>10}{'ratio':>8}{'CPU':>10}{'more':>8}")
    bare = [statistics.median(each[n] for each in found["nothing"]) for n in (0, 1)]
    for name, rows in found.items():
        wall, cpu = (statistics.median(each[n] for each in rows) for n in (0, 1))
        print(f"{name:<24}{wall:>10.2f}{wall / bare[0]:>8.3f}{cpu:>10.2f}{cpu - bare[1]:>+8.2f}")


if __name__ == "__main__":
    main()
