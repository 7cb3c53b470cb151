"""`python -m tests.benchmarks.switch_rounds --kills 50`: kills a switch at all of its points.

Each process ends what the one before it left, looks whether each table was switched once and has the rows of its
correction alone, corrects again, and is killed within the switch.
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
from contextlib import suppress
from pathlib import Path
from typing import Final

from headwater import local
from tests.kit.seeds import seed
from tests.kit.versions.switch_victim import POINTS, create_tables

_SECONDS: Final = 300


def run(place: Path, point: str, count: int) -> bool:
    """Start a process that kills itself at a point, and return whether it did."""
    command = [sys.executable, "-m", "tests.kit.versions.switch_victim", str(place), point, str(count)]
    environment = {**os.environ, "JAVA_HOME": str(local.java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    log = place / "victim.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        code = process.wait(_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert code in (0, -signal.SIGKILL), log.read_text()[-3000:]
    return code != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    given = parser.parse_args()
    chance, began, kills, ends = random.Random(seed()), time.monotonic(), Counter[str](), 0
    points = [POINTS[number % len(POINTS)] for number in range(given.kills)]
    chance.shuffle(points)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        create_tables(place)
        for point in points:
            is_killed = run(place, point, 1 + chance.randrange(2))
            kills[point] += is_killed
            ends += not is_killed
            print(f"{kills.total()} kills, {point}: {'killed' if is_killed else 'came to its end'}", flush=True)
        assert not run(place, "none", 0)
    print(f"{kills.total()} kills in {time.monotonic() - began:.0f} s; each table was switched once in each round")
    for point, count in sorted(kills.items()):
        print(f"  {point:26} {count}")
    if ends:
        print(f"  {ends} switches came to their end before their kill")


if __name__ == "__main__":
    main()
