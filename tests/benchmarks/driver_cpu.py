"""The CPU that a driver uses, its JVM and this process together, by what uses it."""

from __future__ import annotations

import os
import re
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_JVM_ITSELF: Final = re.compile(r"C[12] Compiler|Sweeper|VM |GC |G1 |Signal|Finalizer|Reference|Common-Cleaner|Service")
"""Threads that compile and collect garbage: work of the JVM's own choosing, at times of its own choosing."""


@dataclass(frozen=True)
class DriverCpu:
    """Seconds since the processes began."""

    jvm: float
    """Of all threads of the JVM."""
    jvm_itself: float
    """Of `jvm`, what compiles and collects garbage."""
    ours: float
    """Of `jvm`, threads of headwater that live."""
    python: float
    python_main: float
    """Of `python`, the thread that asks."""

    @property
    def total(self) -> float:
        return self.jvm + self.python

    def since(self, before: DriverCpu) -> Mapping[str, float]:
        """What was used since then, by what used it."""
        jvm_itself, ours = self.jvm_itself - before.jvm_itself, self.ours - before.ours
        python, python_main = self.python - before.python, self.python_main - before.python_main
        return {
            "cpu": self.total - before.total,
            "  JVM: Spark's threads": self.jvm - before.jvm - jvm_itself - ours,
            "  JVM: headwater's": ours,
            "  JVM: compiler, GC": jvm_itself,
            "  Python: main thread": python_main,
            "  Python: others": python - python_main,
        }


def driver_cpu(spark: SparkSession) -> DriverCpu:
    """What the driver has used until now."""
    context: Any = spark.sparkContext
    process = Path(f"/proc/{context._jvm.java.lang.ProcessHandle.current().pid()}")
    groups = {"jvm_itself": 0.0, "ours": 0.0}
    for task in (process / "task").iterdir():
        try:
            text = (task / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        name = text.partition("(")[2].rpartition(")")[0]
        if name.startswith("headwater"):
            groups["ours"] += _seconds(text)
        elif _JVM_ITSELF.match(name):
            groups["jvm_itself"] += _seconds(text)
    return DriverCpu(
        jvm=_seconds((process / "stat").read_text()),
        python=time.process_time(),
        python_main=time.clock_gettime(time.pthread_getcpuclockid(threading.main_thread().ident or 0)),
        **groups,
    )


def measured(
    spark: SparkSession, statement: Callable[[], object], count: int, settle: Callable[[], object] | None = None
) -> tuple[float, float]:
    """Milliseconds of wall time and of CPU for each statement."""
    cpu, began = driver_cpu(spark).total, time.perf_counter()
    for _ in range(count):
        statement()
    wall = time.perf_counter() - began
    if settle is not None:
        settle()
    return wall / count * 1000, (driver_cpu(spark).total - cpu) / count * 1000


def show(title: str, without: list[tuple[float, float]], with_it: list[tuple[float, float]], events: int) -> None:
    for n, what in enumerate(("wall", "cpu")):
        bare, ours = (statistics.median(each[n] for each in rounds) for rounds in (without, with_it))
        print(
            f"{title:<8}{what:<6}{bare:8.2f} ms without {ours:8.2f} ms with  {ours - bare:+7.2f} ms  x{ours / bare:.3f}"
        )
    print(f"{title:<8}{events} bytes told per statement")


def _seconds(stat: str) -> float:
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
