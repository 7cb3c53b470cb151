"""Questions about a large graph, and how long each of them takes."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, text

from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.snapshots import (
    downstream_snapshots,
    upstream_snapshots,
)
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from tests.kit.lineage.graph import BEGAN, Graph, Size, key_of

SMALL = 500
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


def size_of(edges: int) -> Size:
    """10,000 jobs and 50,000 tables, fewer in small stores: each table is written."""
    tables = min(50_000, edges // 50)
    return Size(tables, max(1, tables // 5), edges)
