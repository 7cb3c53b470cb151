"""A generated store: jobs, tables and commits as a large warehouse has them; the same for the same size.

Tables stand in five layers. A commit makes the next snapshot of its table out of the newest snapshots of the table's
sources. A few tables are written very often and a few are read by very many, as it is in warehouses. An event of one
producer in a thousand never came, and another one in a thousand died: these are the gaps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Engine, text

from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import METADATA, table_of
from headwater.lineage.sql.tables import stamp_name

READ, APPEND, OVERWRITE = "READ", "APPEND", "OVERWRITE"
"""How a table is used: beside its number the name of a place."""
BEGAN: Final = 1_767_225_600_000_000
MINUTE: Final = 60_000_000
GAP_EVERY: Final = 1_000
_HOLE_AT, _DEATH_AT = 500, 700
_LAYERS: Final = (0.40, 0.30, 0.20, 0.08, 0.02)
_PORTION: Final = 20_000
_ABSENT: Final = {"deleted": -(2**63)}
Values = dict[str, Any]


def key_of(what: str, number: int) -> bytes:
    return blake2b(f"{what}{number}".encode(), digest_size=16).digest()


@dataclass(frozen=True)
class Size:
    tables: int
    jobs: int
    edges: int
    """Reads of snapshots, at least."""


@dataclass
class Graph:
    """What was generated, as far as questions need it."""

    size: Size
    sources: list[tuple[int, ...]] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    """The newest of each table."""
    commits: int = 0
    edges: int = 0
    holes: int = 0
    deaths: int = 0
    """What `gaps` has to answer."""


def generated(graph: Graph) -> Iterator[tuple[RowKind, Values]]:
    """All rows of a graph of this size, which is known when they have been taken."""
    size = graph.size
    chance = random.Random(size.edges)
    graph.sources = list(_sources(size, chance))
    graph.snapshots = [0] * size.tables
    yield from _names(graph)
    yield from _commits(graph, chance)


def _sources(size: Size, chance: random.Random) -> Iterator[tuple[int, ...]]:
    """Of each table. Those of the first layer have none; fan-in is 2 to 40, mostly few; some tables are read by very
    many."""
    ends: list[int] = []
    for share in _LAYERS:
        ends.append((ends[-1] if ends else 0) + round(size.tables * share))
    ends[-1] = size.tables
    for number in range(size.tables):
        layer = next(n for n, end in enumerate(ends) if number < end)
        if layer == 0:
            yield ()
            continue
        low, high = (ends[layer - 2] if layer > 1 else 0), ends[layer - 1]
        count = min(40, 2 + int(chance.expovariate(1 / 8)))
        yield tuple({low + int((high - low) * chance.random() ** 3) for _ in range(count)})


def _names(graph: Graph) -> Iterator[tuple[RowKind, Values]]:
    times = {"first": BEGAN, "last": BEGAN}
    for number in range(graph.size.tables):
        key = key_of("dataset", number)
        yield t.DATASET, {"id": key, "namespace": "s3://lake", "name": f"warehouse/db{number % 100}/t{number}"}
        name = {"catalog": "lake", "database_name": f"db{number % 100}", "table_name": f"t{number}"}
        yield t.ALIAS, {"id": key_of("alias", number), "dataset": key, **name, **times}
        yield from places(number, name)
        yield (
            t.GENERATION,
            {"id": key_of("generation", number), "dataset": key, "generation": "1", "format": "DELTA", **times},
        )
        for source in graph.sources[number]:
            edge = {"target": key, "source": key_of("dataset", source), "fingerprint": key_of("shape", number)}
            job = {"job_namespace": "default", "job": f"job{number % graph.size.jobs}.lake.t{number}"}
            job |= {"parent_namespace": "default", "parent_job": f"job{number % graph.size.jobs}"}
            yield (
                t.TABLE_EDGE,
                {"id": key_of(f"edge{number}.", source), **edge, **job, "certainty": "EXACT", **times},
            )


def _commits(graph: Graph, chance: random.Random) -> Iterator[tuple[RowKind, Values]]:
    """Each table is written in turn at first, and then those that are written often."""
    while graph.edges < graph.size.edges:
        n = graph.commits
        table = n if n < graph.size.tables else int(graph.size.tables * chance.random() ** 1.5)
        yield from _commit(graph, table, n)
        graph.commits += 1


def _commit(graph: Graph, table: int, n: int) -> Iterator[tuple[RowKind, Values]]:
    at = BEGAN + n * 1_000_000
    barrier, commit, run = (at // 1000) << 20, key_of("commit", n), key_of("run", n)
    times = {"first": at, "last": at}
    job = f"job{table % graph.size.jobs}"
    facts = {"parent_namespace": "default", "parent_job": job, "run": run, "fingerprint": key_of("shape", table)}
    named = {"job_namespace": "default", "job": f"{job}.lake.t{table}", "incarnation": run, "barrier": barrier}
    yield t.COMMIT, {"id": commit, **named, **facts, "statement": 1, "committed_at": at, "application": job, **times}
    for place, source in enumerate(graph.sources[table]):
        read = {"place_id": key_of(READ, source), "snapshot": graph.snapshots[source], "row_count": 1000, **times}
        yield t.READ, {"id": key_of(f"read{n}.", place), "commit_id": commit, "barrier": barrier, **read}
        graph.edges += 1
    graph.snapshots[table] += 1
    number = graph.snapshots[table]
    made = {"place_id": key_of(OVERWRITE if number % 20 == 0 else APPEND, table), "snapshot": number, **times}
    made |= {"parent_snapshot": number - 1 if number > 1 else None, "row_count": 1000}
    yield t.WRITE, {"id": key_of("write", n), "commit_id": commit, "barrier": barrier, **made}
    has_hole, is_dead = n % GAP_EVERY == _HOLE_AT, n % GAP_EVERY == _DEATH_AT
    graph.holes, graph.deaths = graph.holes + has_hole, graph.deaths + is_dead
    bits = 0b101 if has_hole else 0b111
    block = {"producer": run, "family": "JOB", "block": 0, "bits": bits, "first": at, "last": at + MINUTE}
    yield t.ARRIVAL, {"id": key_of("arrivals", n), **block}
    closed = {"closed_at": None if is_dead else at + MINUTE, "complete": None if is_dead else 1}
    beat = {"producer": run, "application": job, "sequence": 3, **closed}
    yield t.PRODUCER, {"id": key_of("producer", n), **beat, **times}
    start = {"run": run, "job_namespace": "default", "job": job, "application": job, "scope": "APPLICATION"}
    yield t.RUN, {"id": key_of("runs", n), **start, "status": "FINISHED", "started_at": at, **times}


def places(table: int, name: Values) -> Iterator[tuple[RowKind, Values]]:
    """How a table is read and written."""
    of = {"dataset": key_of("dataset", table), **name, "generation": "1", "format": "DELTA", "main": 1}
    yield t.PLACE, {"id": key_of(READ, table), **of, "mode": "STATE"}
    for kind, replaced in ((APPEND, "NOTHING"), (OVERWRITE, "ALL")):
        made = {"commit_kind": kind, "replaced": replaced, "made_from": "ALL"}
        yield t.PLACE, {"id": key_of(kind, table), **of, **made}


class Loading:
    """Rows into a database, portion by portion of each kind."""

    def __init__(self, put: Callable[[RowKind, list[tuple[Any, ...]]], None]) -> None:
        self._put = put
        self._waiting: dict[RowKind, list[tuple[Any, ...]]] = {}
        self._defaults: dict[RowKind, list[tuple[str, Any]]] = {}

    def load(self, rows: Iterator[tuple[RowKind, Values]]) -> None:
        for kind, values in rows:
            waiting = self._waiting.setdefault(kind, [])
            waiting.append(tuple([values.get(name, default) for name, default in self._columns(kind)]))
            if len(waiting) >= _PORTION:
                self._put(kind, waiting)
                waiting.clear()
        for kind, waiting in self._waiting.items():
            self._put(kind, waiting)

    def _columns(self, kind: RowKind) -> list[tuple[str, Any]]:
        known = self._defaults.get(kind)
        if known is None:
            stamps = {stamp_name(group.name) for group in kind.groups}
            names = [column.name for column in table_of(kind).c]
            known = self._defaults[kind] = [
                (name, bytes(33) if name in stamps else _ABSENT.get(name)) for name in names
            ]
        return known


def load_postgres(engine: Engine, size: Size) -> Graph:
    graph = Graph(size)
    put_postgres(engine, generated(graph))
    return graph


def load_sqlite(engine: Engine, size: Size) -> Graph:
    graph = Graph(size)
    put_sqlite(engine, generated(graph))
    return graph


def put_postgres(engine: Engine, rows: Iterator[tuple[RowKind, Values]]) -> None:
    """By COPY into tables without indexes, which are made afterwards."""
    names = (t.DATASET, t.ALIAS, t.GENERATION, t.TABLE_EDGE, t.PLACE)
    kinds = (*names, t.COMMIT, t.READ, t.WRITE, t.ARRIVAL, t.PRODUCER, t.RUN)
    dropped = list(_dropped(engine, kinds))
    raw = engine.raw_connection()
    driver: Any = raw.driver_connection

    def put(kind: RowKind, portion: list[tuple[Any, ...]]) -> None:
        names = ", ".join(f'"{column.name}"' for column in table_of(kind).c)
        with driver.cursor() as cursor, cursor.copy(f"COPY {kind.name} ({names}) FROM STDIN") as copy:
            copy.write("".join(map(_line, portion)))

    try:
        Loading(put).load(rows)
        driver.commit()
    finally:
        raw.close()
    with engine.begin() as connection:
        connection.execute(text("SET maintenance_work_mem = '1GB'"))
        for statement in dropped:
            connection.execute(text(statement))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))


def _dropped(engine: Engine, kinds: Iterable[RowKind]) -> Iterator[str]:
    """Drops the indexes of these tables; the statements make them again."""
    names = [kind.name for kind in kinds]
    wanted = text(
        "SELECT c.conname, c.conrelid::regclass::text, pg_get_constraintdef(c.oid) FROM pg_constraint c "
        "JOIN pg_class r ON r.oid = c.conrelid "
        "WHERE c.contype = 'p' AND r.relname = ANY(:names) AND NOT r.relispartition"
    )
    others = text(
        "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class r "
        "ON r.oid = i.indrelid WHERE r.relname = ANY(:names) AND NOT i.indisprimary AND NOT r.relispartition"
    )
    with engine.begin() as connection:
        keys = connection.execute(wanted, {"names": names}).all()
        indexes = connection.execute(others, {"names": names}).all()
        for name, table, _ in keys:
            connection.execute(text(f"ALTER TABLE {table} DROP CONSTRAINT {name}"))
        for name, _ in indexes:
            connection.execute(text(f"DROP INDEX {name}"))
    for name, table, definition in keys:
        yield f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"
    for _, definition in indexes:
        yield definition.replace(" ON ONLY ", " ON ")


def put_sqlite(engine: Engine, rows: Iterator[tuple[RowKind, Values]]) -> None:
    raw = engine.raw_connection()
    driver: Any = raw.driver_connection

    def put(kind: RowKind, portion: list[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(table_of(kind).c))
        driver.executemany(f"INSERT INTO {kind.name} VALUES ({marks})", portion)

    try:
        Loading(put).load(rows)
        driver.commit()
        driver.execute("ANALYZE")
        driver.commit()
    finally:
        raw.close()


def put_mysql(engine: Engine, rows: Iterator[tuple[RowKind, Values]]) -> None:
    raw = engine.raw_connection()
    driver: Any = raw.driver_connection

    def put(kind: RowKind, portion: list[tuple[Any, ...]]) -> None:
        marks = ", ".join(["%s"] * len(table_of(kind).c))
        with driver.cursor() as cursor:
            cursor.executemany(f"INSERT INTO `{kind.name}` VALUES ({marks})", portion)

    try:
        Loading(put).load(rows)
        driver.commit()
    finally:
        raw.close()
    with engine.begin() as connection:
        for table in METADATA.tables:
            connection.execute(text(f"ANALYZE TABLE `{table}`"))


def _line(row: tuple[Any, ...]) -> str:
    return "\t".join([_text(value) for value in row]) + "\n"


def _text(value: Any) -> str:
    if value is None:
        return "\\N"
    return f"\\\\x{value.hex()}" if isinstance(value, bytes) else str(value)
