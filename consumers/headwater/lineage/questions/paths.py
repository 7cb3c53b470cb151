"""Finds how one table or snapshot gets into another."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import Connection

from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.lineage_answers import LineageAnswer, SnapshotEdge, add_known_limits
from headwater.lineage.questions.name_checks import TableSubject, check_snapshot, resolve_table
from headwater.lineage.questions.names import find
from headwater.lineage.questions.snapshots import SnapshotQuestion
from headwater.lineage.questions.start_points import StartSelector
from headwater.lineage.questions.tables import TableClosure, TableEdge, TablePair
from headwater.lineage.questions.traversal.context import Basis, LineageStep
from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead

_MOST_EDGES: Final = 1_000_000
_MOST_COUNTED: Final = 1_000

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
    if one[1] is not None:
        check_snapshot(connection, resolve_table(connection, one[0]), one[1])
    return _of_tables(connection, one[0], many[0], as_of)


def _of_tables(
    connection: Connection, source: Dataset, target: Dataset, as_of: datetime | None
) -> LineageAnswer[TableEdge]:
    limits = LimitCollector()
    up, down = (TableClosure(connection, upward=up, as_of=as_of, limits=limits) for up in (True, False))
    start, end = up.identity(target.key), up.identity(source.key)
    sides = _Side(up, {start}), _Side(down, {end})
    way = _meet(*sides)
    about = {one for edge in way for one in edge} or sides[0].reached | sides[1].reached
    names = load_datasets(connection, {*about, *limits.datasets})
    add_known_limits(connection, {key: names[key] for key in about}, (), limits)
    rows = ((up if edge in up.edges else down).row(edge, names) for edge in reversed(way))
    return LineageAnswer(
        tuple(replace(row, depth=n) for n, row in enumerate(rows, 1)),
        complete_until(connection),
        limits.as_limits(names),
        of=f"{source.label} -> {target.label}",
        direction="path",
    )


@dataclass
class _Side:
    """The search from one end."""

    closure: TableClosure
    frontier: set[bytes]
    reached: set[bytes] = field(default_factory=set)
    level: int = 0

    def __post_init__(self) -> None:
        self.reached |= self.frontier

    def count_edges(self) -> int:
        return self.closure.count_edges(self.frontier, _MOST_COUNTED)

    def expand(self) -> None:
        self.level += 1
        self.frontier = self.closure.expand(self.frontier, self.level) - self.reached
        self.reached |= self.frontier


def _meet(up: _Side, down: _Side) -> list[TablePair]:
    """Search from both ends, level by level, until they meet. Return the edges of a shortest path from the target.

    Each step is taken where it meets fewer edges: one of the ends may have ten thousand neighbours.
    """
    (start,), (end,) = up.frontier, down.frontier
    while up.frontier and down.frontier:
        min((up, down), key=_Side.count_edges).expand()
        if start == end or not up.reached.isdisjoint(down.reached):
            way = shortest([*{**up.closure.edges, **down.closure.edges}], start, end)
            if way:
                return way
    return []


def _of_snapshots(
    connection: Connection,
    source: tuple[Dataset, int | None],
    target: tuple[Dataset, int | None],
    basis: Basis | str,
    as_of: datetime | None,
) -> LineageAnswer[SnapshotEdge]:
    group, number = Identities(connection).group(source[0].key), source[1]
    question = SnapshotQuestion.of(connection, target[0], StartSelector(target[1]), basis, as_of)
    answer = question.answer("upstream", _until_read(question.upward(None), group, number), _MOST_EDGES)
    best = next((edge for edge in answer.rows if _is(edge, group, number)), None)
    if best is None and number is not None:
        check_snapshot(connection, TableSubject(source[0], group), number)
    way: list[SnapshotEdge] = []
    while best is not None:
        way.append(best)
        best = _next(answer.rows, best)
    rows = tuple(replace(edge, depth=n) for n, edge in enumerate(way, 1))
    label = source[0].label if number is None else f"{source[0].label}@{number}"
    return replace(answer, rows=rows, of=f"{label} -> {answer.of}", direction="path")


def _until_read(
    levels: Generator[list[LineageStep], None, None], group: Collection[bytes], number: int | None
) -> Generator[list[LineageStep], None, None]:
    """Yield the levels up to the first one in which the source was read: no path is shorter."""
    with closing(levels):
        for steps in levels:
            yield steps
            if any(step.read.dataset in group and _contains(step.read, number) for step in steps):
                return


def _is(edge: SnapshotEdge, group: Any, number: int | None) -> bool:
    source = edge.source
    if source.dataset is None or source.dataset.key not in group:
        return False
    return _is_within(number, edge.since, source.snapshot)


def _contains(read: SnapshotRead, number: int | None) -> bool:
    return _is_within(number, read.since, read.snapshot)


def _is_within(number: int | None, since: int | None, until: int | None) -> bool:
    if number is None or number == until:
        return True
    return since is not None and until is not None and since < number <= until


def _next(rows: Sequence[SnapshotEdge], edge: SnapshotEdge) -> SnapshotEdge | None:
    """Return an edge that read what this one wrote: one step nearer to the target."""
    if edge.depth == 1:
        return None
    made = edge.target
    for edge_before in rows:
        if (
            edge_before.depth == edge.depth - 1
            and edge_before.source.dataset == made.dataset
            and _reads(edge_before, made.snapshot)
        ):
            return edge_before
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
