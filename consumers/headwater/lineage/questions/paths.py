"""Finds how one table or snapshot gets into another."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lineage_answers import LineageAnswer, SnapshotEdge
from headwater.lineage.questions.names import find
from headwater.lineage.questions.snapshots import upstream_snapshots
from headwater.lineage.questions.tables import TableEdge, upstream_tables
from headwater.lineage.questions.traversal.context import Basis
from headwater.lineage.questions.traversal.identities import Identities

N = TypeVar("N", bound=Hashable)


def path_between(
    connection: Connection,
    source: str | Dataset,
    target: str | Dataset,
    *,
    basis: Basis | str = Basis.COMMIT,
    as_of: datetime | None = None,
) -> LineageAnswer[TableEdge] | LineageAnswer[SnapshotEdge]:
    """Return a shortest path from the source to the target: of tables, or of snapshots if the target is a snapshot. No
    rows means that no path is known."""
    one, many = _resolve(connection, source), _resolve(connection, target)
    if many[1] is not None:
        return _of_snapshots(connection, one, many, basis, as_of)
    return _of_tables(connection, one[0], many[0], as_of)


def _of_tables(
    connection: Connection, source: Dataset, target: Dataset, as_of: datetime | None
) -> LineageAnswer[TableEdge]:
    answer = upstream_tables(connection, target, as_of=as_of, at_most=1_000_000)
    edges = {(each.target.key, each.source.key): each for each in answer.rows}
    identities = Identities(connection)
    way = shortest(list(edges), identities.one(target.key), identities.one(source.key))
    rows = tuple(replace(edges[edge], depth=n) for n, edge in enumerate(reversed(way), 1))
    return replace(answer, rows=rows, of=f"{source.label} -> {target.label}", direction="path")


def _of_snapshots(
    connection: Connection,
    source: tuple[Dataset, int | None],
    target: tuple[Dataset, int | None],
    basis: Basis | str,
    as_of: datetime | None,
) -> LineageAnswer[SnapshotEdge]:
    answer = upstream_snapshots(connection, *target, basis=basis, as_of=as_of, at_most=1_000_000)
    group = Identities(connection).group(source[0].key)
    number = source[1]
    best = next((each for each in answer.rows if _is(each, group, number)), None)
    way: list[SnapshotEdge] = []
    while best is not None:
        way.append(best)
        best = _next(answer.rows, best)
    rows = tuple(replace(each, depth=n) for n, each in enumerate(way, 1))
    label = source[0].label if number is None else f"{source[0].label}@{number}"
    return replace(answer, rows=rows, of=f"{label} -> {answer.of}", direction="path")


def _is(edge: SnapshotEdge, group: Any, number: int | None) -> bool:
    source = edge.source
    if source.dataset is None or source.dataset.key not in group:
        return False
    if number is None or source.snapshot == number:
        return True
    return edge.since is not None and source.snapshot is not None and edge.since < number <= source.snapshot


def _next(rows: Sequence[SnapshotEdge], edge: SnapshotEdge) -> SnapshotEdge | None:
    """Return an edge that read what this one wrote: one step nearer to the target."""
    if edge.depth == 1:
        return None
    made = edge.target
    for each in rows:
        if each.depth == edge.depth - 1 and each.source.dataset == made.dataset and _reads(each, made.snapshot):
            return each
    return None


def _reads(edge: SnapshotEdge, number: int | None) -> bool:
    read = edge.source.snapshot
    if read == number or number is None or read is None:
        return read == number
    return edge.mode == "CHANGES" or number < read


def shortest(edges: Sequence[tuple[N, N]], start: N, end: N) -> list[tuple[N, N]]:
    """Return the edges of a shortest path, or nothing if there is none."""
    following: dict[N, list[N]] = {}
    for one, other in edges:
        following.setdefault(one, []).append(other)
    came: dict[N, tuple[N, N]] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in following.get(node, ()):
            if other not in came:
                came[other] = (node, other)
                waiting.append(other)
        if end in came:
            break
    way: list[tuple[N, N]] = []
    node = end
    while node in came and (not way or node != start):
        way.append(came[node])
        node = came[node][0]
    return list(reversed(way))


def _resolve(connection: Connection, of: str | Dataset) -> tuple[Dataset, int | None]:
    if isinstance(of, Dataset):
        return of, None
    named = find(connection, of)
    return named.dataset, named.snapshot
