"""`python -m tests.benchmarks.aligned_rounds --kills 200`: kills an aligned job at all points of its barriers.

The job reads a table of Iceberg and one of Delta, and writes two of each. At the end its results are compared, row by
row, with those of a job of the same group that ran undisturbed, and with the sources.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headwater import local
from tests.kit.seeds import seed
from tests.kit.versions.aligned import (
    ORDERS,
    PRODUCTS,
    add_snapshots,
    create_sinks,
    create_sources,
    query_of,
    results_of,
    step_of,
    warehouse_session,
)
from tests.kit.versions.aligned_victim import FIRST, POINTS

_SECONDS: Final = 240
_KILLED: Final = "killed"
_CALM: Final = "calm"
_ANY_TIME: Final = "any time"


@dataclass
class Rounds:
    """What happened in rounds of kills."""

    kills: Counter[str] = field(default_factory=Counter)
    ends: int = 0
    """Runs that came to their end before their kill."""


def prepare(place: Path, snapshots: int) -> None:
    """Make the sources with so many snapshots, the sinks, and the data version from which both jobs begin."""
    with warehouse_session(local.java().home, place) as spark:
        create_sources(spark)
        for job in (_KILLED, _CALM, "first"):
            create_sinks(spark, job)
        assert query_of(spark, "first", place).run(step_of("first")) == 1
        for number in range(1, snapshots):
            add_snapshots(spark, number)


def kill(place: Path, points: list[str], chance: random.Random, said: Callable[[str], object]) -> Rounds:
    """Start the job once for each point, and kill it there."""
    found = Rounds()
    for point in points:
        is_killed = _round(place, point, 1 + chance.randrange(3), chance)
        found.kills[point] += is_killed
        found.ends += not is_killed
        said(f"{sum(found.kills.values())} kills, {point}: {'killed' if is_killed else 'came to its end'}")
    return found


def _round(place: Path, point: str, count: int, chance: random.Random) -> bool:
    named = "none" if point == _ANY_TIME else point
    command = [sys.executable, "-m", "tests.kit.versions.aligned_victim", str(place), _KILLED, named, str(count)]
    environment = {**os.environ, "JAVA_HOME": str(local.java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    log = place / "victim.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=output, text=True, start_new_session=True
        )
    try:
        assert process.stdout is not None
        ready = next((line for line in process.stdout if line.startswith("READY")), None)
        assert ready or process.wait(_SECONDS) == -signal.SIGKILL, log.read_text()[-3000:]
        if point == _ANY_TIME:
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.5, 12))
        else:
            process.wait(_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    assert code in (0, -signal.SIGKILL), log.read_text()[-3000:]
    return code != 0


def check(place: Path) -> int:
    """Finish the killed job, run the other one undisturbed, and compare; return how many barriers there were."""
    with warehouse_session(local.java().home, place) as spark:
        query_of(spark, _KILLED, place, FIRST).run(step_of(_KILLED))
        barriers = query_of(spark, _CALM, place, FIRST).run(step_of(_CALM))
        killed, calm = (results_of(spark, job) for job in (_KILLED, _CALM))
        assert killed == calm
        for sink, source in (("ice.db.job_rows", ORDERS), ("default.job_rows", PRODUCTS)):
            rows = sorted(tuple(row) for row in spark.table(source).collect())
            assert sorted(row[:2] for row in killed[sink]) == rows, "each row of a source is there once"
        return barriers


def points_for(kills: int, chance: random.Random) -> list[str]:
    """Every point in turn, and a fifth at any time, in an order by chance."""
    every = [*POINTS, _ANY_TIME, _ANY_TIME]
    found = [every[number % len(every)] for number in range(kills)]
    chance.shuffle(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    given = parser.parse_args()
    chance, began = random.Random(seed()), time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        prepare(place, snapshots=given.kills + 5)
        found = kill(place, points_for(given.kills, chance), chance, lambda text: print(text, flush=True))
        barriers = check(place)
    seconds = time.monotonic() - began
    print(f"{sum(found.kills.values())} kills in {barriers} barriers, {seconds:.0f} s; results equal row by row")
    for point, count in sorted(found.kills.items()):
        print(f"  {point:24} {count}")
    if found.ends:
        print(f"  {found.ends} runs came to their end before their kill")


if __name__ == "__main__":
    main()
