"""Walking a large store: how long answers take, and how that grows with the store and with the answer.

    python -m tests.benchmarks.store_graph [edges on PostgreSQL] [edges on SQLite] [edges at least]

The aims, on PostgreSQL, as a p99: what one snapshot was made from, directly, 10 ms; its whole chain 50 ms; the closure
of a table 50 ms; the gaps of an hour, where there are some, 250 ms. A chain or closure is cut at 500 edges;
those that are cut count like all others, and have a row of their own. What is larger streams, at 5,000 edges a
second or more.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, text

from headwater import local
from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.snapshots import (
    downstream_snapshots,
    stream_upstream_snapshots,
    upstream_snapshots,
)
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.sql import METADATA
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims
from tests.kit.lineage.graph import BEGAN, Graph, Size, key_of, load_postgres, load_sqlite

SMALL = 500
AIMS = {"direct upstream": 10.0, "whole chain": 50.0, "tables, closure": 50.0, "gaps of an hour": 250.0}
"""Milliseconds, p99."""
STREAMED = 5_000.0
HOURS = 6
TIMES = 400
Question = Callable[[Connection, Dataset, int], Any]


@dataclass
class Measured:
    """Milliseconds of each call, and how many edges it answered."""

    took: list[float] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Of this process alone: on a busy machine it says more than the clock."""
    pages: float | None = None
    """Of 8 KB, that PostgreSQL looked at for a call: how an answer grows with the store, whatever else runs."""

    @property
    def p99(self) -> float:
        ordered = sorted(self.took)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]

    def large(self) -> Measured:
        """Those of 500 edges and more alone."""
        found = Measured()
        for took, edges, cpu in zip(self.took, self.edges, self.cpu, strict=True):
            if edges >= SMALL:
                found.took.append(took)
                found.edges.append(edges)
                found.cpu.append(cpu)
        return found

    def row(self, name: str) -> str:
        if not self.took:
            return f"{name:<28} no such answer"
        figures = f"{len(self.took):6}{statistics.mean(self.edges):9.1f}{statistics.median(self.took):9.2f}"
        figures += f"{self.p99:9.2f}{statistics.mean(self.cpu):9.2f}"
        pages = "        -" if self.pages is None else f"{self.pages:9.0f}"
        return f"{name:<28}{figures}{pages}"


QUESTIONS: dict[str, Question] = {
    "direct upstream": lambda c, table, number: upstream_snapshots(c, table, number, depth=1),
    "whole chain": lambda c, table, number: upstream_snapshots(c, table, number, at_most=SMALL),
    "direct state": lambda c, table, number: upstream_state(c, table, number, depth=1),
    "direct downstream": lambda c, table, number: downstream_snapshots(c, table, number, depth=1, at_most=SMALL),
    "tables, direct": lambda c, table, _: upstream_tables(c, table, depth=1),
    "tables, closure": lambda c, table, _: upstream_tables(c, table, at_most=SMALL),
    "tables, downstream": lambda c, table, _: downstream_tables(c, table, at_most=SMALL),
    "gaps of an hour": lambda c, table, _: gaps(c, **hour_of(table)),
}


def hour_of(table: Dataset) -> dict[str, Any]:
    """One of the hours that even a small store has commits of."""
    began = moment_of(BEGAN) + timedelta(hours=table.key[0] % HOURS)
    return {"since": began, "until": began + timedelta(hours=1), "now": moment_of(BEGAN) + timedelta(days=400)}


def measured(
    engine: Engine, graph: Graph, times: int = TIMES, names: Iterable[str] = tuple(QUESTIONS)
) -> dict[str, Measured]:
    """Of random snapshots: all but empty answers."""
    chance = random.Random(7)
    found = {name: Measured() for name in names}
    with engine.connect() as connection:
        for name, each in found.items():
            question, before = QUESTIONS[name], pages_of(connection)
            for attempt in range(times + 20):
                table = chance.randrange(graph.size.tables)
                number = chance.randint(1, max(1, graph.snapshots[table]))
                began, used = time.perf_counter(), time.process_time()
                answer = question(connection, Dataset(key_of("dataset", table)), number)
                took, cpu = (time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000
                if attempt >= 20 and len(answer) > 0:
                    each.took.append(took)
                    each.cpu.append(cpu)
                    each.edges.append(len(answer))
            after = pages_of(connection)
            each.pages = None if before is None or after is None else (after - before) / (times + 20)
    return found


def pages_of(connection: Connection) -> int | None:
    """All that this database has looked at so far."""
    if connection.dialect.name != "postgresql":
        return None
    connection.execute(text("SELECT pg_stat_force_next_flush()"))
    connection.commit()
    looked = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
    found: int | None = connection.scalar(text(looked))
    connection.commit()
    return found


def streamed(engine: Engine, graph: Graph, most: int = 200_000) -> tuple[int, float]:
    """Edges of the largest chain there is, and how many of them come a second."""
    with engine.connect() as connection:
        table = graph.size.tables - 1
        began, count = time.perf_counter(), 0
        rows: Iterator[Any] = stream_upstream_snapshots(
            connection, Dataset(key_of("dataset", table)), graph.snapshots[table], basis="state"
        )
        for _ in rows:
            count += 1
            if count >= most:
                break
        return count, count / (time.perf_counter() - began)


@contextmanager
def postgres() -> Generator[Engine, None, None]:
    with local.postgres(durable=False) as service:
        store = open_store(service.address)
        try:
            yield store.engine
        finally:
            store.close()


@contextmanager
def sqlite() -> Generator[Engine, None, None]:
    with tempfile.TemporaryDirectory() as directory:
        engine = create_engine(f"sqlite:///{Path(directory) / 'lineage.db'}")
        METADATA.create_all(engine)
        try:
            yield engine
        finally:
            engine.dispose()


def size_of(edges: int) -> Size:
    """10,000 jobs and 50,000 tables, fewer in small stores: each table is written."""
    tables = min(50_000, edges // 50)
    return Size(tables, max(1, tables // 5), edges)


def bytes_of(engine: Engine) -> int:
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            pages = connection.scalar(text("PRAGMA page_count")) or 0
            return int(pages) * int(connection.scalar(text("PRAGMA page_size")) or 0)
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def show(engine: Engine, graph: Graph, loaded: float, aims: Aims) -> None:
    name = engine.dialect.name
    size = bytes_of(engine)
    print(
        f"\n{name}: {graph.edges:,} edges of {graph.commits:,} commits, {graph.size.tables:,} tables; loaded in "
        f"{loaded:.0f} s; {size / 1e9:.2f} GB, {size / graph.edges:.0f} bytes an edge; load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'':<28}{'calls':>6}{'edges':>9}{'p50 ms':>9}{'p99 ms':>9}{'cpu ms':>9}{'pages':>9}", flush=True)
    found = measured(engine, graph)
    for question, each in found.items():
        print(each.row(question), flush=True)
        if (large := each.large()).took:
            print(large.row(f"  of {SMALL} edges and more"), flush=True)
    count, rate = streamed(engine, graph)
    print(f"streamed: {count:,} edges of one state's chain at {rate:,.0f} a second", flush=True)
    if name == "postgresql":
        for question, aim in AIMS.items():
            aims.is_true(f"{graph.size.edges:,} edges, {question}: there are such answers", bool(found[question].took))
            aims.at_most(f"{graph.size.edges:,} edges, {question}: p99", found[question].p99, aim, "ms")
        aims.at_least(f"{graph.size.edges:,} edges, streamed", rate, STREAMED, "edges/s")


def main() -> int:
    """Print the tables; 1 if an aim is missed."""
    greatest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    greatest_lite = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1_000_000
    aims = Aims()
    least = int(float(sys.argv[3])) if len(sys.argv) > 3 else 0
    for edges in (each for each in (10**5, 10**6, 10**7) if each >= least):
        for opened, load, most in ((postgres, load_postgres, greatest), (sqlite, load_sqlite, greatest_lite)):
            if edges <= most:
                with opened() as engine:
                    began = time.perf_counter()
                    graph = load(engine, size_of(edges))
                    show(engine, graph, time.perf_counter() - began, aims)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
