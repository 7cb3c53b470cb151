"""What headwater adds to the start of a driver: a session and its first write, with it and without.

Each start is a process of its own, in turns with and without, plain and with the jars and catalogs of Iceberg and of
Delta, on one core and on two. Both are given by the clock and in seconds of the processor, Python's and the JVM's
together; the clock says something on an idle machine only. The classes are on disk: what the very first start of a
machine takes, which compiles them, stands in a row of its own.

    python -m tests.benchmarks.startup [plain] [iceberg] [delta]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyspark

from headwater import local
from headwater.local.java import java_home_for_spark
from tests.benchmarks.harness import Aims
from tests.kit.spark.packages import package_settings
from tests.kit.spark.versions import packages_for

PAIRS: Final = int(os.environ.get("HEADWATER_BENCH_PAIRS", "5"))
MOST_SECONDS: Final = float(os.environ.get("HEADWATER_BENCH_SECONDS", "600"))
"""No round begins that would take longer than that in all; a busy machine makes fewer pairs."""
MOST_FIRST: Final = 5
MOST_WALL: Final = 0.3
MOST_CPU: Final = 0.5
FORMATS: Final = ("plain", "iceberg", "delta")
DRIVER: Final = """
import json, os, sys, time
os.sched_setaffinity(0, set(list(sorted(os.sched_getaffinity(0)))[:int(sys.argv[1])]))
began = time.perf_counter()
from pyspark.sql import SparkSession
builder = SparkSession.builder.appName("start")
for key, value in json.loads(sys.argv[2]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
def used():
    jvm = spark.sparkContext._gateway.proc.pid
    fields = open(f"/proc/{jvm}/stat").read().rpartition(")")[2].split()
    return sum(os.times()[:2]) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
start, start_cpu = time.perf_counter() - began, used()
spark.range(100).write.mode("overwrite").format(sys.argv[3]).saveAsTable(sys.argv[4])
print(json.dumps([start, start_cpu, time.perf_counter() - began, used()]))
spark.stop()
"""
CATALOGS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {},
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
    },
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
}
WRITES: Final = {"plain": ("parquet", "t"), "iceberg": ("iceberg", "ice.db.t"), "delta": ("delta", "t")}


class Start(NamedTuple):
    """Seconds until the session is there, and until its first write is done: by the clock and of the processor."""

    session: float
    session_cpu: float
    write: float
    write_cpu: float


class Place:
    """Where drivers of one format start, one after the other."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._folder = folder
        self._cache = folder / "cache"
        folder.mkdir(parents=True, exist_ok=True)
        spark = str(pyspark.__version__)
        self._home = java_home_for_spark(local.java(), spark)
        jars = () if name == "plain" else packages_for(name, spark)
        self._conf = {
            **(package_settings(self._home, ",".join(jars)) if jars else {}),
            **CATALOGS[name],
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        }
        if name == "iceberg":
            self._conf["spark.sql.catalog.ice.warehouse"] = str(folder / "ice")

    def first(self) -> Start:
        """Start a driver that compiles, and others until all is kept: one of seconds ends before."""
        first = self.start(2, with_headwater=True)
        for _ in range(MOST_FIRST):
            if next(self._cache.glob("class-files/begun-*.jar"), None) is None:
                return first
            self.start(2, with_headwater=True)
        raise SystemExit(f"{MOST_FIRST} drivers upon another ended before all was compiled")

    def start(self, cores: int, *, with_headwater: bool) -> Start:
        """Start one driver, and end it."""
        with tempfile.TemporaryDirectory(dir=self._folder) as own:
            conf = {**self._conf, "spark.sql.warehouse.dir": f"{own}/warehouse"}
            if with_headwater:
                conf |= {
                    "spark.headwater.enabled": "true",
                    "spark.headwater.listeners": "log",
                    "spark.headwater.log.dir": f"{own}/log",
                    "spark.headwater.spool.dir": f"{own}/spool",
                    "spark.headwater.capture.wait": "120 s",
                }
            known = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
            environment = {
                **known,
                "JAVA_HOME": str(self._home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "HEADWATER_CACHE": str(self._cache),
                "PYTHONPYCACHEPREFIX": str(self._folder / "bytecode"),
            }
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, "-c", DRIVER, str(cores), json.dumps(conf), *WRITES[self._name]]
            done = subprocess.run(command, cwd=own, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the driver ended with {done.returncode}:\n{done.stderr}")
        return Start(*json.loads(done.stdout.splitlines()[-1]))


@dataclass
class Setting:
    """A format on so many cores, and what was measured of it: starts without headwater and with it."""

    format: str
    place: Place
    cores: int
    pairs: list[tuple[Start, Start]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.format}, {self.cores} cores"


def row(name: str, start: Start) -> str:
    """A line of the table."""
    return f"{name:<44}" + "".join(f"{each:>10.2f}" for each in start)


def medians(starts: list[Start]) -> Start:
    return Start(*(statistics.median(each) for each in zip(*starts, strict=True)))


def measure(settings: list[Setting], began: float) -> None:
    """Start drivers in rounds, a pair of each setting, until there are enough or the next round would take too long."""
    for done in range(PAIRS):
        started = time.monotonic()
        if done and (started - began) * (done + 1) / done > MOST_SECONDS:
            return
        for each in settings:
            bare = each.place.start(each.cores, with_headwater=False)
            each.pairs.append((bare, each.place.start(each.cores, with_headwater=True)))


def report(each: Setting, aims: Aims) -> None:
    """Print the rows of a setting, and state what headwater added to its starts."""
    bare, ours = zip(*each.pairs, strict=True)
    print(row(f"{each.name}, without, {len(each.pairs)} pairs", medians(list(bare))))
    print(row(f"{each.name}, with headwater", medians(list(ours))))
    added = medians([Start(*(b - a for a, b in zip(*pair, strict=True))) for pair in each.pairs])
    print(row(f"{each.name}, added", added), flush=True)
    aims.at_most(f"{each.name}: session", added.session, MOST_WALL, "s more")
    aims.at_most(f"{each.name}: session, processor", added.session_cpu, MOST_CPU, "s more")
    aims.at_most(f"{each.name}: with its first write", added.write, MOST_WALL, "s more")


def main(formats: list[str]) -> int:
    """Print the table; 1 if an aim is missed."""
    aims = Aims()
    began = time.monotonic()
    print(f"{'seconds, medians of pairs':<44}{'session':>10}{'cpu':>10}{'+ write':>10}{'cpu':>10}")
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Place(name, Path(folder, name)) for name in formats}
        for name, place in places.items():
            print(row(f"{name}, 2 cores, the first with headwater", place.first()), flush=True)
        settings = [Setting(name, place, cores) for cores in (1, 2) for name, place in places.items()]
        measure(settings, began)
        for each in settings:
            report(each, aims)
    print(f"{time.monotonic() - began:.0f} s in all")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(FORMATS)))
