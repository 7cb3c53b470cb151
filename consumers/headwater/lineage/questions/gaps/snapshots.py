"""Snapshots whose parent nobody is known to have written: another writer did, or the commit is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, not_, or_, select

from headwater.lineage.questions.gaps.model import (
    SETTLE_MICROS,
    GapCause,
    GapFilter,
    PossibleGap,
    format_job,
    time_of,
    uuid_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of


def find_unknown_parents(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield them. The first known snapshot of a table is one, too, because the table's earlier content is unknown."""
    for each in connection.execute(_select_snapshots(filters)):
        yield PossibleGap(
            GapCause.UNKNOWN_PARENT,
            f"snapshot {each.snapshot} was made on {each.parent_snapshot}, which no event mentions",
            None,
            time_of(each.first),
            application=each.application,
            run=uuid_of(each.run),
            job=format_job(each.job_namespace, each.job),
            dataset=f"{each.namespace}/{each.name.lstrip('/')}",
            generation=each.generation,
            branch=each.branch,
            snapshot=each.parent_snapshot,
        )


def _select_snapshots(filters: GapFilter) -> Any:
    row, commit, dataset = access_of(t.WRITE), table_of(t.COMMIT), table_of(t.DATASET)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    chosen = (
        select(
            row,
            commit.c.application,
            commit.c.run,
            commit.c.job_namespace,
            commit.c.job,
            dataset.c.namespace,
            dataset.c.name,
        )
        .join_from(row, commit, its)
        .join(dataset, row.c.dataset == dataset.c.id)
        .where(row.c.parent_snapshot.is_not(None), not_(_is_known(row)), row.c.last <= filters.now - SETTLE_MICROS)
        .where(not_(_may_be_erased(row)), *filters.in_time(row.c.first, row.c.last))
    )
    if filters.datasets is not None:
        chosen = chosen.where(row.c.dataset.in_(filters.datasets))
    chosen = chosen.where(*filters.by_job(commit.c))
    return chosen.order_by(row.c.first, row.c.dataset, row.c.snapshot)


def _is_known(row: Any) -> ColumnElement[bool]:
    """Return a condition: the parent is known, even if it is hidden. Snapshot ids are unique over branches, but not
    over generations. A row without a generation matches any."""
    made, done = access_of(t.WRITE).alias(), table_of(t.MODIFICATION).alias()
    by_write = exists().where(
        made.c.dataset == row.c.dataset,
        made.c.snapshot == row.c.parent_snapshot,
        _may_be(made.c.generation, row.c.generation),
    )
    by_change = exists().where(
        done.c.dataset == row.c.dataset,
        done.c.produced == row.c.parent_snapshot,
        _may_be(done.c.generation, row.c.generation),
    )
    return by_write | by_change


def _may_be(one: Any, other: Any) -> ColumnElement[bool]:
    return or_(one == other, one.is_(None), other.is_(None))


def _may_be_erased(row: Any) -> ColumnElement[bool]:
    """Return a condition: lineage was deleted, so the parent of the oldest remaining snapshot may have been known."""
    stone, earlier = table_of(t.TOMBSTONE).alias(), access_of(t.WRITE).alias()
    of_it = or_(stone.c.dataset == row.c.dataset, stone.c.dataset.is_(None))
    is_left = exists().where(
        earlier.c.dataset == row.c.dataset, _may_be(earlier.c.generation, row.c.generation), earlier.c.last < row.c.last
    )
    return and_(exists().where(stone.c.scope.in_(DATA), of_it), not_(is_left))
