"""Large statements: how long after their end the events are ready, how many bytes are sent; and what starting
costs.

    python -m tests.benchmarks.capture_shapes

The aims: ready within half a second of the statement's end; an INSERT of 31 joined tables under 40 KB in all its
events; a statement of one table under 0.6 KB each time it is repeated. Each commit names all it read, so that one of 31
tables is longer. Beside it, measured on a like machine, the leading peer: a 31-table join
2.0 MB in 34 events, a CTAS of 2,000 columns 829 KB without column lineage.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from headwater import local
from tests.benchmarks.driver_cpu import driver_cpu
from tests.benchmarks.harness import Aims
from tests.kit.faults.capture import another_context
from tests.kit.spark.driver import TestBus, attached
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.listeners.capture import Capture

JOINS, COLUMNS, REPEATED = 31, 2_000, 5
AIMS = {"31 joins": (40_000, None), "2,000 columns": (None, None), "one table": (None, 600)}
READY = 0.5


def statement_of(title: str) -> str:
    if title == "31 joins":
        joined = " ".join(f"JOIN t{n} ON t0.id = t{n}.id" for n in range(1, JOINS))
        return f"INSERT OVERWRITE joined SELECT {', '.join(f't{n}.v AS v{n}' for n in range(JOINS))} FROM t0 {joined}"
    if title == "2,000 columns":
        return "INSERT OVERWRITE copied SELECT " + ", ".join(f"c{n} + 1" for n in range(COLUMNS)) + " FROM wide"
    return "INSERT OVERWRITE t1 SELECT * FROM t0"


def make_tables(spark: SparkSession) -> None:
    for n in range(JOINS):
        spark.sql(f"CREATE TABLE t{n} USING parquet AS SELECT id, id AS v FROM range(1)")
    spark.sql("CREATE TABLE joined USING parquet AS SELECT " + ", ".join(f"0L AS v{n}" for n in range(JOINS)))
    for name in ("wide", "copied"):
        spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT " + ", ".join(f"0 AS c{n}" for n in range(COLUMNS)))


def events_of(spark: SparkSession, capture: Capture, bus: TestBus, statement: str) -> tuple[float, int, int]:
    """Seconds from the statement's end until its events are there, how many they are, and their bytes."""
    capture.drain(60)
    before = len(bus.bytes)
    spark.sql(statement)
    ended = time.perf_counter()
    if not capture.drain(60):
        raise SystemExit("nothing was told in a minute")
    return time.perf_counter() - ended, len(bus.bytes) - before, sum(bus.bytes[before:])


def shapes(spark: SparkSession, capture: Capture, bus: TestBus, aims: Aims) -> None:
    print(f"{'':<16}{'ready ms':>10}{'events':>8}{'bytes':>10}{'again ms':>10}{'again bytes':>12}")
    for title, (most, most_again) in AIMS.items():
        ready, count, size = events_of(spark, capture, bus, statement_of(title))
        again = [events_of(spark, capture, bus, statement_of(title)) for _ in range(REPEATED)]
        ready_again, size_again = statistics.median(each[0] for each in again), again[-1][2]
        print(f"{title:<16}{ready * 1000:>10.0f}{count:>8}{size:>10,}{ready_again * 1000:>10.0f}{size_again:>12,}")
        aims.at_most(f"{title}: ready", ready_again * 1000, READY * 1000, "ms")
        if most is not None:
            aims.at_most(f"{title}: all its events", size, most, "bytes")
        if most_again is not None:
            aims.at_most(f"{title}: each time it is repeated", size_again, most_again, "bytes")


def start(spark: SparkSession, title: str) -> None:
    """What attaching to a context costs."""
    began, cpu = time.perf_counter(), driver_cpu(spark).total
    with attached(spark):
        wall, used = time.perf_counter() - began, driver_cpu(spark).total - cpu
    print(f"attaching, {title:<30}{wall * 1000:>8.0f} ms{used * 1000:>8.0f} ms of CPU")


def main() -> int:
    """Print the tables; 1 if an aim is missed."""
    aims = Aims()
    place = tempfile.mkdtemp()
    conf = {"spark.jars.packages": "", "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Dderby.system.home={place}"}
    with spark_session(local.java().home, **conf, **{"spark.sql.warehouse.dir": f"{place}/1"}) as spark:
        make_tables(spark)
        start(spark, "first in the JVM")
        start(spark, "again")
        with attached(spark) as (capture, bus):
            for _ in range(20):
                spark.sql("INSERT OVERWRITE t2 SELECT * FROM t0")
            shapes(spark, capture, bus, aims)
        another = another_context(spark, **{"spark.sql.warehouse.dir": f"{place}/2"})
        start(another, "second context of the JVM")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
