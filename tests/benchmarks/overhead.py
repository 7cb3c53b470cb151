"""What headwater, installed as a user installs it, costs a statement: tiny INSERTs and SELECTs with it and without.

    python -m tests.benchmarks.overhead [pairs] [statements]

One driver, in alternating blocks of statements, each pair in the other order than the one before it, so that a slow
minute of the machine, and a JVM that gets faster, hit both. Everything is there that a driver has: capture, the bus,
the spool on the disk and a local log. Figures are medians over the pairs of what a statement costs more; `cpu` is all
that the driver's JVM and this process used, until the last event is in the log.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater import local
from headwater.listeners import install, uninstall
from tests.benchmarks.driver_cpu import driver_cpu
from tests.benchmarks.harness import Aims
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_CPU: Final = {"INSERT": 4.0, "SELECT": 1.0}
"""Milliseconds of CPU that a statement may cost more."""
WARM: Final = 20
"""Statements after each installation that aren't counted: of its first, each plan is read."""

Figures = dict[str, float]


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    aims = Aims()
    with tempfile.TemporaryDirectory() as place:
        conf = {
            "spark.app.name": "overhead",
            "spark.sql.warehouse.dir": f"{place}/warehouse",
            "spark.jars.packages": "",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.headwater.enabled": "false",
            "spark.headwater.listeners": "log",
            "spark.headwater.log.dir": f"{place}/log",
            "spark.headwater.spool.dir": f"{place}/spool",
        }
        with spark_session(local.java().home, **conf) as spark:
            spark.sql("CREATE TABLE a (id INT, s STRING) USING parquet")
            spark.sql("CREATE TABLE b (id INT, s STRING) USING parquet")
            spark.sql("INSERT INTO a VALUES (1, 'x')")
            for name, statement in (
                ("INSERT", lambda: spark.sql("INSERT OVERWRITE b SELECT * FROM a")),
                ("SELECT", lambda: spark.sql("SELECT count(*) FROM a").collect()),
            ):
                more = compare(spark, name, statement, pairs, count)
                aims.at_most(f"CPU that {name} takes more", more, MOST_CPU[name], "ms")
        print(
            f"{sum(each.stat().st_size for each in Path(place, 'log').rglob('*') if each.is_file()):,} bytes of events"
        )
    return aims.report()


def compare(spark: SparkSession, name: str, statement: Callable[[], object], pairs: int, count: int) -> float:
    """Print what the statement takes and what headwater adds, by what uses it; return the CPU that it adds."""
    for way in (False, True):  # until the JVM has compiled what matters, of Spark and of headwater
        measure(spark, statement, 5 * count, installed=way)
    bare: list[Figures] = []
    more: list[Figures] = []
    for pair in range(pairs):
        ways = (True, False) if pair % 2 else (False, True)
        got = {way: measure(spark, statement, count, installed=way) for way in ways}
        bare.append(got[False])
        more.append({key: got[True][key] - got[False][key] for key in got[True]})
    print(f"{name:<26}{'bare':>12}{'added':>12}{'half of the pairs':>24}")
    for key in bare[0]:
        low, median, high = statistics.quantiles([each[key] for each in more], n=4)
        print(f"  {key:<24}{_median(bare, key):>9.2f} ms{median:>+9.2f} ms{f'{low:+.2f} to {high:+.2f}':>24}")
    return _median(more, "cpu")


def measure(spark: SparkSession, statement: Callable[[], object], count: int, *, installed: bool) -> Figures:
    """Milliseconds for each statement."""
    installation = install(spark) if installed else None
    try:
        for _ in range(WARM):
            statement()
        if installation is not None:
            installation.flush(30)
        before, began = driver_cpu(spark), time.perf_counter()
        for _ in range(count):
            statement()
        wall = time.perf_counter() - began
        if installation is not None:
            installation.flush(30)
        used: Mapping[str, float] = {"wall": wall, **driver_cpu(spark).since(before)}
    finally:
        if installation is not None:
            uninstall(spark)
    return {key: seconds / count * 1000 for key, seconds in used.items()}


def _median(figures: list[Figures], key: str) -> float:
    return statistics.median(each[key] for each in figures)


if __name__ == "__main__":
    sys.exit(main())
