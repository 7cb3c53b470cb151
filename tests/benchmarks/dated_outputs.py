"""The memory of a driver's Python whose every write is a plan of its own: a path with a date in it.

    python -m tests.benchmarks.dated_outputs [outputs]

A driver of 1 GB copies 300 columns into 2,000 directories, one after the other. All commits have to be reported, and
Python has to stay as large as it was when its plans had taken the room that they may have.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from headwater import local
from tests.benchmarks.harness import Aims
from tests.kit.drivers import SESSION, Place

OUTPUTS: Final = 2_000
WARM: Final = 200
"""Outputs, after which the plans have taken their room."""
MOST_GROWTH: Final = 24.0
"""Megabytes from there to the end: what CPython's allocator doesn't give back, and what is counted of each job."""
COUNTING: Final = """
class Counting:
    def __init__(self, path):
        self.path, self.counts = path, {}
    def on_event(self, event):
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
    def on_missed(self, count):
        self.counts["missed"] = self.counts.get("missed", 0) + count
    def flush(self, timeout): ...
    def close(self, timeout):
        print("told", *(f"{kind}={count}" for kind, count in sorted(self.counts.items())), flush=True)
        return True

class CountingFactory:
    def create(self, context):
        return Counting(context.configuration["path"])
"""
JOB: Final = (
    SESSION
    + """
import sys, datetime, headwater.listeners
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))
outputs, warm = int(sys.argv[1]), int(sys.argv[2])
spark.sql("CREATE TABLE wide USING parquet AS SELECT " + ", ".join(f"0 AS c{n}" for n in range(300)))
frame = spark.table("wide").selectExpr(*(f"c{n} + 1 AS c{n}" for n in range(300))).coalesce(1)
first = datetime.date(2026, 1, 1)
for n in range(outputs):
    day = first + datetime.timedelta(days=n)
    frame.write.parquet(f"out/{day:%Y/%m}/dt={day}")
    if n % warm == warm - 1:
        headwater.listeners.install(spark).flush(120)
        print("resident", n + 1, f"{resident():.1f}", flush=True)
spark.stop()
"""
)


def main() -> int:
    outputs = int(sys.argv[1]) if len(sys.argv) > 1 else OUTPUTS
    warm = min(WARM, outputs // 2)
    aims = Aims()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), local.java().home, patience=None)
        (place.folder / "counting.py").write_text(COUNTING)
        place.configure({"spark.headwater.listeners": "counting:CountingFactory", "spark.headwater.counting.path": "-"})
        with place.start((sys.executable, place.script(JOB), str(outputs), str(warm))) as process:
            out, err = process.communicate()
    if process.returncode:
        raise SystemExit(err[-2_000:])
    print(out, end="")
    lines = [line.split() for line in out.splitlines()]
    sizes = [float(line[2]) for line in lines if line[0] == "resident"]
    fields = dict(pair.split("=") for line in lines if line[0] == "told" for pair in line[1:])
    aims.at_most(f"growth from {warm} to {outputs} outputs", max(sizes[1:]) - sizes[0], MOST_GROWTH, "MB")
    aims.is_true("all commits are told", int(fields.get("Committed", 0)) == outputs + 1)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
