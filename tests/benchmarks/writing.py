"""From Kafka into PostgreSQL by one writer: python -m tests.benchmarks.writing [events] [--fsync-off]

PostgreSQL waits for its disk as a real one does, unless --fsync-off is given; the output says which.

The broker, the database, the writer and what times them share this machine. Beside the rate of the whole path stand its
parts by themselves: what decoding and making rows takes, what merging those rows takes that were made before, and what
COPY and statements written by hand take for the same rows.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from headwater import local
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.store_pipeline import PreparedBatch, StorePipeline
from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.lineage.bulk import BusPartition, WriteBatch, pack_rows
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, open_store
from tests.benchmarks.harness import fsync_words
from tests.benchmarks.store_merge import Bare, emptied
from tests.kit.events.mixture import events
from tests.kit.topics import create_topic

EVENTS = 200_000
AT_ONCE = 10_000
PARTITIONS = 4


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def produce(address: str, topic: str, data: list[bytes], keys: Sequence[bytes] = ()) -> None:
    create_topic(address, topic, PARTITIONS)
    client = Producer({"bootstrap.servers": address, "enable.idempotence": True, "queue.buffering.max.messages": 10**6})
    for number, each in enumerate(data):
        client.produce(topic, each, keys[number] if keys else None, partition=number % PARTITIONS)
    assert client.flush(120) == 0


class Rates(NamedTuple):
    """Seconds for all events at the rate of each half."""

    first: float
    second: float


def whole(address: str, url: str, data: list[bytes], *flags: str) -> Rates:
    """By the command itself, from when the first events are stored. To begin, and to share out a group, isn't
    counted."""
    topic = f"full-{uuid.uuid4()}"
    produce(address, topic, data)
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--batch", str(AT_ONCE), *flags]
    command += ["--bus", f"kafka://{address}/{topic}", "--store", url, "--group", topic, "--no-maintenance"]
    with open_store(url) as store:
        writer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen: list[tuple[float, int]] = []
        try:
            while not seen or seen[-1][1] < len(data):
                stored = sum(store.bulk.offsets(topic).values())
                if stored > (seen[-1][1] if seen else 0):
                    seen.append((time.perf_counter(), stored))
                if writer.poll() is not None:
                    raise SystemExit("the writer ended")
                time.sleep(0.02)
        finally:
            writer.terminate()
            writer.wait()
    half = next(at for at, (_, stored) in enumerate(seen) if stored >= len(data) // 2)
    return Rates(per_all(seen[: half + 1], len(data)), per_all(seen[half:], len(data)))


def per_all(seen: list[tuple[float, int]], count: int) -> float:
    (began, first), (ended, last) = seen[0], seen[-1]
    return (ended - began) * count / max(last - first, 1)


def into_sqlite(data: list[bytes]) -> float:
    with tempfile.TemporaryDirectory() as place:
        log = LocalLog.open(Path(place) / "log")
        with log.writer() as journal:
            for each in data:
                journal.append(each)
        command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--until-end", "--batch", str(AT_ONCE)]
        place_of = ["--bus", f"log:{place}/log", "--store", f"sqlite:///{place}/store.db"]
        return seconds(lambda: subprocess.run([*command, *place_of], check=True, capture_output=True))


class Parts(NamedTuple):
    """Seconds that each took by itself."""

    making: float
    merging: float
    bare: float
    rows: int


def parts(url: str, data: list[bytes]) -> Parts:
    """Making rows, merging them, and the same rows merged by COPY and statements written by hand."""
    with open_store(url) as store:
        pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "t")
        where = BusPartition("c", "t", 0)
        taken = [BusRecord(each, where, number, None) for number, each in enumerate(data)]
        batches = [SourceBatch(tuple(taken[at : at + AT_ONCE])) for at in range(0, len(taken), AT_ONCE)]
        prepared: list[WriteBatch] = []
        making = seconds(lambda: prepared.extend(_rows_of(pipeline.prepare(each)) for each in batches))
        packed = [{packed.name: packed.rows for packed in pack_rows(each.rows)} for each in prepared]
        merging = seconds(lambda: [store.bulk.merge(each) for each in prepared])
        digest = digest_in(store)
        emptied(store)
        bare = Bare(store.engine)
        bare.prepare(packed)
        by_hand = sum(seconds(partial(bare.merge, each)) for each in packed)
        bare.close()
        if digest_in(store) != digest:
            raise SystemExit("the two ways don't end in the same rows: their times mean nothing")
        return Parts(making, merging, by_hand, sum(len(rows) for each in packed for rows in each.values()))


def _rows_of(prepared: PreparedBatch) -> WriteBatch:
    return WriteBatch(prepared.parts[""].read.rows)


def digest_in(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=EVENTS)
    parser.add_argument("--fsync-off", action="store_true", help="let PostgreSQL not wait for its disk")
    given = parser.parse_args()
    count: int = given.events
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    codec = Codec()
    data = [codec.encode(each) for each in events(count)]
    fresh = [codec.encode(each) for each in events(count // 4, seed=8, shapes=0)]
    print(f"{count} events, {sum(map(len, data)) // count} bytes each, {AT_ONCE} in a transaction")
    server = partial(local.postgres, durable=not given.fsync_off)
    with server() as postgres:
        print(fsync_words(postgres.address), flush=True)
        alone = parts(postgres.address, [codec.encode(each) for each in events(count, seed=9)])
        say("making rows", count, alone.making)
        say("merging them", count, alone.merging, f"{alone.rows / alone.merging:,.0f} rows/s")
        say("the same by hand", count, alone.bare, f"{alone.rows / alone.bare:,.0f} rows/s, COPY and merge")
    with local.kafka() as kafka:
        for processes in (1, 2):
            with server() as postgres:  # one that nothing was deleted from
                took = whole(kafka.address, postgres.address, data, "--processes", str(processes))
            for when, each in zip(("first half", "second half"), took, strict=True):
                say(f"Kafka, {processes} processes, {when}", count, each, f"{alone.bare / each:.2f} of by hand")
        with server() as postgres:
            say("every shape new", len(fresh), whole(kafka.address, postgres.address, fresh).second)
    seconds_taken = into_sqlite(data[: count // 3])
    say("log to SQLite", count // 3, seconds_taken, "its start included")


def say(what: str, count: int, took: float, more: str = "") -> None:
    print(f"{what:<28}{count / took:>10,.0f} events/s{1e6 * took / count:>9.1f} us each   {more}", flush=True)


if __name__ == "__main__":
    main()
