"""What headwater adds to the start of a driver: a session and its first write, with it and without.

Each start is a process of its own, in turns with and without, plain and with the jars and catalogs of Iceberg and of
Delta, on one core and on two. Both are given by the clock and in seconds of the processor, Python's and the JVM's
together; the clock says something on an idle machine only. The classes are on disk: what the very first start of a
machine takes, which compiles them, stands in a row of its own.
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
from pathlib import Path
from typing import Final, NamedTuple

import pyspark

from headwater import local
from headwater.local.java_for_spark import java_home_for_spark
from tests.benchmarks.harness import Aims
from tests.kit.spark.packages import package_settings
from tests.kit.spark.versions import packages_for

PAIRS: Final = int(os.environ.get("HEADWATER_BENCH_PAIRS", "5"))
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
                "HEADWATER_CACHE": str(self._folder / "cache"),
                "PYTHONPYCACHEPREFIX": str(self._folder / "bytecode"),
            }
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, "-c", DRIVER, str(cores), json.dumps(conf), *WRITES[self._name]]
            done = subprocess.run(command, cwd=own, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the driver ended with {done.returncode}:\n{done.stderr}")
        return Start(*json.loads(done.stdout.splitlines()[-1]))


def row(name: str, start: Start) -> str:
    """A line of the table."""
    return f"{name:<44}" + "".join(f"{each:>10.2f}" for each in start)


def medians(starts: list[Start]) -> Start:
    return Start(*(statistics.median(each) for each in zip(*starts, strict=True)))


def compare(name: str, place: Place, cores: int, aims: Aims) -> None:
    """Print the rows of a format on so many cores, and state what headwater added to its starts."""
    pairs = [(place.start(cores, with_headwater=False), place.start(cores, with_headwater=True)) for _ in range(PAIRS)]
    print(row(f"{name}, {cores} cores, without", medians([bare for bare, _ in pairs])))
    print(row(f"{name}, {cores} cores, with headwater", medians([ours for _, ours in pairs])), flush=True)
    added = medians([Start(*(b - a for a, b in zip(bare, ours, strict=True))) for bare, ours in pairs])
    aims.at_most(f"{name}, {cores} cores: session", added.session, MOST_WALL, "s more")
    aims.at_most(f"{name}, {cores} cores: session, processor", added.session_cpu, MOST_CPU, "s more")
    aims.at_most(f"{name}, {cores} cores: with its first write", added.write, MOST_WALL, "s more")


def main(formats: list[str]) -> int:
    """Print the table; 1 if an aim is missed."""
    aims = Aims()
    began = time.monotonic()
    print(f"{'seconds, medians of ' + str(PAIRS) + ' pairs':<44}{'session':>10}{'cpu':>10}{'+ write':>10}{'cpu':>10}")
    for name in formats:
        with tempfile.TemporaryDirectory() as folder:
            place = Place(name, Path(folder))
            print(row(f"{name}, 2 cores, the first with headwater", place.start(2, with_headwater=True)), flush=True)
            for cores in (1, 2):
                compare(name, place, cores, aims)
    print(f"{time.monotonic() - began:.0f} s in all")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(FORMATS)))
