"""Queries of two tables while jobs write them: python -m tests.benchmarks.consistent_queries --queries 10000

Each job overwrites its table with all rows of one source, which has the numbers up to one that grows. So a table holds
the rows of the version that it was made from, and two tables that were read together are consistent if their rows are
equal. Several threads ask in a session with `spark.headwater.read.consistent = true`, and each fifth query also in one
without. Events take their real way: capture, spool, shipper, PostgreSQL.

Nine queries of ten ask for the count and the greatest number, which Iceberg answers from the snapshot's own metadata;
one reads all rows. The catalog keeps no tables, or old ones that are kept would be counted as inconsistent.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater import local
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims
from tests.kit.seeds import seed
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DB: Final = "ice.db"
KEY: Final = "spark.headwater.read.consistent"
AIM_MILLIS: Final = 20.0
PAUSE: Final = 1.0
"""Seconds between two commits of all jobs together, about."""
ALL_ROWS_EVERY: Final = 10
WARM: Final = 20
"""Statements of each kind that aren't measured: the first ones are compiled, and prepared in the store."""
SESSION_QUERIES: Final = 4
"""A session asks so many queries at most: its reads never go back, so that a long one mostly waits for the jobs."""
WITHOUT_EVERY: Final = 5


@dataclass
class Asked:
    """What one session's queries found."""

    queries: int = 0
    inconsistent: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    analysis: list[float] = field(default_factory=list)
    """Seconds from the statement's text to its analysed plan."""
    rows: list[int] = field(default_factory=list)

    def ask(self, spark: SparkSession, tables: tuple[str, str], *, all_rows: bool) -> None:
        found = "count(id) + 0 AS c, sum(id) AS s" if all_rows else "count(*) AS c, max(id) AS s"
        parts = (f"SELECT {n} AS n, {found} FROM {DB}.{t}" for n, t in enumerate(tables))
        began = time.perf_counter()
        try:
            frame = spark.sql(" UNION ALL ".join(parts))
            took = time.perf_counter() - began
            one, other = (tuple(row)[1:] for row in sorted(frame.collect()))
        except Exception as e:  # noqa: BLE001 - what a statement says is what is counted
            self.errors[str(e).partition("\n")[0][:160]] += 1
            return
        self.analysis.append(took)
        self.queries += 1
        self.inconsistent += one != other
        self.rows.append(one[0])

    def add(self, other: Asked) -> None:
        self.queries += other.queries
        self.inconsistent += other.inconsistent
        self.errors.update(other.errors)
        self.analysis += other.analysis
        self.rows += other.rows


class Writers:
    """One thread that lets the source grow, and one for each job."""

    def __init__(self, spark: SparkSession, count: int) -> None:
        self._spark = spark
        self._tables = [f"t{number}" for number in range(count)]
        self._stop = threading.Event()
        self.commits: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._grow)]
        self._threads += [threading.Thread(target=self._copy, args=(table,)) for table in self._tables]

    @property
    def tables(self) -> list[str]:
        return self._tables

    def prepare(self) -> None:
        self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {DB}")
        for table in ("a", *self._tables):
            self._spark.sql(f"CREATE TABLE {DB}.{table} (id BIGINT) USING iceberg")
        self._spark.sql(f"INSERT OVERWRITE {DB}.a SELECT id FROM range(0, 1, 1, 1)")
        for table in self._tables:
            self._spark.sql(f"INSERT OVERWRITE {DB}.{table} SELECT * FROM {DB}.a")

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def _grow(self) -> None:
        number = 1
        while not self._stop.wait(PAUSE * 5):
            number += 1
            self._spark.sql(f"INSERT OVERWRITE {DB}.a SELECT id FROM range(0, {number}, 1, 1)")
            self.commits["a"] += 1

    def _copy(self, table: str) -> None:
        chance = random.Random(f"{seed()} {table}")
        while not self._stop.wait(chance.uniform(0, 2 * PAUSE * len(self._tables))):
            self._spark.sql(f"INSERT OVERWRITE {DB}.{table} SELECT * FROM {DB}.a")
            self.commits[table] += 1


@contextmanager
def driver(place: Path, store: str) -> Generator[SparkSession]:
    conf = {key: value.replace("{warehouse}", str(place)) for key, value in ICEBERG.conf.items()}
    conf |= {
        "spark.jars.packages": ",".join(ICEBERG.packages),
        "spark.headwater.enabled": "true",
        "spark.headwater.listeners": "jdbc",
        "spark.headwater.jdbc.url": store,
        "spark.headwater.spool.dir": str(place / "spool"),
        "spark.sql.catalog.ice.cache-enabled": "false",
        # that of other tests is small, and full after some hundred queries: then nothing is compiled any more
        "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC",
        KEY: "false",
    }
    with spark_session(local.java().home, **conf) as spark:
        yield spark


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000, help="0 measures only what a statement costs")
    parser.add_argument("--rounds", type=int, default=200, help="statements of each kind whose cost is measured")
    parser.add_argument("--writers", type=int, default=10)
    parser.add_argument("--threads", type=int, default=4, help="that ask, each in sessions of its own")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after so long, whatever was asked by then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, local.postgres(durable=False) as server:
        url = server.address
        open_store(url).close()
        with driver(Path(directory), url) as spark:
            return measure(spark, given)


def aligned_session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.sql(f"SET {KEY} = true")
    session.sql(f"SET {KEY}.otherwise = wait 60s")
    return session


def measure_cost(spark: SparkSession, jobs: Writers, rounds: int) -> None:
    """What a statement costs while nobody writes, in turns: without, with an answer that is less than a second old, and
    with one that the store is asked for."""
    off, recent, anew = spark.newSession(), aligned_session(spark), aligned_session(spark)
    anew.sql(f"SET {KEY}.max.age = 0s")
    query = f"SELECT * FROM {DB}.{jobs.tables[0]} x JOIN {DB}.{jobs.tables[1]} y USING (id)"
    taken: dict[str, list[float]] = {"off": [], "recent": [], "asked anew": []}
    for number in range(rounds + WARM):
        for name, session in zip(taken, (off, recent, anew), strict=True):
            began = time.perf_counter()
            session.sql(query)
            if number >= WARM:
                taken[name].append((time.perf_counter() - began) * 1e3)
    bare = statistics.median(taken["off"])
    for name, each in taken.items():
        p50, p99 = statistics.median(each), statistics.quantiles(each, n=100)[98]
        more = f"{p50 - bare:.1f} ms more, ratio {p50 / bare:.2f}"
        print(f"analysis of a join, {name}: p50 {p50:.1f} ms ({more}), p99 {p99:.1f}, the shortest {min(each):.1f}")
    print(f"{rounds} times each, load {os.getloadavg()[0]:.1f}")
    print(recent.sql(f"EXPLAIN {query}").collect()[0][0].partition("== Consistent")[2])


def measure(spark: SparkSession, given: argparse.Namespace) -> int:
    jobs = Writers(spark, given.writers)
    jobs.prepare()
    measure_cost(spark, jobs, given.rounds)
    if not given.queries:
        return 0
    aligned = aligned_session(spark)
    for table in jobs.tables[1:]:  # until the events of all have come
        Asked().ask(aligned, (jobs.tables[0], table), all_rows=False)
    askers = [Asker(spark, jobs.tables, number) for number in range(given.threads)]
    began = time.monotonic()
    jobs.start()
    try:
        each = -(-given.queries // given.threads)
        threads = [threading.Thread(target=asker.run, args=(each, began + given.seconds)) for asker in askers]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(60)
                done = sum(asker.found.queries for asker in askers)
                print(f"{done} queries after {time.monotonic() - began:,.0f} s", file=sys.stderr, flush=True)
    finally:
        jobs.stop()
    found, without = Asked(), Asked()
    for asker in askers:
        found.add(asker.found)
        without.add(asker.without)
    return report(found, without, jobs, time.monotonic() - began)


class Asker:
    """Asks the same queries with and without, in a thread of its own."""

    def __init__(self, spark: SparkSession, tables: list[str], number: int) -> None:
        self.found, self.without = Asked(), Asked()
        self._tables = tables
        self._spark = spark
        self._aligned, self._plain = aligned_session(spark), spark.newSession()
        self._chance = random.Random(f"{seed()} {number}")

    def run(self, queries: int, until: float) -> None:
        number, left = 0, 0
        while self.found.queries < queries and time.monotonic() < until:
            number, left = number + 1, left - 1
            if left < 0:
                self._aligned, left = aligned_session(self._spark), self._chance.randrange(SESSION_QUERIES)
            one, other = self._chance.sample(self._tables, 2)
            all_rows = number % ALL_ROWS_EVERY == 0
            self.found.ask(self._aligned, (one, other), all_rows=all_rows)
            if number % WITHOUT_EVERY == 1:
                self.without.ask(self._plain, (one, other), all_rows=all_rows)


def report(found: Asked, without: Asked, jobs: Writers, seconds: float) -> int:
    commits = sum(jobs.commits.values())
    print(f"{commits} commits of {len(jobs.tables)} jobs and their source in {seconds:,.0f} s")
    for name, asked in (("aligned", found), ("without", without)):
        quantiles: Any = statistics.quantiles(asked.analysis, n=100)
        print(
            f"{name}: {asked.queries} queries, {asked.inconsistent} inconsistent, {sum(asked.errors.values())} errors, "
            f"analysis p50 {quantiles[49] * 1e3:.1f} ms, p99 {quantiles[98] * 1e3:.1f} ms, up to {max(asked.rows)} rows"
        )
        for text, count in asked.errors.most_common(3):
            print(f"  {count} x {text}")
    more = (statistics.median(found.analysis) - statistics.median(without.analysis)) * 1e3
    aims = Aims()
    aims.at_most("inconsistent, aligned", found.inconsistent, 0)
    aims.at_most("errors, aligned", sum(found.errors.values()), 0)
    aims.at_least("inconsistent, without (so that it shows)", without.inconsistent, 1)
    aims.at_most("a statement's analysis takes longer by", more, AIM_MILLIS, "ms")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
