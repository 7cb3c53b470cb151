"""Table lineage, upstream and downstream."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from sqlalchemy import Connection, func, select

from headwater.events.clock import moment_of
from headwater.lineage.questions.answers import LimitReason, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.cycles import find_cycle_edges
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.lineage_answers import LineageAnswer, add_known_limits
from headwater.lineage.questions.name_checks import check_job
from headwater.lineage.questions.names import find
from headwater.lineage.questions.snapshots import AT_MOST, format_job_key
from headwater.lineage.questions.traversal.identities import FOREVER, Identities
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_edges import TableStep, TableWalk
from headwater.lineage.questions.traversal.views import add_view_limit
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import has_any_key, select_by_keys
from headwater.lineage.sql.tables import table_of

WRITE: Final = "WRITE"
VIEW: Final = "VIEW"


@dataclass(frozen=True)
class TableEdge:
    """One table is made from another: by commits, or because it is a view on it."""

    depth: int
    target: Dataset
    source: Dataset
    via: str
    """WRITE or VIEW."""
    jobs: tuple[str, ...]
    first: datetime
    last: datetime
    """When an event last confirmed it; `first` when it was reported first."""
    in_cycle: bool = False
    """Whether the edge is part of a cycle."""


@dataclass
class _FoundEdge:
    """An edge between identities while it is collected."""

    depth: int
    via: str
    jobs: dict[str, None]
    first: int
    last: int


TablePair = tuple[bytes, bytes]


def upstream_tables(
    connection: Connection,
    of: str | Dataset,
    *,
    depth: int | None = None,
    job: str | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> LineageAnswer[TableEdge]:
    """Return what a table is made from, recursively. `job` restricts it to one job; `as_of` to what was reported until
    then."""
    return TableClosure(connection, upward=True, job=job, as_of=as_of).answer(of, depth, at_most)


def downstream_tables(
    connection: Connection,
    of: str | Dataset,
    *,
    depth: int | None = None,
    job: str | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> LineageAnswer[TableEdge]:
    """Return what is made from a table, recursively."""
    return TableClosure(connection, upward=False, job=job, as_of=as_of).answer(of, depth, at_most)


def tables_with_neighbours(connection: Connection, datasets: Collection[bytes], *, upward: bool) -> set[bytes]:
    """Return those of these datasets that something is known of: what they are made from, or what is made of them."""
    row, identities = table_of(t.TABLE_EDGE).c, Identities(connection)
    near = row.target if upward else row.source
    members = {member: one for one in datasets for member in identities.group(one)}
    found = select_by_keys(connection, select(near).distinct(), near, members)
    return {members[bytes(key)] for (key,) in found}


class TableClosure:
    """Collects edges in one direction, for one question."""

    def __init__(
        self,
        connection: Connection,
        *,
        upward: bool,
        job: str | None = None,
        as_of: datetime | None = None,
        limits: LimitCollector | None = None,
    ) -> None:
        self._connection = connection
        self._upward = upward
        self._job = job
        self._as_of = FOREVER if as_of is None else micros_of_argument(as_of, "as_of")
        self._limits = LimitCollector() if limits is None else limits
        self._walk = TableWalk(connection, self._limits, upward=upward, as_of=self._as_of, job=job)
        self._found: dict[TablePair, _FoundEdge] = {}

    def answer(self, of: str | Dataset, depth: int | None, at_most: int) -> LineageAnswer[TableEdge]:
        dataset = find(self._connection, of).dataset if isinstance(of, str) else of
        start = self._walk.identities.one(dataset.key)
        self._spread(start, depth, at_most)
        if not self._found and self._job is not None:
            check_job(self._connection, (None, self._job))
        if not self._upward:
            add_view_limit(self._connection, self._walk.identities, start, self._limits)
        ends = {end for edge in islice(self._found, at_most) for end in edge}
        names = load_datasets(self._connection, {*ends, *self._limits.datasets, start})
        add_known_limits(self._connection, {key: names[key] for key in {*ends, start}}, (), self._limits)
        cycles = find_cycle_edges(self._found)
        rows = [self.row(edge, names, in_cycle=edge in cycles) for edge in islice(self._found, at_most)]
        return LineageAnswer(
            tuple(sorted(rows, key=lambda step: (step.depth, step.target.label, step.source.label))),
            complete_until(self._connection),
            self._limits.as_limits(names),
            of=names[start].label,
            direction="upstream" if self._upward else "downstream",
        )

    @property
    def edges(self) -> Mapping[TablePair, object]:
        """The edges that were found so far, as pairs of target and source."""
        return self._found

    def identity(self, dataset: bytes) -> bytes:
        """Return a dataset's current identity."""
        return self._walk.identities.one(dataset)

    def count_edges(self, tables: Collection[bytes], at_most: int) -> int:
        """Return how many edges a step from these tables meets, or `at_most`."""
        row = table_of(t.TABLE_EDGE).c
        here = row.target if self._upward else row.source
        keys = has_any_key(self._connection.dialect.name, here, list(self._walk.identities.members(tables))[:at_most])
        few = select(row.id).where(keys).limit(at_most).subquery()
        return self._connection.scalar(select(func.count()).select_from(few)) or 0

    def expand(self, tables: Collection[bytes], level: int) -> set[bytes]:
        """Take a step from these tables. Return what it leads to."""
        return {far for portion in self._level(tables, level) for far in portion}

    def _spread(self, start: bytes, depth: int | None, at_most: int) -> None:
        level, seen, frontier = 1, {start}, {start}
        while frontier and (depth is None or level <= depth):
            reached = set[bytes]()
            for portion in self._level(frontier, level):
                reached.update(portion)
                if len(self._found) > at_most:
                    self._limits.add(LimitReason.CUT, f"the first {at_most:,} edges", "ask for more")
                    return
            frontier = reached - seen
            seen |= frontier
            level += 1

    def _level(self, frontier: Collection[bytes], level: int) -> Iterator[list[bytes]]:
        """Keep the edges of these tables, and yield what they lead to, in portions."""
        for steps in self._walk.steps(self._walk.identities.members(frontier)):
            yield [self._keep(step, level) for step in steps]

    def _keep(self, step: TableStep, level: int) -> bytes:
        near, far, row = step
        via = VIEW if step.is_view else WRITE
        edge = (near, far) if self._upward else (far, near)
        found = self._found.setdefault(edge, _FoundEdge(level, via, {}, row.first, row.last))
        found.first, found.last = min(found.first, row.first), max(found.last, row.last)
        found.via = WRITE if WRITE in {found.via, via} else VIEW
        name = format_job_key((row.job_namespace, row.job))
        if name is not None:
            found.jobs[name] = None
        return far

    def row(self, edge: TablePair, names: Mapping[bytes, Dataset], *, in_cycle: bool = False) -> TableEdge:
        """Return an edge that was found."""
        found = self._found[edge]
        return TableEdge(
            found.depth,
            names[edge[0]],
            names[edge[1]],
            found.via,
            tuple(sorted(found.jobs)),
            moment_of(found.first),
            moment_of(found.last),
            in_cycle,
        )
