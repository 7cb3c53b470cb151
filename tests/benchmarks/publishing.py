"""From the spool to Kafka, against confluent-kafka by itself with the same bytes: python -m tests.benchmarks.publishing

All on one machine: the producers, the broker, and what times them. Each way sends the same records (key, headers, bytes
of a commit) to a topic of its own, with the same settings of librdkafka, and the ways take turns.

- bare: a loop around `Producer.produce` with a delivery callback that counts, over records that lie in memory.
- shipped: the records are appended to a spool in one go; the listener gets them from there and sends them, until all
  are acknowledged.
- both: they are appended one by one, as capture does, as fast as that goes while they are sent.

The last two with the listener in the shipper, the process that it is in by default, and on a thread of the driver. CPU
is the driver's alone; memory is what a process holds at the end.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from typing_extensions import Self

from headwater import local
from headwater.events.avro import current_schema
from headwater.events.envelope import Event
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer as EventProducer
from headwater.journal import JournalEntry
from headwater.listeners.bus import Bus
from headwater.listeners.bus.spool import Spool
from headwater.publishers.kafka import KafkaConfig
from headwater.spi import Application
from headwater.testing.examples import COMMITTED
from tests.kit.topics import create_topic

EVENTS = 100_000
ROUNDS = 3
PARTITIONS = 6
JOBS = 40
MEMORY: dict[str, int] = {}


def entries() -> list[JournalEntry]:
    """What is in the spool: the records of some jobs, as capture writes them."""
    producer, found = EventProducer("application_1"), list[JournalEntry]()

    def keep(event: Event, data: bytes) -> None:
        headers = headers_of(event, current_schema(type(event)).fingerprint)
        found.append(JournalEntry(data, key_of(event), headers))

    for number in range(JOBS):
        job = COMMITTED.job.model_copy(update={"name": f"job_{number}"}) if COMMITTED.job else None
        producer.emit(COMMITTED.model_copy(update={"job": job}), keep)
    return [found[number % JOBS] for number in range(EVENTS)]


def bare(address: str, topic: str, records: list[JournalEntry]) -> float:
    """Events a second."""
    config = KafkaConfig(bootstrap_servers=address)
    producer = Producer({**config.sender(1_048_588), "logger": _Silent()})
    producer.list_topics(topic, timeout=10)
    done: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        done.append(error)

    began = time.perf_counter()
    for number, each in enumerate(records):
        producer.produce(
            topic,
            value=each.value,
            key=each.key,
            headers=list(each.headers),
            partition=number % PARTITIONS,
            on_delivery=delivered,
        )
        if number % 500 == 0:
            producer.poll(0)
            while len(producer) > 20_000:
                producer.poll(0.01)
    producer.flush()
    took = time.perf_counter() - began
    assert len(done) == len(records)
    assert not any(done)
    return len(records) / took


def memory_of(process: int | str) -> int:
    """What it holds of the machine's memory, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) // 1024


class _Silent:
    def log(self, *_: object) -> None:
        """Nothing."""


def spool_of(bus: Bus) -> Spool:
    """What it tells events into."""
    spool = bus._emitter.spool  # pyright: ignore[reportPrivateUsage]
    assert spool is not None
    return spool


class Shipping:
    """A bus whose spool is written to directly: encoding events is timed elsewhere."""

    def __init__(self, directory: Path, address: str, topic: str, isolation: str) -> None:
        keys = {
            "spark.headwater.kafka.isolation": isolation,
            "spark.headwater.spool.linger": "0",
            "spark.headwater.listeners": "kafka",
            "spark.headwater.spool.dir": str(directory),
            "spark.headwater.kafka.bootstrap.servers": address,
            "spark.headwater.kafka.topic": topic,
        }
        self.bus = Bus.open(keys, Application("application_1", "benchmark"))
        self.journal = spool_of(self.bus).journal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bus.stop(5)

    def await_all(self) -> None:
        assert self.bus.flush(120), self.bus.report()
        shipper = self.bus.report().shipper
        if shipper is not None and shipper.pid is not None:
            MEMORY["shipper"] = max(MEMORY.get("shipper", 0), memory_of(shipper.pid))


def shipped(address: str, topic: str, records: list[JournalEntry], directory: Path, isolation: str) -> float:
    with Shipping(directory, address, topic, isolation) as shipping:
        shipping.journal.append_many(records[:1])
        shipping.await_all()  # the topic is known, and the connection there
        began = time.perf_counter()
        shipping.journal.append_many(records)
        shipping.await_all()
        return len(records) / (time.perf_counter() - began)


def both(address: str, topic: str, records: list[JournalEntry], directory: Path, isolation: str) -> float:
    with Shipping(directory, address, topic, isolation) as shipping:
        shipping.journal.append_many(records[:1])
        shipping.await_all()
        began = time.perf_counter()
        append = shipping.journal.append
        for each in records:
            append(each.value, key=each.key, headers=each.headers)
        shipping.await_all()
        return len(records) / (time.perf_counter() - began)


def main() -> None:
    records = entries()
    names = ("bare", "shipped, process", "both, process", "shipped, thread", "both, thread")
    rates: dict[str, list[float]] = {name: [] for name in names}
    used: dict[str, list[float]] = {name: [] for name in rates}
    with local.kafka() as broker, tempfile.TemporaryDirectory() as scratch:
        ways: dict[str, Callable[[str], float]] = {
            "bare": lambda topic: bare(broker.address, topic, records),
            "shipped, process": lambda topic: shipped(broker.address, topic, records, Path(scratch, topic), "process"),
            "both, process": lambda topic: both(broker.address, topic, records, Path(scratch, topic), "process"),
            "shipped, thread": lambda topic: shipped(broker.address, topic, records, Path(scratch, topic), "thread"),
            "both, thread": lambda topic: both(broker.address, topic, records, Path(scratch, topic), "thread"),
        }
        _warm(broker.address, records)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                topic = f"{name.replace(', ', '-')}-{uuid.uuid4()}"
                _make(broker.address, topic)
                cpu = time.process_time()
                rates[name].append(way(topic))
                used[name].append((time.process_time() - cpu) / EVENTS * 1e6)
    base = statistics.median(rates["bare"])
    size = statistics.mean(len(each.value) for each in records)
    sys.stdout.write(f"{EVENTS:,} events of {size:.0f} bytes, median of {ROUNDS} turns\n")
    for name, each in rates.items():
        middle, cost = statistics.median(each), statistics.median(used[name])
        words = f"{middle:>12,.0f} events/s{middle / base:>8.0%} of bare{cost:>10.1f} µs of CPU each"
        sys.stdout.write(f"{name:<18}{words}\n")
    sys.stdout.write(f"memory: the shipper {MEMORY.get('shipper')} MiB, this process {memory_of('self')} MiB\n")


def _make(address: str, topic: str) -> None:
    create_topic(address, topic, PARTITIONS, KafkaConfig(bootstrap_servers=address).topic_settings())


def _warm(address: str, records: list[JournalEntry]) -> None:
    """The broker's JIT, above all."""
    topic = f"warm-{uuid.uuid4()}"
    _make(address, topic)
    for _ in range(2):
        bare(address, topic, records)


if __name__ == "__main__":
    main()
