"""Ten tables in a large graph that read the same sources again and again, some of them behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from tests.kit.lineage.graph import (
    APPEND,
    BEGAN,
    OVERWRITE,
    READ,
    Graph,
    Values,
    generated,
    key_of,
    places,
)

TABLES, LAG = 10, 3


def marts(graph: Graph, rounds: int, *, append: bool) -> Iterator[tuple[RowKind, Values]]:
    """The ten tables: in each round all sources get a commit, and then the tables that aren't behind read them."""
    first = graph.size.tables
    sources = [number for number in range(first) if graph.sources[number]][-3:]
    times = {"first": BEGAN, "last": BEGAN}
    for number in range(first, first + TABLES):
        key, name = key_of("dataset", number), {"catalog": "lake", "database_name": "mart", "table_name": f"m{number}"}
        yield t.DATASET, {"id": key, "namespace": "s3://lake", "name": f"warehouse/mart/m{number}"}
        yield t.ALIAS, {"id": key_of("alias", number), "dataset": key, **name, **times}
        yield from places(number, name)
        for source in sources:
            edge: Values = {"target": key, "source": key_of("dataset", source), "job_namespace": "default", **times}
            yield t.TABLE_EDGE, {"id": key_of(f"edge{number}.", source), "certainty": "EXACT", **edge}
    at, count = graph.commits, [0] * TABLES
    for turn in range(1, rounds + LAG + 1):
        if turn <= rounds:
            for source in sources:
                graph.snapshots[source] += 1
                yield from _commit(source, graph.snapshots[source], [], at := at + 1, append=False)
        for mart in range(TABLES):
            if turn <= rounds - mart % LAG:
                count[mart] += 1
                reads = [(each, graph.snapshots[each]) for each in sources]
                yield from _commit(first + mart, count[mart], reads, at := at + 1, append=append)


def _commit(
    table: int, number: int, reads: list[tuple[int, int]], n: int, *, append: bool
) -> Iterator[tuple[RowKind, Values]]:
    at = BEGAN + n * 1_000_000
    barrier, commit, run = (at // 1000) << 20, key_of("commit", n), key_of("run", n)
    times = {"first": at, "last": at}
    job: dict[str, Any] = {"job_namespace": "default", "job": f"job.t{table}", "incarnation": run, "barrier": barrier}
    yield (
        t.COMMIT,
        {"id": commit, **job, "statement": 1, "committed_at": at, "application": "mart", "run": run, **times},
    )
    for place, (source, snapshot) in enumerate(reads):
        read = {"place_id": key_of(READ, source), "snapshot": snapshot, **times}
        yield t.READ, {"id": key_of(f"read{n}.", place), "commit_id": commit, "barrier": barrier, **read}
    kind = OVERWRITE if not append and number % 20 == 0 else APPEND
    made = {"place_id": key_of(kind, table), "snapshot": number, "parent_snapshot": number - 1 if number > 1 else None}
    yield t.WRITE, {"id": key_of("write", n), "commit_id": commit, "barrier": barrier, **made, **times}


def everything(graph: Graph, rounds: int, *, append: bool) -> Iterator[tuple[RowKind, Values]]:
    """All rows of the store."""
    yield from generated(graph)
    yield from marts(graph, rounds, append=append)
