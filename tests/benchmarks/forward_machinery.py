"""What runs forwarders, beside a bare loop on the same topic: one that polls the same client and decodes each event.

    .venv/bin/python -m tests.benchmarks.forward_machinery [--events 100000]

Both are of one process and read a topic of four partitions to its end; the forwarder does nothing with events. What
it adds is whole events, filters, the state on disk, and offsets. Rates are by processor time, of all threads, so that
other things that the machine does don't count.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer

from headwater.cli.bus import ConsumerBus
from headwater.consumers.tuning import tune_garbage_collection
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.forwarders.configuration import read_settings
from headwater.forwarders.process import HostedForwarder
from headwater.local import KafkaServer
from tests.benchmarks.harness import Aims
from tests.kit.forwarders.stage import commit
from tests.kit.topics import new_topic

AIM = 0.5
ROUNDS = 5
_AT_ONCE = 1_000


def fill(server: KafkaServer, count: int) -> str:
    """Return a new topic with so many events of a hundred jobs."""
    topic = new_topic(server.address, "forward", 4, {})
    producer = Producer(
        {
            **server.client_config(),
            "enable.idempotence": True,
            "linger.ms": 50,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number in range(count):
        event = commit(number + 1, f"job-{number % 100}", producer=number % 100 + 1)
        headers: Any = list(headers_of(event, bytes(8)))
        producer.produce(topic, Codec().encode(event), key_of(event), headers=headers)
        producer.poll(0)
    assert producer.flush(120) == 0
    return topic


def bare_seconds(server: KafkaServer, topic: str, count: int) -> float:
    """Consume and decode; return the processor time."""
    settings = {"group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest", "enable.auto.commit": False}
    began = time.process_time()
    client, codec, seen = Consumer({**server.client_config(), **settings}), Codec(), 0
    client.subscribe([topic])
    while seen < count:
        messages = client.consume(_AT_ONCE, 0.05)
        for message in messages:
            codec.decode(message.value() or b"")
        seen += len(messages)
    client.close()
    return time.process_time() - began


class Counting:
    """A forwarder that does nothing but count."""

    def __init__(self) -> None:
        self.count = 0

    async def handle(self, batch: Any) -> None:
        self.count += len(batch)


def forwarder_seconds(server: KafkaServer, topic: str, count: int, batch: int) -> float:
    """The same through the machinery."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"bench-{uuid.uuid4()}"
        settings = read_settings(name, {"type": "tests.kit.forwarders.targets:Nothing", "batch": str(batch)})
        bus = ConsumerBus(f"kafka://{server.address}/{topic}", ())
        hosted = HostedForwarder(settings, Path(folder), bus, until_end=True)
        counting = hosted._forwarder = Counting()
        began = time.process_time()
        hosted.run()
        assert hosted.error is None
        assert counting.count == count
        return time.process_time() - began


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    count = parser.parse_args().events
    aims = Aims()
    tune_garbage_collection()  # as the command does
    with KafkaServer() as server:
        topic = fill(server, count)
        for batch in (100, 1_000):
            pairs = [
                (forwarder_seconds(server, topic, count, batch), bare_seconds(server, topic, count))
                for _ in range(ROUNDS)
            ]
            ours, bare = (statistics.median(each) for each in zip(*pairs, strict=True))
            print(f"batches of {batch}: {count / ours:,.0f} events/s, bare {count / bare:,.0f} events/s", flush=True)
            ratio = statistics.median(b / a for a, b in pairs)
            aims.at_least(f"batches of {batch}, beside the bare loop", ratio, AIM)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
