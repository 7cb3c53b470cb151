"""Hundreds of rounds of faults around the Kafka publisher: producers and the broker are killed, disks are full, the
network is cut, clocks jump; after each round everything that was reported has to be on the topic.

    .venv/bin/python -m tests.benchmarks.kafka_rounds [--seed S] [--rounds 300]

Every round comes out of its seed, and is run again by `--seed S --rounds 1`; each tenth has a real Spark driver.
"""

from __future__ import annotations

import sys
from functools import partial

from tests.kit.kafka.rounds import run_rounds
from tests.kit.kafka.stage import stage
from tests.kit.rounds import rounds_parser, show_rounds, tell_at_once


def main() -> int:
    given = rounds_parser(__doc__).parse_args()
    with stage() as kafka:
        return show_rounds(given, partial(run_rounds, kafka, tell=tell_at_once, go_on=True))


if __name__ == "__main__":
    sys.exit(main())
