"""A million events from Kafka into fresh stores, twice: in their order, and shuffled over other partitions, some of
them reported again. Both stores have the same rows: python -m tests.benchmarks.replay [events]

The broker, the database and the writer share this machine. The digests are made when the time isn't taken any more.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random
from typing import Any

from confluent_kafka import Producer
from sqlalchemy import create_engine

from headwater import local
from headwater.lineage.sql import store_digest
from headwater.local import Service
from tests.benchmarks.harness import Aims, fsync_words
from tests.kit.events.many import encoded_events
from tests.kit.faults.measured import run_measured
from tests.kit.stores import own_database
from tests.kit.topics import create_topic

EVENTS = 1_000_000
BLOCK = 1_000
SHELF = 50
"""Blocks that are shuffled among each other."""
AGAIN = 0.02
"""So many blocks come twice."""
PATIENCE = 7_200.0
Placed = tuple[int, bytes]


def in_order(count: int) -> Iterator[Placed]:
    return ((number % 3, data) for number, data in enumerate(encoded_events(count)))


def shuffled(count: int, random: Random) -> Iterator[Placed]:
    """By blocks, each in one of seven partitions."""
    source = encoded_events(count)
    while shelf := list(islice(source, BLOCK * SHELF)):
        blocks = [shelf[at : at + BLOCK] for at in range(0, len(shelf), BLOCK)]
        blocks += [each for each in blocks if random.random() < AGAIN]
        random.shuffle(blocks)
        for block in blocks:
            partition = random.randrange(7)
            yield from ((partition, data) for data in block)


def fill(address: str, topic: str, partitions: int, messages: Iterable[Placed]) -> int:
    """How many there were."""
    config: dict[str, Any] = {"bootstrap.servers": address}
    create_topic(address, topic, partitions)
    packed = {"compression.type": "zstd", "linger.ms": 20, "queue.buffering.max.messages": 200_000}
    client, count = Producer({**config, "enable.idempotence": True, **packed}), 0
    for partition, data in messages:
        client.produce(topic, data, partition=partition)
        count += 1
        if count % 100_000 == 0:
            assert client.flush(PATIENCE) == 0
    assert client.flush(PATIENCE) == 0
    return count


def replayed(name: str, kafka: Service, postgres: Service, messages: Iterable[Placed], *, batch: int) -> str:
    """The digest."""
    topic = f"{name}-{uuid.uuid4()}"
    count = fill(kafka.address, topic, 7, messages)
    with own_database(postgres) as url:
        flags = ["--bus", f"kafka://{kafka.address}/{topic}", "--store", url, "--batch", str(batch)]
        measured = run_measured(["writer", "run", "--until-end", *flags], timeout=PATIENCE)
        print(f"{name:>10}: {count} events, {count / measured.seconds:,.0f} a second; {measured}", flush=True)
        engine, began = create_engine(url, connect_args={"options": "-c search_path=headwater"}), time.monotonic()
        with engine.connect() as connection:
            digest = store_digest(connection)
        engine.dispose()
    print(f"{'':>10}  digest {digest}, made in {time.monotonic() - began:.0f} s", flush=True)
    return digest


def main(count: int) -> int:
    with local.kafka() as kafka, local.postgres(durable=False) as postgres:
        print(fsync_words(postgres.address))
        first = replayed("ordered", kafka, postgres, in_order(count), batch=5_000)
        other = replayed("shuffled", kafka, postgres, shuffled(count, Random(count)), batch=1_700)
    aims = Aims()
    aims.is_true("both stores have the same rows", first == other)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS))
