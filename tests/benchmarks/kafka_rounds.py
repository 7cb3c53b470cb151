"""Hundreds of rounds of faults around the Kafka publisher: producers and the broker are killed, disks are full, the
network is cut, clocks jump; after each round everything that was reported has to be on the topic.

    .venv/bin/python -m tests.benchmarks.kafka_rounds [--seed S] [--rounds 300]

Every round comes out of its seed, and is run again by `--seed S --rounds 1`; each tenth has a real Spark driver.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from tests.kit import seeds
from tests.kit.kafka.rounds import run_rounds
from tests.kit.kafka.stage import stage


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=seeds.seed(), help="the first round's; the next ones count up")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=None, help="where rounds that fail leave their files")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="headwater-rounds-"))
    numbers = range(given.seed, given.seed + given.rounds)
    print(f"seeds {numbers.start} to {numbers.stop - 1}; rounds that fail leave their files in {folder}", flush=True)
    with stage() as kafka:
        tally = run_rounds(kafka, folder, numbers, tell=lambda line: print(line, flush=True), go_on=True)
    print(tally)
    return 1 if tally.lost_rounds else 0


if __name__ == "__main__":
    sys.exit(main())
