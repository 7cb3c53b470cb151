"""Kafka into an archive, beside a bare copy of the same topic into Parquet files: python -m tests.benchmarks.archive

The bare copy polls with Kafka's client, and writes keys, headers, bytes, offsets and times with pyarrow, in files of
the same size and compression: nothing is decoded, sorted, checked or committed. Both are processes of their own, with
fresh groups, in turns; the broker is on the same machine. Megabytes are those of the events' bytes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, NamedTuple

from confluent_kafka import Producer

from headwater import local
from tests.benchmarks.harness import Aims
from tests.kit.events.many import encoded_events
from tests.kit.events.raw_records import kind_of
from tests.kit.topics import create_topic

EVENTS = 600_000
ROUNDS = 3
PARTITIONS = 3
FLUSH = 64 << 20
AIM = 0.85


def bare_copy(address: str, topic: str, directory: Path) -> None:
    """Copy a topic as somebody does who wants nothing but the bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from confluent_kafka import Consumer, TopicPartition

    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": str(uuid.uuid4()),
        "enable.auto.commit": False,
    }
    client = Consumer({**settings, "auto.offset.reset": "earliest"})
    partitions = list(client.list_topics(topic).topics[topic].partitions)
    ends = [client.get_watermark_offsets(TopicPartition(topic, number))[1] for number in partitions]
    client.assign([TopicPartition(topic, number, 0) for number in partitions])
    headers = pa.map_(pa.string(), pa.binary())
    left, size, number = sum(ends), 0, 0
    tables: list[Any] = []
    while left:
        messages = client.consume(min(10_000, left), 1.0)
        columns = {
            "partition": pa.array([each.partition() for each in messages], pa.int32()),
            "offset": pa.array([each.offset() for each in messages], pa.int64()),
            "time": pa.array([each.timestamp()[1] for each in messages], pa.timestamp("ms")),
            "key": pa.array([each.key() for each in messages], pa.binary()),
            "headers": pa.array([each.headers() or [] for each in messages], headers),
            "data": pa.array([each.value() for each in messages], pa.binary()),
        }
        tables.append(pa.table(columns))
        left, size = left - len(messages), size + tables[-1].nbytes
        if size >= FLUSH or not left:
            pq.write_table(pa.concat_tables(tables), directory / f"{number}.parquet", compression="zstd")
            tables, size, number = [], 0, number + 1
    client.close()


def fill(address: str, topic: str, count: int) -> int:
    """Fill a topic with events as drivers send them, with keys and headers. Return the bytes of the events."""
    settings: dict[str, Any] = {"bootstrap.servers": address}
    create_topic(address, topic, PARTITIONS)
    client, size = Producer({**settings, "compression.type": "zstd", "linger.ms": 20}), 0
    for number, data in enumerate(encoded_events(count)):
        kind = str(kind_of(data))
        headers: list[tuple[str, str | bytes | None]] = [
            ("kind", kind.encode()),
            ("family", b"JOB"),
            ("producer", b"00000000-0000-0000-0000-000000000007"),
            ("schema", data[2:10].hex().encode()),
            ("sequence", b"%d" % number),
        ]
        client.produce(
            topic, data, key=b"default/etl_%d" % (number % 300), headers=headers, partition=number % PARTITIONS
        )
        size += len(data)
        if number % 50_000 == 0:
            assert client.flush(600) == 0
    assert client.flush(600) == 0
    return size


class Spent(NamedTuple):
    """Seconds of a process, by the clock and of processors."""

    seconds: float
    cpu: float


def timed(command: list[str]) -> Spent:
    began, before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(time.monotonic() - began, cpu)


def archive_seconds(address: str, topic: str, directory: Path) -> Spent:
    command = [sys.executable, "-m", "headwater.cli", "archive", "run", "--until-end", "--group", str(uuid.uuid4())]
    return timed([*command, "--bus", f"kafka://{address}/{topic}", "--archive", str(directory / "archive")])


def bare_seconds(address: str, topic: str, directory: Path) -> Spent:
    return timed([sys.executable, "-m", "tests.benchmarks.archive", "--bare", address, topic, str(directory)])


def main(count: int) -> int:
    ratios: list[float] = []
    by_cpu: list[float] = []
    with local.kafka() as kafka:
        topic = f"archive-{uuid.uuid4()}"
        sizes = fill(kafka.address, topic, count)
        print(f"{'':<12}{'archive MB/s':>16}{'bare copy MB/s':>16}{'ratio':>8}{'CPU s':>10}{'bare':>8}{'ratio':>8}")
        for number in range(ROUNDS):
            with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as bare:
                archived = archive_seconds(kafka.address, topic, Path(ours))
                copied = bare_seconds(kafka.address, topic, Path(bare))
            ratios.append(copied.seconds / archived.seconds)
            by_cpu.append(copied.cpu / archived.cpu)
            rates = f"{sizes / archived.seconds / 1e6:>16.1f}{sizes / copied.seconds / 1e6:>16.1f}{ratios[-1]:>8.2f}"
            cpu = f"{archived.cpu:>10.1f}{copied.cpu:>8.1f}{by_cpu[-1]:>8.2f}"
            print(f"round {number + 1:<6}{rates}{cpu}", flush=True)
    aims = Aims()
    aims.at_least("archive beside a bare copy, MB/s", statistics.median(ratios), AIM)
    print(f"by processor time, which a busy machine disturbs less: {statistics.median(by_cpu):.2f}")
    return aims.report()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        bare_copy(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
        sys.exit(0)
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS))
