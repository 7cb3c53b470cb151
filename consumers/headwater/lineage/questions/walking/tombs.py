"""Edges between tables that were deleted as a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, and_, exists, or_, select, true

from headwater.events.administration import LineageScope
from headwater.lineage.law.commits import SINK, SOURCE
from headwater.lineage.law.visible import TABLES_OF, Subject
from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.datasets import described
from headwater.lineage.questions.walking.hiding import Hiding
from headwater.lineage.questions.walking.limits import Limits
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import table_of

_OF_RUNS: Final = (LineageScope.ALL.value, LineageScope.TABLES.value, *TABLES_OF[SOURCE], *TABLES_OF[SINK])


def visible_edges(connection: Connection, edges: Sequence[Any], limits: Limits) -> list[Any]:
    """Those of which neither end was deleted, and that some run still holds."""
    if not edges:
        return []
    hiding = Hiding(connection)
    if hiding.hides_nothing:
        return list(edges)
    sides = ((SOURCE, "source"), (SINK, "target"))
    catalogs = _catalogs_of(connection, edges) if hiding.has_catalogs else {}
    hidden = [hiding.hidden([_subject(each, side, end, catalogs) for each in edges]) for side, end in sides]
    shown = [each for each, *is_hidden in zip(edges, *hidden, strict=True) if not any(is_hidden)]
    held = _held(connection, shown) if hiding.has_runs else None
    if held is not None:
        shown = [each for each in shown if each.source is None or each.target is None or _key(each) in held]
    if len(shown) < len(edges):
        limits.add(Why.DELETED, f"{len(edges) - len(shown)} edges", "lineage of their jobs or runs was deleted")
    return shown


def _subject(edge: Any, side: str, end: str, catalogs: Mapping[bytes, str]) -> Subject:
    job, parent = (edge.job_namespace, edge.job), (edge.parent_namespace, edge.parent_job)
    dataset = None if getattr(edge, end) is None else bytes(getattr(edge, end))
    catalog = None if dataset is None else catalogs.get(dataset)
    return Subject(TABLES_OF[side], edge.last, job, parent, None, dataset, catalog)


def _catalogs_of(connection: Connection, edges: Sequence[Any]) -> dict[bytes, str]:
    """By the name that a dataset has now: edges between datasets have no names of their own."""
    ends = {bytes(end) for each in edges for end in (each.target, each.source) if end is not None}
    return {
        key: each.known_as[0].partition(".")[0] for key, each in described(connection, ends).items() if each.known_as
    }


def _key(edge: Any) -> tuple[Any, ...]:
    return (bytes(edge.target), bytes(edge.source), edge.job_namespace, edge.job)


def _held(connection: Connection, edges: Sequence[Any]) -> set[tuple[Any, ...]]:
    """Those that a run holds which wasn't deleted: it read the one and wrote the other in that job."""
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
    alive = and_(same, ~_deleted(read), ~_deleted(write))
    wanted = select(edge.c.target, edge.c.source, edge.c.job_namespace, edge.c.job).where(
        exists().select_from(read.join(write, true())).where(alive)
    )
    targets = {bytes(each.target) for each in edges if each.target is not None}
    return {(bytes(e[0]), bytes(e[1]), e[2], e[3]) for e in among(connection, wanted, edge.c.target, targets) if e[1]}


def _equal(one: Any, other: Any) -> Any:
    return or_(one == other, and_(one.is_(None), other.is_(None)))


def _deleted(row: Any) -> Any:
    stone = table_of(t.TOMBSTONE).alias()
    return exists().where(
        stone.c.run == row.c.run,
        stone.c.scope.in_(_OF_RUNS),
        stone.c.deleted >= row.c.last,
        or_(stone.c.dataset.is_(None), stone.c.dataset == row.c.dataset),
    )
