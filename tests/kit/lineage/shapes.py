"""Shapes of lineage that make answers long, and the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.history import history
from headwater.lineage.questions.lateness import lateness
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables
from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from tests.kit.lineage.graph import APPEND, BEGAN, OVERWRITE, READ, Values, key_of, places

SECOND: Final = 1_000_000
HUB, READERS = 0, 10_000
PING, PONG, ROUNDS = 20_001, 20_002, 4_000
LONG, FEED, SNAPSHOTS = 20_003, 20_004, 100_000
LATE, SOURCES = 20_100, 200
OTHER_HUB, WIDE, FEEDERS = 30_000, 50_000, 10_000
"""Made from as many tables as another hub has readers, and from one of those."""


@dataclass(frozen=True)
class Write:
    """One commit of a job: what it made, out of which snapshots."""

    table: int
    snapshot: int
    sources: tuple[tuple[int, int], ...] = ()
    restarts: bool = False


def writes(share: float) -> Iterator[Write]:
    """The commits of all shapes, in the order in which they happened."""
    yield Write(HUB, 1)
    for number in range(1, int(READERS * share) + 1):
        yield Write(HUB + number, 1, ((HUB, 1),))
    for number in range(1, int(ROUNDS * share) + 1):
        yield Write(PING, number, ((PONG, number - 1),) if number > 1 else (), restarts=True)
        yield Write(PONG, number, ((PING, number),), restarts=True)
    for number in range(1, int(SNAPSHOTS * share) + 1):
        yield Write(FEED, number)
        yield Write(LONG, number, ((FEED, number),))
    for number in range(1, SOURCES + 1):
        for version in range(1, 21):
            yield Write(LATE + number, version)
    yield Write(LATE, 1, tuple((LATE + number, 20) for number in range(1, SOURCES + 1)))
    yield Write(OTHER_HUB, 1)
    for number in range(1, int(FEEDERS * share) + 1):
        yield Write(OTHER_HUB + number, 1, ((OTHER_HUB, 1),))
        yield Write(WIDE + number, 1)
    feeders = (WIDE + number for number in range(1, int(FEEDERS * share) + 1))
    yield Write(WIDE, 1, ((OTHER_HUB + 5, 1), *((number, 1) for number in feeders)))


def rows(share: float) -> Iterator[tuple[RowKind, Values]]:
    """The rows of a store that was told of these commits."""
    tables: set[int] = set()
    edges: set[tuple[int, int]] = set()
    for n, write in enumerate(writes(share)):
        if write.table not in tables:
            tables.add(write.table)
            yield from _names(write.table)
        for source, _ in write.sources:
            if (write.table, source) not in edges:
                edges.add((write.table, source))
                yield from _edge(write.table, source)
        yield from _commit(write, n)


def _names(number: int) -> Iterator[tuple[RowKind, Values]]:
    key, times = key_of("dataset", number), {"first": BEGAN, "last": BEGAN}
    yield t.DATASET, {"id": key, "namespace": "s3://lake", "name": f"warehouse/db/t{number}"}
    name = {"catalog": "lake", "database_name": "db", "table_name": f"t{number}"}
    yield t.ALIAS, {"id": key_of("alias", number), "dataset": key, **name, **times}
    yield from places(number, name)
    kind = {"generation": "1", "format": "DELTA"}
    yield t.GENERATION, {"id": key_of("generation", number), "dataset": key, **kind, **times}


def _edge(target: int, source: int) -> Iterator[tuple[RowKind, Values]]:
    times = {"first": BEGAN, "last": BEGAN + 10 * SECOND}
    edge = {"target": key_of("dataset", target), "source": key_of("dataset", source)}
    job = {"job_namespace": "default", "job": f"job{target}", "fingerprint": key_of("shape", target)}
    yield t.TABLE_EDGE, {"id": key_of(f"edge{target}.", source), **edge, **job, "certainty": "EXACT", **times}


def _commit(write: Write, n: int) -> Iterator[tuple[RowKind, Values]]:
    at, job, run = BEGAN + n * SECOND, f"job{write.table}", key_of("run", write.table)
    barrier, commit = (at // 1000) << 20, key_of("commit", n)
    times = {"first": at, "last": at}
    by = {"job_namespace": "default", "job": job, "incarnation": run, "barrier": barrier, "run": run}
    facts = {"fingerprint": key_of("shape", write.table), "statement": 1, "committed_at": at, "application": job}
    yield t.COMMIT, {"id": commit, **by, **facts, **times}
    for place, (source, snapshot) in enumerate(write.sources):
        read = {"place_id": key_of(READ, source), "snapshot": snapshot, **times}
        yield t.READ, {"id": key_of(f"read{n}.", place), "commit_id": commit, "barrier": barrier, **read}
    made: Values = {"place_id": key_of(OVERWRITE if write.restarts else APPEND, write.table)}
    made |= {"snapshot": write.snapshot}
    made |= {"parent_snapshot": write.snapshot - 1 if write.snapshot > 1 else None}
    yield t.WRITE, {"id": key_of("write", n), "commit_id": commit, "barrier": barrier, **made, **times}
    if write.snapshot == 1:
        ids = {"id": key_of("table", write.table), "side": "SINK", "dataset": key_of("dataset", write.table)}
        yield t.TABLE_LINEAGE, {**ids, "job_namespace": "default", "job": job, "run": run, **times}
        start = {"run": run, "job_namespace": "default", "job": job, "application": job, "scope": "APPLICATION"}
        yield t.RUN, {"id": key_of("runs", n), **start, "status": "FINISHED", "started_at": at, **times}


def table(number: int) -> Dataset:
    return Dataset(key_of("dataset", number))


@dataclass(frozen=True)
class Shape:
    """A question, and how long it may take."""

    name: str
    ask: Callable[[Connection], Any]
    aim: float
    """Milliseconds, p99."""


def questions(share: float) -> list[Shape]:
    """What is asked of these shapes."""
    rounds, long = int(ROUNDS * share), int(SNAPSHOTS * share)
    now = moment_of(BEGAN) + timedelta(days=30)
    return [
        Shape("hub: first 10 of its readers", lambda c: downstream_snapshots(c, table(HUB), 1, at_most=10), 20),
        Shape("hub: all of its readers", lambda c: downstream_snapshots(c, table(HUB), 1, at_most=100_000), 500),
        Shape("hub: first 10 tables", lambda c: downstream_tables(c, table(HUB), at_most=10), 20),
        Shape("hub: all tables", lambda c: downstream_tables(c, table(HUB), at_most=100_000), 500),
        Shape("two tables: 50 hops", lambda c: upstream_snapshots(c, table(PONG), rounds, depth=50), 50),
        Shape("two tables: tables", lambda c: downstream_tables(c, table(PING)), 20),
        Shape("long table: one snapshot", lambda c: upstream_snapshots(c, table(LONG), long // 2), 10),
        Shape("long table: state of 40 %", lambda c: upstream_state(c, table(LONG), long * 2 // 5), 500),
        Shape(
            "long table: what state feeds",
            lambda c: downstream_snapshots(c, table(LONG), 1, basis="state", at_most=10),
            500,
        ),
        Shape("long table: history", lambda c: history(c, table(LONG)), 200),
        Shape("late over 200 tables", lambda c: lateness(c, table(LATE)), 300),
        Shape("path: hub to a reader", lambda c: path_between(c, table(HUB), table(HUB + 5)), 50),
        Shape("path: hub to a wide table", lambda c: path_between(c, table(OTHER_HUB), table(WIDE)), 500),
        Shape("gaps", lambda c: gaps(c, now=now), 200),
    ]


class Statements:
    """Counts what is sent to a database."""

    def __init__(self, engine: Engine) -> None:
        self.count = 0
        event.listen(engine, "before_cursor_execute", self.add)

    def add(self, *_: object) -> None:
        """Count one."""
        self.count += 1
