"""Hundreds of rounds of faults around the writer: producers, broker, two writers and the database are killed, frozen,
stopped and started again, connections are cut and the group is shared out anew while events flow; after each round
the store has the rows of all events that were reported, each applied once.

    .venv/bin/python -m tests.benchmarks.writer_rounds [--seed S] [--rounds 300]

Every round comes out of its seed, and is run again by `--seed S --rounds 1`; each tenth has a real Spark driver.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path

from tests.kit import seeds
from tests.kit.writers.broken import WAYS
from tests.kit.writers.process import PROGRAM
from tests.kit.writers.rounds import run_writer_rounds
from tests.kit.writers.stage import writer_stage


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=seeds.seed(), help="the first round's; the next ones count up")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=None, help="where rounds that fail leave their files")
    parser.add_argument("--broken", choices=sorted(WAYS), help="a writer with this fault: rounds have to find it")
    given = parser.parse_args()
    for each in (signal.SIGTERM, signal.SIGINT):  # whatever was begun is ended
        signal.signal(each, signal.default_int_handler)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="headwater-rounds-"))
    numbers = range(given.seed, given.seed + given.rounds)
    program = PROGRAM if given.broken is None else ("tests.kit.writers.broken", given.broken)
    print(f"seeds {numbers.start} to {numbers.stop - 1}; rounds that fail leave their files in {folder}", flush=True)
    with writer_stage() as stage:
        tell = lambda line: print(line, flush=True)  # noqa: E731 - as short as can be
        tally = run_writer_rounds(stage, folder, numbers, tell=tell, go_on=True, program=program)
    print(tally)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
