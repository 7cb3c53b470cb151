"""`python -m tests.benchmarks.aligned_rounds --kills 200`: kills an aligned job at all points of its barriers.

The job reads a table of Iceberg and one of Delta, and writes two of each. At the end its results are compared, row by
row, with those of a job of the same group that ran undisturbed, and with the sources.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from tests.kit.seeds import seed
from tests.kit.versions.aligned_rounds import check, kill, points_for, prepare


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
