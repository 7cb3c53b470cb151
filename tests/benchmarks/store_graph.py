"""Walking a large store: how long answers take, and how that grows with the store and with the answer.

    python -m tests.benchmarks.store_graph [edges on PostgreSQL] [edges on SQLite] [edges at least]

The aims, on PostgreSQL, as a p99: what one snapshot was made from, directly, 10 ms; its whole chain 50 ms; the closure
of a table 50 ms; the gaps of an hour, where there are some, 250 ms. A chain or closure is cut at 500 edges;
those that are cut count like all others, and have a row of their own. What is larger streams, at 5,000 edges a
second or more.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, text

from headwater import local
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.snapshots import (
    stream_upstream_snapshots,
)
from headwater.lineage.sql import METADATA
from headwater.lineage.store import open_store
from tests.benchmarks.harness import Aims
from tests.kit.lineage.graph import Graph, key_of, load_postgres, load_sqlite
from tests.kit.lineage.graph_questions import SMALL, measured, size_of

AIMS = {"direct upstream": 10.0, "whole chain": 50.0, "tables, closure": 50.0, "gaps of an hour": 250.0}
"""Milliseconds, p99."""
STREAMED = 5_000.0


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
