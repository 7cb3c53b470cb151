"""What capture costs a job: tiny INSERTs and SELECTs with it and without, in alternating rounds of one driver.

    python -m tests.benchmarks.capture [rounds] [statements]

`wall` is what the user's thread waits for a statement; `cpu` is all that the driver's JVM and this process used for it.
Medians over the rounds; rounds alternate, so that a slow minute of the machine hits both.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater import local
from tests.integration.spark_session import spark_session
from tests.matrix.harness import attached

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    conf = {"spark.sql.warehouse.dir": tempfile.mkdtemp(), "spark.jars.packages": ""}
    options = "-XX:+UseSerialGC"
    with spark_session(local.java().home, **conf, **{"spark.driver.extraJavaOptions": options}) as spark:
        spark.sql("CREATE TABLE a (id INT, s STRING) USING parquet")
        spark.sql("CREATE TABLE b (id INT, s STRING) USING parquet")
        spark.sql("INSERT INTO a VALUES (1, 'x')")
        for title, statement in (
            ("INSERT", lambda: spark.sql("INSERT OVERWRITE b SELECT * FROM a")),
            ("SELECT", lambda: spark.sql("SELECT count(*) FROM a").collect()),
        ):
            compare(spark, title, statement, rounds, count)


def compare(spark: SparkSession, title: str, statement: Callable[[], object], rounds: int, count: int) -> None:
    for _ in range(count):  # until the JVM has compiled what matters
        statement()
    without, with_it, events = [], [], 0
    for _ in range(rounds):
        without.append(measured(spark, statement, count))
        with attached(spark) as (capture, bus):
            for _ in range(20):
                statement()
            capture.drain(30)
            before = len(bus.bytes)
            with_it.append(measured(spark, statement, count, partial(capture.drain, 30)))
            events = sum(bus.bytes[before:]) // max(1, count)
    show(title, without, with_it, events)


def measured(
    spark: SparkSession, statement: Callable[[], object], count: int, settle: Callable[[], object] | None = None
) -> tuple[float, float]:
    """Milliseconds of wall time and of CPU for each statement."""
    cpu, began = cpu_seconds(spark), time.perf_counter()
    for _ in range(count):
        statement()
    wall = time.perf_counter() - began
    if settle is not None:
        settle()
    return wall / count * 1000, (cpu_seconds(spark) - cpu) / count * 1000


def cpu_seconds(spark: SparkSession) -> float:
    context: Any = spark.sparkContext
    jvm = context._jvm
    fields = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()


def show(title: str, without: list[tuple[float, float]], with_it: list[tuple[float, float]], events: int) -> None:
    for n, what in enumerate(("wall", "cpu")):
        bare, ours = (statistics.median(each[n] for each in rounds) for rounds in (without, with_it))
        print(
            f"{title:<8}{what:<6}{bare:8.2f} ms without {ours:8.2f} ms with  {ours - bare:+7.2f} ms  x{ours / bare:.3f}"
        )
    print(f"{title:<8}{events} bytes told per statement")


if __name__ == "__main__":
    main()
