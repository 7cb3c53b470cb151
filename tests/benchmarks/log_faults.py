"""Many rounds of writers and readers of one local log that are killed at random: python -m tests.benchmarks.log_faults

`LOG_ROUNDS` says how many (100), `LOG_SEED` with which seed the first one is played: a failure prints it, and leaves
what lies on the disk.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.kit import seeds
from tests.kit.journal.log_rounds import Outcome, play

STEPS = 40
COLUMNS = ("told", "records", "partitions", "kills")


def row(name: object, values: list[object]) -> str:
    return f"{name!s:>12}" + "".join(f"{value!s:>12}" for value in values) + "\n"


def values_of(outcome: Outcome) -> list[object]:
    return [*(getattr(outcome, each) for each in COLUMNS), f"{outcome.seconds:.1f} s"]


def main() -> None:
    rounds = int(os.environ.get("LOG_ROUNDS", "100"))
    first = int(os.environ.get("LOG_SEED", seeds.seed()))
    directory = Path(tempfile.mkdtemp())
    outcomes: list[Outcome] = []
    sys.stdout.write(row("seed", [*COLUMNS, "took"]))
    for seed in range(first, first + rounds):
        outcomes.append(play(directory / str(seed), seed, STEPS))
        shutil.rmtree(directory / str(seed))
        sys.stdout.write(row(seed, values_of(outcomes[-1])))
        sys.stdout.flush()
    totals = [f"{sum(getattr(each, name) for each in outcomes):,}" for name in COLUMNS]
    sys.stdout.write(row("all", [*totals, f"{sum(each.seconds for each in outcomes):.0f} s"]))
    directory.rmdir()


if __name__ == "__main__":
    main()
