"""One topic by every way: the writer, the pipeline on Spark and a replay into PostgreSQL, and the pipeline into a lake
of Iceberg tables, end in the same rows.

    .venv/bin/python -m tests.benchmarks.equal_ways [events] [--no-lake]

Events are shuffled by blocks over seven partitions, and some blocks come twice. Each way is the command itself; the
pipeline has several micro-batches. What the law alone gives of events is compared by equal_stores.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

import pyspark

from headwater import local
from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.lineage.store import open_store
from headwater.local import Service
from tests.benchmarks.harness import Aims, fsync_words
from tests.benchmarks.replay import fill, shuffled
from tests.benchmarks.spark_pipeline import digest, run
from tests.kit.lake.sessions import CATALOG, packages, pyiceberg_properties, spark_conf
from tests.kit.spark.packages import package_settings
from tests.kit.stores import own_database

EVENTS: Final = 100_000
BATCHES: Final = 6


class Ways:
    """The commands, each with the bus and what it needs besides."""

    def __init__(self, address: str, topic: str, count: int, place: Path) -> None:
        self._bus = f"kafka://{address}/{topic}"
        self._count = count
        self._place = place

    def writer(self, url: str) -> None:
        run("writer", "run", "--until-end", "--no-maintenance", "--bus", self._bus, "--store", url)

    def pipeline(self, url: str) -> None:
        self._pipeline(url, kafka_package(str(pyspark.__version__)))

    def lake(self, url: str) -> None:
        self._pipeline(url, packages(), **spark_conf(self._place))

    def _pipeline(self, url: str, jars: str, **more: str) -> None:
        settings = {**package_settings(local.java().home, jars), "spark.ui.enabled": "false", **more}
        conf = [f"--conf={key}={value}" for key, value in settings.items()]
        place = ["--bus", self._bus, "--store", url, "--master", "local[2]", "--batch", str(self._count // BATCHES + 1)]
        run("pipeline", "run", "--available-now", *place, *conf)

    def replay(self, url: str) -> None:
        run("replay", "--from", self._bus, "--store", url)

    def __iter__(self) -> Iterator[tuple[str, Callable[[str], None]]]:
        return iter((("writer", self.writer), ("pipeline on Spark", self.pipeline), ("replay", self.replay)))


class Comparison:
    """The digests of one topic's ways."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.digests: dict[str, str] = {}

    def play(self, name: str, way: Callable[[str], None], url: str) -> None:
        began = time.perf_counter()
        way(url)
        took = time.perf_counter() - began
        self.digests[name] = digest(url)
        rate = f"{self._count / took:>10,.0f} events/s, its start included"
        print(f"{name:<18}{rate}   {self.digests[name]}   load {os.getloadavg()[0]:.1f}", flush=True)


def compare_ways(kafka: Service, postgres: Service, events: int, place: Path, *, has_lake: bool) -> Aims:
    aims, topic = Aims(), f"ways-{uuid.uuid4()}"
    count = fill(kafka.address, topic, 7, shuffled(events, Random(events)))
    print(f"{count:,} records of {events:,} events", flush=True)
    ways, comparison = Ways(kafka.address, topic, count, place), Comparison(count)
    for name, way in ways:
        with own_database(postgres) as url:
            open_store(url).close()
            comparison.play(name, way, url)
    if has_lake:
        comparison.play("pipeline to a lake", ways.lake, f"iceberg:{CATALOG}.ways")
    expected = comparison.digests.pop("writer")
    for name, found in comparison.digests.items():
        aims.is_true(f"{events:,} events: the writer's rows by {name}", found == expected)
    return aims


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    parser.add_argument("--no-lake", action="store_true", help="leave the lake out, whose MERGEs take longest")
    given = parser.parse_args()
    os.environ.update(JAVA_HOME=str(local.java().home), SPARK_LOCAL_IP="127.0.0.1")
    with ExitStack() as stack:
        kafka, postgres = stack.enter_context(local.kafka()), stack.enter_context(local.postgres(durable=False))
        print(fsync_words(postgres.address), flush=True)
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, value in pyiceberg_properties(place).items():  # how pyiceberg finds the catalog
            os.environ[f"PYICEBERG_CATALOG__{CATALOG.upper()}__{name.upper()}"] = value
        return compare_ways(kafka, postgres, given.events, place, has_lake=not given.no_lake).report()


if __name__ == "__main__":
    sys.exit(main())
