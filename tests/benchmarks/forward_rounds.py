"""Forwarders whose process is killed hundreds of times, while their targets fail, hang, answer 429, 500 and garbage and
restart: every event arrives at every target, in order per key.

    .venv/bin/python -m tests.benchmarks.forward_rounds [--kills 200] [--bus log|kafka] [--datahub] [--seed S]
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
from tests import seeds
from tests.faults.forward_round import Append, ForwardRound

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
    producer = Producer(server.client_config())

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
    folder = Path(tempfile.mkdtemp(prefix="headwater-forward-"))
    print(f"seed {given.seed}, in {folder}", flush=True)
    with ExitStack() as stack:
        flags: tuple[str, ...] = ()
        if given.bus == "log":
            bus, append = log_bus(folder)
        else:
            bus, append = kafka_bus(stack.enter_context(KafkaServer()))
            flags = ("--kafka", INSTANCE)
        played = ForwardRound(folder, given.seed, bus, append, *flags)
        print(played.play(given.kills, with_datahub=given.datahub))
    return 0


if __name__ == "__main__":
    sys.exit(main())
