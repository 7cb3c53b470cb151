"""Forwarders whose process is killed hundreds of times, while their targets fail, hang, answer 429, 500 and garbage and
restart: every event arrives at every target, in order per key.

    .venv/bin/python -m tests.benchmarks.forward_rounds [--kills 200] [--bus log|kafka] [--datahub] [--seed S]

After each round of 25 kills the forwarders come to the end, and what each target has is compared with what was sent.
"""

from __future__ import annotations

import sys
import tempfile
import uuid
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.events import Event
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.journal import LocalLog
from headwater.local import KafkaServer
from tests.kit import seeds
from tests.kit.forwarders.round import Append, ForwardRound

_ROUND = 25
INSTANCE = "group.instance.id=forward-rounds"
"""Who follows one that was killed is the same member, so that it has its partitions at once."""


def log_bus(folder: Path) -> tuple[str, Append]:
    """A local log, and what appends to it."""
    place = folder / "log"

    def append(events: Sequence[Event]) -> None:
        with LocalLog.open(place).writer() as journal:
            for event in events:
                journal.append(Codec().encode(event), key=key_of(event), headers=headers_of(event, bytes(8)))

    return f"log:{place}", append


def kafka_bus(server: KafkaServer) -> tuple[str, Append]:
    """A topic of three partitions, and what appends to it."""
    topic = f"forward-rounds-{uuid.uuid4()}"
    admin = AdminClient(server.client_config())
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result()
    producer = Producer({**server.client_config(), "enable.idempotence": True})

    def append(events: Sequence[Event]) -> None:
        for event in events:
            headers: Any = list(headers_of(event, bytes(8)))
            producer.produce(topic, Codec().encode(event), key_of(event), headers=headers)
        assert producer.flush(60) == 0

    return f"kafka://{server.address}/{topic}", append


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
