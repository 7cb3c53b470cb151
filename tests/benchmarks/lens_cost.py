"""`python -m tests.benchmarks.lens_cost`: what a lens costs the analysis of a join of two Iceberg tables.

In turns, in one driver: a session that never had a lens, one whose lens has ended, one whose lens pins both tables, and
one in which `VERSION AS OF` is written by hand, which reads what the lens does. No rows are read.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater import local
from headwater.lens import lens
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES: Final = ("ice.db.t0", "ice.db.t1")
JOIN: Final = "SELECT * FROM {} x JOIN {} y USING (id)"
_WARM: Final = 20


@contextmanager
def driver(place: Path) -> Generator[SparkSession]:
    conf = {key: value.replace("{warehouse}", str(place)) for key, value in ICEBERG.conf.items()}
    conf |= {
        "spark.jars.packages": ",".join(ICEBERG.packages),
        "spark.headwater.enabled": "false",
        "spark.sql.catalog.ice.cache-enabled": "false",  # else the first analysis alone would look tables up
        "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC",
    }
    with spark_session(local.java().home, **conf) as spark:
        yield spark


def versions(spark: SparkSession) -> dict[str, int]:
    """Make the tables, with two versions each, and return the older ones."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    found: dict[str, int] = {}
    for table in TABLES:
        spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
        spark.sql(f"INSERT INTO {table} VALUES (1)")
        found[table] = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()[0][0]
        spark.sql(f"INSERT INTO {table} VALUES (2)")
    return found


def measure(spark: SparkSession, rounds: int) -> dict[str, list[float]]:
    pins = versions(spark)
    plain = JOIN.format(*TABLES)
    by_hand = JOIN.format(*(f"{table} VERSION AS OF {number}" for table, number in pins.items()))
    never, ended, pinned, hand = (spark.newSession() for _ in range(4))
    with lens(ended, pins=pins):
        ended.sql(plain)
    asked = {"never": (never, plain), "ended": (ended, plain), "pinned": (pinned, plain), "by hand": (hand, by_hand)}
    taken: dict[str, list[float]] = {name: [] for name in asked}
    with lens(pinned, pins=pins):
        assert pinned.sql(plain).count() == hand.sql(by_hand).count() == 1
        for number in range(rounds + _WARM):
            for name, (session, query) in asked.items():
                began = time.perf_counter()
                session.sql(query)
                if number >= _WARM:
                    taken[name].append((time.perf_counter() - began) * 1e3)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, driver(Path(directory)) as spark:
        taken = measure(spark, given.rounds)
    bare = statistics.median(taken["never"])
    print(f"analysis of a join, {given.rounds} times each, load {os.getloadavg()[0]:.1f}")
    for name, each in taken.items():
        p50, p99 = statistics.median(each), statistics.quantiles(each, n=100)[98]
        print(f"{name:>8}: p50 {p50:.2f} ms, ratio {p50 / bare:.2f}, p99 {p99:.1f} ms, the shortest {min(each):.2f}")


if __name__ == "__main__":
    main()
