"""Edges between tables, loaded for many tables at once, without those whose lineage was deleted.

One level of a walk between tables. All questions about tables take their steps here, so all know the same identities
and none takes for an origin what was merely read beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    Connection,
    LargeBinary,
    and_,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.types import NullType

from headwater.events.administration import LineageScope
from headwater.lineage.mapping.commits import EXACT, SINK, SOURCE
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.datasets import load_datasets
from headwater.lineage.questions.gaps.model import format_job
from headwater.lineage.questions.name_checks import is_no_validation
from headwater.lineage.questions.traversal.identities import FOREVER, Identities, IdentityMembers
from headwater.lineage.questions.traversal.limits import LimitCollector, growing_portions
from headwater.lineage.questions.traversal.tombstone_lookup import TombstoneLookup
from headwater.lineage.questions.traversal.views import ViewDefinition, add_source_limits, defined_on, views_on
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import TABLES_OF, DeletionSubject
from headwater.lineage.sql.key_lookup import PairLookup, array_text, select_by_keys
from headwater.lineage.sql.tables import table_of

_OF_RUNS: Final = (LineageScope.ALL.value, LineageScope.TABLES.value, *TABLES_OF[SOURCE], *TABLES_OF[SINK])


def load_neighbors(
    connection: Connection, datasets: Collection[bytes], *, is_upward: bool, most: int | None = None
) -> list[tuple[bytes, bytes]]:
    """Return pairs of each of these tables and one that it was ever made from; downward one that was made from it.

    These are never too few: every commit reports these edges too, and they are never erased. Deletions don't count.
    With `most`, one more says that there are more, and a pair can come again.
    """
    if most is None:
        found = _neighbors(is_upward=is_upward).by_key(connection, datasets)
    else:
        here, there = _ends(is_upward=is_upward)
        some = select(here, there).where(there.is_not(None)).limit(most + 1)
        found = select_by_keys(connection, some, here, datasets)
    return _pairs(found)


def _pairs(rows: Iterable[Any]) -> list[tuple[bytes, bytes]]:
    return [(bytes(one), bytes(other)) for one, other in rows]


@cache
def _neighbors(*, is_upward: bool) -> PairLookup:
    here, there = _ends(is_upward=is_upward)
    return PairLookup(select(here, there).where(there.is_not(None)).distinct(), here, here)


def _ends(*, is_upward: bool) -> tuple[Any, Any]:
    row = table_of(t.TABLE_EDGE).c
    return (row.target, row.source) if is_upward else (row.source, row.target)


def can_load_behind(connection: Connection) -> bool:
    """Return whether `load_behind` can be used. Other databases answer single statements sooner, or would find
    everything before they apply the limit."""
    return connection.dialect.name == "postgresql"


def load_behind(
    connection: Connection, datasets: Collection[bytes], *, is_upward: bool, most: int
) -> list[tuple[bytes, bytes]]:
    """Return the pairs of `load_neighbors` for these tables and all that are behind them, in one statement. One more
    than `most` says that there are more."""
    given = {"keys": array_text(sorted(datasets)), "number": most + 1}
    return _pairs(connection.execute(_select_behind(is_upward=is_upward), given).all())


@cache
def _select_behind(*, is_upward: bool) -> Any:
    """Select edges of tables that are reached. Each table is looked up by itself, so that a limit ends the search: a
    join could begin with reading all edges."""
    here, there = _ends(is_upward=is_upward)
    starts = func.unnest(cast(bindparam("keys", type_=NullType()), ARRAY(LargeBinary()))).column_valued("start")
    reached = select(starts.label("node")).cte("reached", recursive=True)

    def neighbors_of(node: Any, name: str) -> Any:
        chosen = select(there.label("there")).where(here == node.c.node, there.is_not(None))
        return chosen.correlate(node).offset(literal_column("0")).lateral(name)

    onward = neighbors_of(reached, "onward")
    reached = reached.union(select(onward.c.there).select_from(reached.join(onward, true())))
    near = neighbors_of(reached, "near")
    return select(reached.c.node, near.c.there).select_from(reached.join(near, true())).limit(bindparam("number"))


def visible_edges(connection: Connection, edges: Sequence[Any], limits: LimitCollector) -> list[Any]:
    """Return the edges whose ends are both visible, and which a run that wasn't deleted confirms."""
    if not edges:
        return []
    hiding = TombstoneLookup(connection)
    if hiding.hides_nothing:
        return list(edges)
    sides = ((SOURCE, "source"), (SINK, "target"))
    catalogs = _catalogs_of(connection, edges) if hiding.has_catalogs else {}
    hidden = [hiding.are_hidden([_subject(edge, side, end, catalogs) for edge in edges]) for side, end in sides]
    reasons = [next(filter(None, both), None) for both in zip(*hidden, strict=True)]
    shown = [edge for edge, why in zip(edges, reasons, strict=True) if why is None]
    omitted = reasons.count(LimitReason.OMITTED)
    held = _confirmed_edges(connection, shown) if hiding.has_runs else None
    if held is not None:
        shown = [edge for edge in shown if edge.source is None or edge.target is None or _key(edge) in held]
    limits.add_hidden_edges({LimitReason.DELETED: len(edges) - len(shown) - omitted, LimitReason.OMITTED: omitted})
    return shown


def _subject(edge: Any, side: str, end: str, catalogs: Mapping[bytes, str]) -> DeletionSubject:
    job, parent = (edge.job_namespace, edge.job), (edge.parent_namespace, edge.parent_job)
    dataset = None if getattr(edge, end) is None else bytes(getattr(edge, end))
    catalog = None if dataset is None else catalogs.get(dataset)
    return DeletionSubject(TABLES_OF[side], edge.last, job, parent, None, dataset, catalog)


def _catalogs_of(connection: Connection, edges: Sequence[Any]) -> dict[bytes, str]:
    """Return each dataset's catalog by its current name; edges between datasets have no names of their own."""
    ends = {bytes(end) for edge in edges for end in (edge.target, edge.source) if end is not None}
    return {
        key: dataset.known_as[0].partition(".")[0]
        for key, dataset in load_datasets(connection, ends).items()
        if dataset.known_as
    }


def _key(edge: Any) -> tuple[Any, ...]:
    return (bytes(edge.target), bytes(edge.source), edge.job_namespace, edge.job)


def _confirmed_edges(connection: Connection, edges: Sequence[Any]) -> set[tuple[Any, ...]]:
    """Return the edges that a visible run confirms: it read the one table and wrote the other in that job."""
    read, write = table_of(t.TABLE_LINEAGE).alias(), table_of(t.TABLE_LINEAGE).alias()
    edge = table_of(t.TABLE_EDGE)
    same = and_(
        read.c.side == SOURCE,
        read.c.dataset == edge.c.source,
        _equal(read.c.job, edge.c.job),
        _equal(read.c.job_namespace, edge.c.job_namespace),
        write.c.side == SINK,
        write.c.dataset == edge.c.target,
        _equal(write.c.job, edge.c.job),
        _equal(write.c.job_namespace, edge.c.job_namespace),
        _equal(read.c.run, write.c.run),
    )
    alive = and_(same, ~_is_deleted(read), ~_is_deleted(write))
    query = select(edge.c.target, edge.c.source, edge.c.job_namespace, edge.c.job).where(
        exists().select_from(read.join(write, true())).where(alive)
    )
    targets = {bytes(edge.target) for edge in edges if edge.target is not None}
    return {
        (bytes(e[0]), bytes(e[1]), e[2], e[3])
        for e in select_by_keys(connection, query, edge.c.target, targets)
        if e[1]
    }


def _equal(one: Any, other: Any) -> Any:
    return or_(one == other, and_(one.is_(None), other.is_(None)))


def _is_deleted(row: Any) -> Any:
    stone = table_of(t.TOMBSTONE).alias()
    return exists().where(
        stone.c.run == row.c.run,
        stone.c.scope.in_(_OF_RUNS),
        stone.c.deleted >= row.c.last,
        or_(stone.c.dataset.is_(None), stone.c.dataset == row.c.dataset),
    )


def edges_between(
    connection: Connection,
    datasets: Collection[bytes],
    limits: LimitCollector,
    *,
    upward: bool,
    as_of: int,
    job: str | None = None,
) -> Iterator[list[Any]]:
    """Yield edges of these tables in portions: those that were reported until `as_of`, by a job and its steps if one is
    given, without deleted ones. Downward those of validations are left out."""
    row = table_of(t.TABLE_EDGE).c
    query = select(*(column for column in row if column.name != "id"))
    query = query.where(row.first <= as_of)
    if not upward:  # nothing but its own results is made by a validation, and they are asked for by name
        query = query.where(is_no_validation(row))
    if job is not None:
        query = query.where((row.job == job) | (row.parent_job == job))
    here = row.target if upward else row.source
    for portion in growing_portions(select_by_keys(connection, query, here, datasets, is_lazy=True)):
        yield visible_edges(connection, portion, limits)


class TableStep(NamedTuple):
    """A job made one table from another, or one is a view on the other. Both stand here under their current
    identities."""

    near: bytes
    """The end at which the walk was."""
    far: bytes
    edge: Any

    @property
    def is_view(self) -> bool:
        return isinstance(self.edge, ViewDefinition)


class TableWalk:
    """Takes steps for one question."""

    def __init__(
        self,
        connection: Connection,
        limits: LimitCollector,
        *,
        upward: bool,
        as_of: int = FOREVER,
        job: str | None = None,
    ) -> None:
        self.identities = Identities(connection)
        self._connection = connection
        self._limits = limits
        self._upward = upward
        self._as_of = as_of
        self._job = job

    def steps(self, members: IdentityMembers) -> Iterator[list[TableStep]]:
        """Yield all steps from these tables, in portions. What can't be followed becomes a limit."""
        for edges in edges_between(
            self._connection, members, self._limits, upward=self._upward, as_of=self._as_of, job=self._job
        ):
            yield list(self._follow(edges, members))
        if self._job is None:
            yield list(self._view_steps(members))

    def _view_steps(self, members: IdentityMembers) -> Iterator[TableStep]:
        one = self.identities.one
        if self._upward:
            for view in defined_on(self._connection, members, self._as_of):
                add_source_limits(view, self._limits)
                yield from (TableStep(view.view, one(source), view) for source in view.sources if source is not None)
            return
        for view in views_on(self._connection, self.identities, members, self._as_of):
            for source in filter(None, view.sources):
                yield from (TableStep(near, view.view, view) for near, _ in members.get(source, ()))

    def _follow(self, edges: Sequence[Any], members: IdentityMembers) -> Iterator[TableStep]:
        met: list[tuple[bytes, bytes, Any]] = []
        for edge in edges:
            here, there = (edge.target, edge.source) if self._upward else (edge.source, edge.target)
            for one, era in members[bytes(here)]:
                if edge.first <= era.until and edge.last > era.since and self._leads_on(one, there, edge):
                    met.append((one, bytes(there), edge))
        self.identities.load({there for _, there, _ in met})
        for one, there, edge in met:
            yield TableStep(one, self.identities.one(there, None, edge.last), edge)

    def _leads_on(self, one: bytes, there: Any, edge: Any) -> bool:
        """Return whether an edge certainly leads to a dataset. Anything else is a limit."""
        why, what = LimitReason.OPAQUE, f"something was read that Spark doesn't show: {edge.opaque}"
        if edge.certainty != EXACT:
            job = format_job(edge.job_namespace, edge.job)
            why = LimitReason.UNKNOWN_SOURCES
            what = f"a commit of {job} read other tables beside it, and what it is made from isn't known"
        elif there is not None:
            return True
        elif edge.opaque is None:
            name = edge.source_name if self._upward else edge.target_name
            what = f"{name} is known by its name only, and isn't followed"
        self._limits.add_snapshot(why, one, None, what)
        return False
