"""Rows a second into a lake store, beside a bare MERGE of the same rows that were made before:

    python -m tests.benchmarks.lake_store [events]

Ours looks first which rows change the table, and merges those; bare is the MERGE alone, of frames in memory. Each
turn has tables of its own, into which the same rows come twice: new ones, and then all of them again.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from headwater import local
from headwater.consumers.spark.pipeline.lake import LakeTables
from headwater.lineage.bulk import pack_rows
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.mapping import map_event
from tests.kit.events.mixture import events
from tests.kit.lake.sessions import Lakes, lakes

EVENTS = 20_000


def merge_all(lake: LakeTables, frames: dict[str, Any], *, bare: bool) -> float:
    began = time.perf_counter()
    for name, frame in frames.items():
        if not bare:
            lake.merge(name, frame)
            continue
        frame.createOrReplaceTempView("rows_of_bench")
        lake.spark.sql(lake_tables()[name].merge_text(lake.address.table(name), "rows_of_bench", None))
    return time.perf_counter() - began


def turn(session: Lakes, values: dict[str, Any], *, bare: bool) -> tuple[float, float]:
    lake = LakeTables.open(session.spark, session.address())
    frames = {name: lake.frame_of(name, rows).persist() for name, rows in values.items()}
    for frame in frames.values():
        frame.count()
    return merge_all(lake, frames, bare=bare), merge_all(lake, frames, bare=bare)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    packed = pack_rows(row for each in events(count) for row in map_event(each))
    values = {each.name: each.rows for each in packed}
    rows = sum(map(len, values.values()))
    with tempfile.TemporaryDirectory() as place, lakes(local.java().home, Path(place)) as session:
        turn(session, values, bare=False)  # warms up
        print(f"{rows:,} rows of {count:,} events in {len(values)} tables")
        for bare in (False, True):
            new, again = turn(session, values, bare=bare)
            rates = f"new {rows / new:>10,.0f} rows/s   again {rows / again:>10,.0f} rows/s"
            print(f"{'bare MERGE' if bare else 'ours':<12}{rates}   load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
