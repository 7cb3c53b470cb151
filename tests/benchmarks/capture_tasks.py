"""A job of 10,000 tasks with capture and without, in alternating rounds: of tasks nothing ever reaches Python.

python -m tests.benchmarks.capture_tasks [rounds] [tasks]
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from typing import TYPE_CHECKING

from headwater import local
from tests.benchmarks.driver_cpu import measured, show
from tests.kit.spark.driver import attached
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    tasks = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    options = "-XX:+UseSerialGC"
    conf = {"spark.sql.warehouse.dir": tempfile.mkdtemp(), "spark.jars.packages": ""}
    with spark_session(local.java().home, **conf, **{"spark.driver.extraJavaOptions": options}) as spark:
        compare(spark, rounds, tasks)


def compare(spark: SparkSession, rounds: int, tasks: int) -> None:
    def job() -> None:
        spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()

    job()
    without, with_it, events = [], [], 0
    for _ in range(rounds):
        without.append(measured(spark, job, 1))
        with attached(spark) as (capture, bus):
            with_it.append(measured(spark, job, 1, partial(capture.drain, 60)))
            events = sum(bus.bytes)
    show("tasks", without, with_it, events)


if __name__ == "__main__":
    main()
