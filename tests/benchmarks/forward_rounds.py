"""Forwarders whose process is killed hundreds of times, while their targets fail, hang, answer 429, 500 and garbage and
restart: every event arrives at every target, in order per key.

    .venv/bin/python -m tests.benchmarks.forward_rounds [--kills 200] [--bus log|kafka] [--datahub] [--seed S]

After each round of 25 kills the forwarders come to the end, and what each target has is compared with what was sent.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path

from headwater.local import KafkaServer
from tests.kit import seeds
from tests.kit.forwarders.round import INSTANCE, ForwardRound, kafka_bus, log_bus

_ROUND = 25


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=seeds.seed())
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--bus", choices=("log", "kafka"), default="log")
    parser.add_argument("--datahub", action="store_true", help="DataHub too, whose SDK takes a second to start")
    given = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(KafkaServer()) if given.bus == "kafka" else None
        for number, kills in enumerate(_parts(given.kills)):
            folder = Path(tempfile.mkdtemp(prefix="headwater-forward-"))
            print(f"seed {given.seed + number}, in {folder}", flush=True)
            bus, append = log_bus(folder) if server is None else kafka_bus(server)
            flags = () if server is None else ("--kafka", INSTANCE)
            played = ForwardRound(folder, given.seed + number, bus, append, *flags)
            print(played.play_and_check(kills, with_datahub=given.datahub), flush=True)
    return 0


def _parts(kills: int) -> list[int]:
    return [min(_ROUND, kills - begun) for begun in range(0, kills, _ROUND)]


if __name__ == "__main__":
    sys.exit(main())
