"""A day of a platform that reports 1,500 events a second, with retention on.

    .venv/bin/python -m tests.benchmarks.simulated_day [share]

One of `share` events is written, by the plain writer's pipeline into PostgreSQL, as fast as that goes; their times run
through the day. After each hour data lineage that is older than four hours expires and is purged, and records of runs
as old as that are removed. So whatever has a retention stops growing after some hours, in rows and in bytes, and the
writer's memory too. What nothing removes (the history of schemas) is shown beside it.
"""

from __future__ import annotations

import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from headwater import local
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.events import Event
from headwater.events.avro import Codec
from headwater.events.clock import micros_of
from headwater.lineage.bulk import BusPartition, WriteBatch
from headwater.lineage.maintenance.aging import REMOVED_BY, remove_old
from headwater.lineage.maintenance.deletion import expire_before
from headwater.lineage.maintenance.purge import purge
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store, open_store
from headwater.lineage.store.status import StoreSize, size_of
from tests.benchmarks.harness import Aims
from tests.kit.events.mixture import BEGAN, events
from tests.kit.faults.measured import resident

RATE: Final = 1_500
SHARE: Final = 400
HOURS: Final = 24
KEPT_HOURS: Final = 4
SETTLED: Final = 12
"""The hour with which the last one is compared: retention has worked for eight."""
AT_ONCE: Final = 5_000
MOST_GROWTH: Final = 1.15
MOST_MEMORY: Final = 16 << 20
STAYS: Final = frozenset(name for name, by in REMOVED_BY.items() if by.startswith("nothing"))
PARTITION: Final = BusPartition("cluster", "topic")
DELETER: Final = UUID(int=99)


class Hour(NamedTuple):
    """The store and the writer after an hour."""

    rows: int
    """Of tables that have a retention."""
    bytes: int
    memory: int
    other_rows: int


def of_the_day(share: int) -> Iterator[Iterator[Event]]:
    """Yield the events of each hour, one by one: an hour's list would be most of this process's memory."""
    a_second = RATE / share
    count = int(a_second * 3_600)
    source = events(count * HOURS)
    for hour in range(HOURS):
        yield (
            next(source).model_copy(update={"time": BEGAN + timedelta(hours=hour, seconds=number / a_second)})
            for number in range(count)
        )


def write(pipeline: StorePipeline, codec: Codec, some: Iterator[Event], first: int) -> int:
    """Write all, and return the offset behind them."""
    while part := tuple(
        BusRecord(codec.encode(event), PARTITION, first + number, micros_of(event.time))
        for number, event in enumerate(islice(some, AT_ONCE))
    ):
        pipeline.store(pipeline.prepare(SourceBatch(part)))
        first += len(part)
    return first


def retain(store: Store, now: datetime, number: int) -> None:
    """Expire, purge and remove what is old."""
    horizon = now - timedelta(hours=KEPT_HOURS)
    deletion = expire_before(horizon).model_copy(
        update={"producer": DELETER, "sequence": number, "family_sequence": number, "time": now}
    )
    store.bulk.merge(WriteBatch(tuple(map_event(deletion))))
    purge(store.engine)
    remove_old(store.engine, micros_of(horizon))
    with store.engine.connect() as connection:  # what a server does by itself once in a while
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM ANALYZE")


def measure(size: StoreSize) -> Hour:
    kept = [each for each in size.tables if each.table not in STAYS]
    others = sum(each.rows for each in size.tables if each.table in STAYS)
    return Hour(sum(each.rows for each in kept), sum(each.bytes or 0 for each in kept), resident(os.getpid()), others)


def live_through(store: Store, share: int) -> list[Hour]:
    codec, pipeline = Codec(), StorePipeline({"": store.bulk}, "day", "kafka", "events")
    hours: list[Hour] = []
    first = 0
    for number, some in enumerate(of_the_day(share), 1):
        first = write(pipeline, codec, some, first)
        retain(store, BEGAN + timedelta(hours=number), number)
        gc.collect()
        with store.engine.connect() as connection:
            hours.append(measure(size_of(connection)))
        print(f"hour {number:2}: {words(hours[-1])}", flush=True)
    return hours


def words(hour: Hour) -> str:
    parts = f"{hour.rows:9,} rows, {hour.bytes / 1e6:7.1f} MB with a retention; {hour.other_rows:9,} rows without"
    return f"{parts}; writer {hour.memory / 1e6:5.0f} MB"


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("share", type=int, nargs="?", default=SHARE)
    share: int = parser.parse_args().share
    aims = Aims()
    with local.postgres(durable=False) as postgres, open_store(postgres.address) as store:
        hours = live_through(store, share)
    settled, last = hours[SETTLED - 1], hours[-1]
    aims.at_most("rows with a retention, hour 24 to hour 12", last.rows / settled.rows, MOST_GROWTH)
    aims.at_most("bytes of their tables", last.bytes / settled.bytes, MOST_GROWTH)
    aims.at_most("growth of the writer's memory, MB", (last.memory - settled.memory) / 1e6, MOST_MEMORY / 1e6)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
