"""Hundreds of rounds of faults around the writer: producers, broker, two writers and the database are killed, frozen,
stopped and started again, connections are cut and the group is shared out anew while events flow; after each round
the store has the rows of all events that were reported, each applied once.

    .venv/bin/python -m tests.benchmarks.writer_rounds [--seed S] [--rounds 300]

Every round comes out of its seed, and is run again by `--seed S --rounds 1`; each tenth has a real Spark driver.
"""

from __future__ import annotations

import signal
import sys
from functools import partial

from tests.kit.rounds import rounds_parser, show_rounds, tell_at_once
from tests.kit.writers.broken import WAYS
from tests.kit.writers.process import PROGRAM
from tests.kit.writers.rounds import run_writer_rounds
from tests.kit.writers.stage import writer_stage


def main() -> int:
    parser = rounds_parser(__doc__)
    parser.add_argument("--broken", choices=sorted(WAYS), help="a writer with this fault: rounds have to find it")
    given = parser.parse_args()
    for each in (signal.SIGTERM, signal.SIGINT):  # whatever was begun is ended
        signal.signal(each, signal.default_int_handler)
    program = PROGRAM if given.broken is None else ("tests.kit.writers.broken", given.broken)
    with writer_stage() as stage:
        return show_rounds(given, partial(run_writer_rounds, stage, tell=tell_at_once, go_on=True, program=program))


if __name__ == "__main__":
    sys.exit(main())
