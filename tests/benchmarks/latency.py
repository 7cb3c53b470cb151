"""From a commit to its row in the store, at ten events a second: python -m tests.benchmarks.latency [seconds]

Broker, PostgreSQL, the writer, what commits and what looks share this machine. Twice:

plain   a process tells ten commits a second to the spool of a driver; from when `tell` comes back
Spark   a driver commits to an Iceberg table once a second, beside nine of the others; from when the table's own
        metadata file was written (its time of modification), and from when the statement came back

until a query over a connection of its own sees the row. It asks every 5 ms, so each figure is up to that too large.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from sqlalchemy import create_engine, text
from typing_extensions import Self

from headwater import local
from headwater.cli.dev.up import prepare_topic
from headwater.events import Committed, DatasetId, Format, JobName, TableName
from headwater.events import Output as Made
from headwater.events.avro import Codec
from headwater.events.clock import uuid7
from headwater.listeners.bus import Bus
from headwater.spi import Application
from tests.benchmarks.harness import Aims
from tests.kit.drivers import PYTHON, Place
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.hosting import configure

SECONDS: Final = 120.0
RATE: Final = 10.0
ASK_SECONDS: Final = 0.005
WARM: Final = 20
"""Commits at the beginning that aren't counted: connections are made, and code is compiled."""
AIMS: Final = (0.2, 1.0)
Times = Mapping[int, float]
JOB: Final = """
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("latency").getOrCreate()
spark.sql("CREATE DATABASE ice.db")
spark.sql("CREATE TABLE ice.db.spark (id BIGINT) USING iceberg")
for number in range(int(sys.argv[1])):
    began = time.time()
    spark.sql(f"INSERT INTO ice.db.spark VALUES ({number})")
    print("returned", time.time(), flush=True)
    time.sleep(max(0.0, 1 - (time.time() - began)))
spark.stop()
"""


def conf(broker: str, topic: str) -> dict[str, str]:
    return {
        "spark.headwater.enabled": "true",
        "spark.headwater.listeners": "kafka",
        "spark.headwater.kafka.bootstrap.servers": broker,
        "spark.headwater.kafka.topic": topic,
    }


def tell(broker: str, topic: str, rate: float, seconds: float) -> None:
    """The other process: at a steady pace, whatever a tell takes; prints when each one came back."""
    sent_at: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as spool:
        bus = Bus.open({**conf(broker, topic), "spark.headwater.spool.dir": spool}, Application("app-1", "latency"))
        began = time.monotonic()
        for number in range(1, int(rate * seconds) + 1):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            bus.emit(commit(number))
            sent_at[number] = time.time()
        bus.stop(30)
    print(json.dumps(sent_at))


def commit(number: int) -> Committed:
    place, named = (
        DatasetId(namespace="s3://lake", name="db/plain"),
        TableName(catalog="lake", database="db", table="plain"),
    )
    made = Made(dataset=place, table=named, format=Format.PAIMON, snapshot=number, made_from=())
    return Committed(job=JobName(name="latency.plain"), run=uuid7(), barrier=number, outputs=(made,))


class Watch:
    """Notes when the snapshots of a table are seen in the store first."""

    def __init__(self, url: str, table: str) -> None:
        self.seen: dict[int, float] = {}
        self._url = url
        self._table = table
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(2)
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        engine = create_engine(self._url, isolation_level="AUTOCOMMIT")
        writes = "writes JOIN places ON places.id = place_id"
        query = text(f"SELECT snapshot FROM {writes} WHERE table_name = :name AND snapshot IS NOT NULL")
        with engine.connect() as connection:
            while not self._over.wait(ASK_SECONDS):
                found = connection.execute(query, {"name": self._table}).scalars().all()
                now = time.time()
                for snapshot in found:
                    self.seen.setdefault(int(snapshot), now)
        engine.dispose()


@contextmanager
def writer(broker: str, topic: str, url: str) -> Generator[None]:
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--bus", f"kafka://{broker}/{topic}"]
    process = subprocess.Popen(command, env={**os.environ, "HEADWATER_STORE": url}, stdout=subprocess.DEVNULL)
    try:
        while not tables_are_there(url):
            assert process.poll() is None, "the writer ended"
            time.sleep(0.2)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def tables_are_there(url: str) -> bool:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return bool(connection.execute(text("SELECT to_regclass('writes') IS NOT NULL")).scalar())
    finally:
        engine.dispose()


def appended(broker: str, topic: str, table: str) -> dict[int, float]:
    """When the broker took each commit of a table, by its snapshot."""
    client, codec = Consumer({"bootstrap.servers": broker, "group.id": str(uuid.uuid4())}), Codec()
    found: dict[int, float] = {}
    for number in client.list_topics(topic, timeout=30).topics[topic].partitions:
        low, high = client.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
        client.assign([TopicPartition(topic, number, low)])
        for _ in range(high - low):
            message = client.poll(30)
            assert message is not None
            event = codec.decode(bytes(message.value() or b""))
            if isinstance(event, Committed) and (snapshot := snapshot_of(event, table)) is not None:
                found.setdefault(snapshot, message.timestamp()[1] / 1000)
    client.close()
    return found


def snapshot_of(event: Committed, table: str) -> int | None:
    """What it made of a table."""
    (made,) = event.outputs
    return made.snapshot if made.table is not None and made.table.table == table else None


def reporting(broker: str, topic: str, rate: float, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.benchmarks.latency", "tell", broker, topic, str(rate), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def plain(broker: str, topic: str, url: str, seconds: float, aims: Aims) -> None:
    with writer(broker, topic, url), Watch(url, "plain") as watch, reporting(broker, topic, RATE, seconds) as process:
        out, _ = process.communicate()
    sent_at = {int(number): at for number, at in json.loads(out).items()}
    report("plain: told by a process, 10/s", sent_at, appended(broker, topic, "plain"), watch.seen, aims)


def with_spark(broker: str, topic: str, url: str, seconds: float, aims: Aims) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), local.java().home, patience=None)
        own = {**conf(broker, topic), "spark.sql.catalog.ice.cache-enabled": "false"}
        configure(place, ICEBERG.packages, {**ICEBERG.conf, **own})
        beside = reporting(broker, topic, RATE - 1, seconds + 20)
        with writer(broker, topic, url), Watch(url, "spark") as watch, beside:
            ended = place.start([PYTHON, place.script(JOB), str(int(seconds))])
            out, err = ended.communicate()
            assert ended.returncode == 0, err[-3000:]
            beside.communicate()
        returned = [float(line.split()[1]) for line in out.splitlines() if line.startswith("returned")]
        files = committed(Path(folder, "ice", "db", "spark", "metadata"))
        by_broker = appended(broker, topic, "spark")
        report("Spark: from the table's metadata file, 1/s of 10/s", files, by_broker, watch.seen, aims)
        report(
            "Spark: from when the statement came back", dict(zip(files, returned, strict=True)), by_broker, watch.seen
        )


def committed(metadata: Path) -> dict[int, float]:
    """When each snapshot's metadata file was in place, in their order."""
    files = sorted(metadata.glob("v*.metadata.json"), key=lambda file: int(file.name[1:].partition(".")[0]))
    found: dict[int, float] = {}
    for file in files:
        snapshot = json.loads(file.read_text()).get("current-snapshot-id", -1)
        if snapshot not in {-1, None}:
            found.setdefault(snapshot, file.stat().st_mtime)
    return found


def report(title: str, began: Times, by_broker: Times, seen: Times, aims: Aims | None = None) -> None:
    """Print how long it took; aims are stated of what can be compared with them."""
    lost = [each for each in began if each not in seen]
    counted = [each for each in began if each in seen][WARM:]
    print(f"\n{title}: {len(counted)} commits, {len(lost)} not seen")
    print(f"{'ms':<32}{'p50':>9}{'p90':>9}{'p99':>9}{'most':>9}")
    row("until the broker has it", (by_broker[each] - began[each] for each in counted))
    row("from there until it is seen", (seen[each] - by_broker[each] for each in counted))
    p50, p99 = row("all", (seen[each] - began[each] for each in counted))
    if aims is not None:
        name = title.partition(":")[0].partition(",")[0]
        aims.at_most(f"{name}: commits that were not seen", len(lost), 0)
        aims.at_most(f"{name}: p50", p50 * 1000, AIMS[0] * 1000, "ms")
        aims.at_most(f"{name}: p99", p99 * 1000, AIMS[1] * 1000, "ms")


def row(name: str, seconds: Iterable[float]) -> tuple[float, float]:
    values: Sequence[float] = sorted(seconds)
    hundredths = statistics.quantiles(values, n=100, method="inclusive")
    shown = (hundredths[49], hundredths[89], hundredths[98], values[-1])
    print(f"{name:<32}" + "".join(f"{value * 1000:>9.1f}" for value in shown))
    return shown[0], shown[2]


def main(seconds: float = SECONDS) -> int:
    before = os.getloadavg()[0]
    with local.kafka() as broker, local.postgres() as database:
        aims = Aims()
        for number, what in enumerate((plain, with_spark)):
            topic, name = f"latency-{uuid.uuid4()}", f"latency_{number}"
            prepare_topic(broker.address, topic)
            server = create_engine(database.address, isolation_level="AUTOCOMMIT")
            with server.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
            server.dispose()
            url = server.url.set(database=name).render_as_string(hide_password=False)
            what(broker.address, topic, url, seconds, aims)
    print(f"\nload of the machine before and after: {before:.1f}, {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return aims.report()


if __name__ == "__main__":
    if sys.argv[1:2] == ["tell"]:
        tell(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
    else:
        sys.exit(main(*map(float, sys.argv[1:])))
