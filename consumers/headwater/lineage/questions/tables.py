"""Which tables a table is made from, and which are made from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from headwater.events.clock import micros_of, moment_of
from headwater.lineage.law.commits import EXACT
from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.cycles import in_cycles
from headwater.lineage.questions.datasets import Dataset, described
from headwater.lineage.questions.lacks import lacks
from headwater.lineage.questions.names import find
from headwater.lineage.questions.snapshots import AT_MOST, job_text
from headwater.lineage.questions.versions import Lineage
from headwater.lineage.questions.walking.between import edges_between
from headwater.lineage.questions.walking.identities import FOREVER, Era, Identities
from headwater.lineage.questions.walking.limits import Limits
from headwater.lineage.questions.walking.views import defined_on, views_on

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
    """When this was told first, and last."""
    in_cycle: bool = False
    """Whoever follows it comes back to where he was."""


@dataclass
class _Found:
    """An edge between identities as it is put together."""

    depth: int
    via: str
    jobs: dict[str, None]
    first: int
    last: int


Edge = tuple[bytes, bytes]


def upstream_tables(
    connection: Connection,
    of: str | Dataset,
    *,
    depth: int | None = None,
    job: str | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> Lineage[TableEdge]:
    """What a table is made from, and what that is made from. With `job`, by that job only; with `as_of`, as far as it
    was told up to then."""
    return _Closure(connection, upward=True, job=job, as_of=as_of).answer(of, depth, at_most)


def downstream_tables(
    connection: Connection,
    of: str | Dataset,
    *,
    depth: int | None = None,
    job: str | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> Lineage[TableEdge]:
    """What is made from a table, and what is made from that."""
    return _Closure(connection, upward=False, job=job, as_of=as_of).answer(of, depth, at_most)


class _Closure:
    """For one question."""

    def __init__(self, connection: Connection, *, upward: bool, job: str | None, as_of: datetime | None) -> None:
        self._connection = connection
        self._upward = upward
        self._job = job
        self._as_of = FOREVER if as_of is None else micros_of(as_of)
        self._identities = Identities(connection)
        self._limits = Limits()
        self._found: dict[Edge, _Found] = {}
        self._opaque: set[tuple[bytes, str]] = set()

    def answer(self, of: str | Dataset, depth: int | None, at_most: int) -> Lineage[TableEdge]:
        asked = find(self._connection, of).dataset if isinstance(of, str) else of
        start = self._identities.one(asked.key)
        self._spread(start, depth, at_most)
        ends = {end for edge in self._found for end in edge}
        names = described(self._connection, {*ends, *self._limits.datasets, start})
        lacks(self._connection, {key: names[key] for key in {*ends, start}}, (), self._limits)
        cycles = in_cycles(self._found)
        rows = [self._row(edge, names, in_cycle=edge in cycles) for edge in list(self._found)[:at_most]]
        return Lineage(
            tuple(sorted(rows, key=lambda each: (each.depth, each.target.label, each.source.label))),
            complete_until(self._connection),
            self._limits.told(names),
            of=names[start].label,
            direction="upstream" if self._upward else "downstream",
        )

    def _spread(self, start: bytes, depth: int | None, at_most: int) -> None:
        level, seen, frontier = 1, {start}, {start}
        while frontier and (depth is None or level <= depth):
            reached = set(self._level(frontier, level))
            if len(self._found) > at_most:
                self._limits.add(Why.CUT, f"the first {at_most:,} edges", "ask for more")
                return
            frontier = reached - seen
            seen |= frontier
            level += 1

    def _level(self, frontier: Collection[bytes], level: int) -> Iterator[bytes]:
        self._identities.load(frontier)
        members: dict[bytes, list[tuple[bytes, Era]]] = {}
        for one in frontier:
            for member, era in self._identities.group(one).items():
                members.setdefault(member, []).append((one, era))
        others: list[tuple[bytes, bytes, Any]] = []
        edges = edges_between(
            self._connection, members, self._limits, upward=self._upward, as_of=self._as_of, job=self._job
        )
        for each in edges:
            here, there = (each.target, each.source) if self._upward else (each.source, each.target)
            for one, era in members[bytes(here)]:
                if each.first <= era.until and each.last > era.since:
                    self._meet(one, there, each, others)
        self._identities.load({there for _, there, _ in others})
        for one, there, each in others:
            yield self._keep(one, self._identities.one(there, None, each.last), WRITE, each, level)
        for view, source, told in self._views(members):
            near, far = (view, source) if self._upward else (source, view)
            for one, _ in members[near]:
                yield self._keep(one, self._identities.one(far), VIEW, told, level)

    def _meet(self, one: bytes, there: Any, each: Any, others: list[tuple[bytes, bytes, Any]]) -> None:
        """An edge to a dataset is followed; what else is known is a limit."""
        if each.certainty != EXACT:
            what = f"a commit of {job_text((each.job_namespace, each.job))} read other tables beside it"
            self._limits.add_snapshot(Why.UNKNOWN_SOURCES, one, None, f"{what}, and what it is made from isn't known")
        elif there is not None:
            others.append((one, bytes(there), each))
        elif each.opaque is not None:
            detail = f"something was read that Spark doesn't show: {each.opaque}"
            self._limits.add_snapshot(Why.OPAQUE, one, None, detail)
        else:
            name = each.source_name if self._upward else each.target_name
            self._limits.add_snapshot(Why.OPAQUE, one, None, f"{name} is known by its name only, and isn't followed")

    def _views(self, members: Mapping[bytes, Any]) -> Iterator[tuple[bytes, bytes, Any]]:
        if self._job is not None:
            return
        if self._upward:
            definitions = defined_on(self._connection, members, self._as_of)
        else:
            definitions = views_on(self._connection, members, self._as_of)
        for definition in definitions:
            for source in definition.sources:
                if source is not None and (self._upward or source in members):
                    yield definition.view, source, definition

    def _keep(self, near: bytes, far: bytes, via: str, told: Any, level: int) -> bytes:
        edge = (near, far) if self._upward else (far, near)
        found = self._found.setdefault(edge, _Found(level, via, {}, told.first, told.last))
        found.first, found.last = min(found.first, told.first), max(found.last, told.last)
        found.via = WRITE if WRITE in {found.via, via} else VIEW
        name = job_text((told.job_namespace, told.job))
        if name is not None:
            found.jobs[name] = None
        return far

    def _row(self, edge: Edge, names: Mapping[bytes, Dataset], *, in_cycle: bool) -> TableEdge:
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
