"""A million events: stored by the writer, and rebuilt by a replay that switches over while the writer goes on.

    .venv/bin/python -m tests.benchmarks.replay_store [events] [--processes N] [--by spark] [--load EVENTS_PER_SECOND]

The writer first stores all events of a topic, which gives its rate. Then a replay rebuilds the store from the topic's
beginning, while a producer adds events and the same writer stores them. In the end the store has to have the rows of
all events, each once: that is the digest of another store, which a writer fills from the topic alone.

Broker, PostgreSQL (which doesn't wait for its disk), writer, replay and producer share this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from confluent_kafka import Producer
from sqlalchemy import create_engine, make_url

from headwater import local
from headwater.lineage.sql import store_digest
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims, fsync_words
from tests.kit.events.many import encoded_events
from tests.kit.topics import new_topic
from tests.kit.waiting import until

EVENTS: Final = 1_000_000
PARTITIONS: Final = 4
COMMAND: Final = (sys.executable, "-m", "headwater.cli")
PATIENCE: Final = 7_200.0
NEVER_ENDING: Final = 100_000_000


class Load:
    """Events for one topic: many at once, then some each second."""

    def __init__(self, address: str, topic: str) -> None:
        self._client = Producer({"bootstrap.servers": address, "enable.idempotence": True, "compression.type": "zstd"})
        self._topic = topic
        self._events = encoded_events(NEVER_ENDING)
        self._stop = threading.Event()
        self.count = 0

    def add(self, count: int) -> None:
        for data in islice(self._events, count):
            self.count += 1
            self._client.produce(self._topic, data, partition=self.count % PARTITIONS)
            if self.count % 20_000 == 0:
                assert self._client.flush(PATIENCE) == 0
        assert self._client.flush(PATIENCE) == 0

    @contextmanager
    def running(self, rate: int) -> Generator[None]:
        thread = threading.Thread(target=self._run, args=(max(1, rate // 10),))
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self, tenth: int) -> None:
        while not self._stop.wait(0.1):
            self.add(tenth)


def create_database(address: str, name: str) -> str:
    server = create_engine(address, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    server.dispose()
    return make_url(address).set(database=name).render_as_string(hide_password=False)


def writer_command(bus: str, url: str, given: Namespace, *flags: str) -> list[str]:
    more = ("--processes", str(given.processes))
    return [*COMMAND, "writer", "run", "--bus", bus, "--store", url, "--no-maintenance", *more, *flags]


def fill(bus: str, url: str, given: Namespace) -> float:
    """Return the seconds that a writer takes to store all that is there."""
    began = time.monotonic()
    subprocess.run(writer_command(bus, url, given, "--until-end"), check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def replay(bus: str, url: str, given: Namespace) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Return the answer, the last line of progress about reading, and the seconds of the whole."""
    more = ["--processes", str(given.processes)]
    if given.by == "spark":
        more += ["--by", "spark", "--master", "local[2]", *spark_settings()]
    command = [*COMMAND, "-o", "json", "replay", "--from", bus, "--store", url, *more]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr)
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    reading = next(each for each in lines if each["phase"].startswith("reading") and each["finished"])
    for each in lines:
        if each["finished"] and each["total"]:
            print(f"{'':>10}  {each['phase']}: {each['done']:,} {each['unit']}, {each['per_second']:,.0f} a second")
    return json.loads(done.stdout), reading, time.monotonic() - began


def spark_settings() -> list[str]:
    import pyspark

    from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
    from tests.kit.spark.packages import package_settings

    home = local.java().home
    os.environ.update(JAVA_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    jars = package_settings(home, kafka_package(str(pyspark.__version__)))
    return [f"--conf={key}={value}" for key, value in {**jars, "spark.ui.enabled": "false"}.items()]


def digest_of(url: str) -> str:
    with open_store(url) as store, store.engine.connect() as connection:
        return store_digest(connection)


def offsets_of(url: str) -> int:
    with open_store(url) as store:
        return sum(store.bulk.offsets("headwater-writer").values())


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--by", choices=["writer", "spark"], default="writer", help="who reads what there is at first")
    parser.add_argument("--load", type=int, default=200, help="events a second while the replay runs")
    given = parser.parse_args()
    with local.kafka() as kafka, local.postgres(durable=False) as postgres:
        print(fsync_words(postgres.address))
        topic = new_topic(kafka.address, "replay", PARTITIONS)
        bus, url = f"kafka://{kafka.address}/{topic}", create_database(postgres.address, "live")
        load = Load(kafka.address, topic)
        load.add(given.events)
        print(f"{given.events:,} events are on the topic", flush=True)
        took = fill(bus, url, given)
        own = given.events / took
        print(f"{'writer':>10}: {own:,.0f} events a second, its start included", flush=True)
        with subprocess.Popen(writer_command(bus, url, given), stdout=subprocess.DEVNULL) as writer:
            try:
                with load.running(given.load):
                    answer, reading, seconds = replay(bus, url, given)
                until(lambda: offsets_of(url) == load.count, "the writer", PATIENCE, 0.5)
                is_alive = writer.poll() is None
            finally:
                writer.terminate()
                writer.wait(60)
        rate, found = reading["per_second"], answer["replay"]
        print(f"{'replay':>10}: {rate:,.0f} events a second while it reads, {seconds:.0f} s in all")
        print(
            f"{'':>10}  writers waited {found['writers_waited']} s; {load.count - given.events:,} events came meanwhile"
        )
        other = create_database(postgres.address, "other")
        fill(bus, other, given)
        is_equal = digest_of(url) == digest_of(other)
    aims = Aims()
    aims.is_true("switched over", found["switched"])
    aims.is_true("the writer goes on, and nothing is lost or there twice", is_equal and is_alive)
    aims.at_least("rate of the replay beside the writer's alone", rate / own, 0.8)
    aims.at_most("writers waited", found["writers_waited"], 10, "s")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
