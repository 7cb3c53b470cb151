"""Breaks in what follows one another: streams that continue elsewhere than they stopped, and snapshots whose parent
nobody is known to have written.

In the first case a barrier in between is lost. In the second another writer wrote the parent, or its commit is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import CTE, ColumnElement, Connection, and_, exists, func, not_, or_, select

from headwater.lineage.questions.gaps.model import SETTLE_MICROS, GapCause, GapFilter, PossibleGap, gap_of_access
from headwater.lineage.questions.traversal.hidden_rows import ids_of_hidden_rows
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.key_lookup import PairLookup
from headwater.lineage.sql.tables import row_exists, table_of


def find_unknown_parents(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield them. The first known snapshot of a table is one, too, because the table's earlier content is unknown."""
    unknown: list[Any] = [*connection.execute(_select_unknown(filters, connection.dialect.name))]
    row = access_of(t.WRITE).c
    lookup = PairLookup(_select_snapshots(filters), row.place_id, row.parent_snapshot)
    found = sorted(lookup.among(connection, {(bytes(place), parent) for place, parent in unknown}), key=_order)
    hidden = ids_of_hidden_rows(connection, {(bytes(read.commit_id), read.barrier) for read in found})
    for read in found:
        if bytes(read.id) in hidden:
            continue
        detail = f"snapshot {read.snapshot} was made on {read.parent_snapshot}, which no event mentions"
        yield gap_of_access(GapCause.UNKNOWN_PARENT, detail, (None, read.first), read, read.parent_snapshot)


def _select_unknown(filters: GapFilter, dialect: str) -> Any:
    """Select the places and parents of writes whose parent isn't known, even as a hidden one. Snapshot ids are unique
    over branches, but not over generations. A row without a generation matches any."""
    row, other = _without_parent(filters, dialect).c, table_of(t.WRITE).alias()
    place, beside = table_of(t.PLACE).alias(), table_of(t.PLACE).alias()
    change = table_of(t.MODIFICATION).alias()
    its = (place.c.id == row.place_id, place.c.dataset.is_not(None))
    is_beside = (beside.c.dataset == place.c.dataset, _may_be(beside.c.generation, place.c.generation))
    by_other = and_(*its, *is_beside, other.c.place_id == beside.c.id, other.c.snapshot == row.parent_snapshot)
    is_change = (change.c.dataset == place.c.dataset, _may_be(change.c.generation, place.c.generation))
    by_change = and_(*its, *is_change, change.c.produced == row.parent_snapshot)
    return select(row.place_id, row.parent_snapshot).where(
        ~row_exists(place, beside, other, where=by_other), ~row_exists(place, change, where=by_change)
    )


def _without_parent(filters: GapFilter, dialect: str) -> CTE:
    """Select the writes whose parent isn't of the same place, as nearly all are, from two indexes that have both in one
    order, place by place.

    One look-up for each write takes three times as long. PostgreSQL would choose that, so it gets a join that it can't
    do by look-ups. It would also test first what takes longer, if this weren't a statement by itself. MySQL and MariaDB
    look up. So do all if a range of times is asked for, because it has few of the writes.
    """
    row = table_of(t.WRITE).alias()
    parents = _of_places(select(row.c.place_id, row.c.parent_snapshot), row, row.c.parent_snapshot, filters)
    snapshots = _of_places(select(row.c.place_id, row.c.snapshot), row, row.c.snapshot, filters)
    if filters.since is not None or filters.until is not None:
        in_time = filters.in_time(row.c.first, row.c.first)
        place = table_of(t.PLACE).alias()  # times are indexed by place
        chosen: Any = parents.join(place, place.c.id == row.c.place_id).where(*in_time, ~_is_in_place(row))
    elif dialect == "sqlite":
        chosen = parents.except_(snapshots).order_by("place_id", "parent_snapshot")
    elif dialect == "postgresql":
        one, same = parents.subquery("one"), snapshots.subquery("same")
        its = and_(one.c.place_id == same.c.place_id, one.c.parent_snapshot == same.c.snapshot)
        chosen = select(one).select_from(one.join(same, its, full=True)).where(same.c.place_id.is_(None))
    else:
        chosen = parents.where(~_is_in_place(row))
    found: CTE = chosen.cte("without_parent").prefix_with("MATERIALIZED", dialect="postgresql")
    return found


def _is_in_place(row: Any) -> ColumnElement[bool]:
    """Return a condition: the parent is a snapshot of the same place."""
    same = table_of(t.WRITE).alias()
    return exists().where(same.c.place_id == row.c.place_id, same.c.snapshot == row.c.parent_snapshot)


def _of_places(chosen: Any, row: Any, number: ColumnElement[Any], filters: GapFilter) -> Any:
    """Restrict writes to the places of the filters, and to those that have a number."""
    place = table_of(t.PLACE).c
    chosen = chosen.where(number.is_not(None))
    if filters.datasets is not None:
        chosen = chosen.where(row.c.place_id.in_(select(place.id).where(place.dataset.in_(filters.datasets))))
    if filters.job is not None:
        chosen = chosen.where(row.c.place_id.in_(select(place.id).where(place.dataset.in_(filters.of_job("dataset")))))
    return chosen


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
        .where(row.c.last <= filters.now - SETTLE_MICROS, not_(_may_be_erased(row)))
    )
    return chosen.where(*filters.in_time(row.c.first, row.c.first), *filters.by_job(commit.c))


def _order(row: Any) -> tuple[int, bytes, int]:
    return (row.first, bytes(row.dataset), row.snapshot or 0)


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


def find_stream_breaks(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield them. A break beside a read that isn't shown isn't, either."""
    found = connection.execute(_select_ranges(filters)).all()
    commits = {(bytes(read.commit_id), read.barrier) for read in found}
    commits |= {(bytes(read.was_commit), read.was_barrier) for read in found}
    hidden = ids_of_hidden_rows(connection, commits)
    for read in found:
        if not hidden.isdisjoint({bytes(read.id), bytes(read.was_id)}):
            continue
        stopped, went_on = read.was or read.was_version, read.since_snapshot or read.since_version
        detail = f"it stopped reading at {stopped} and went on behind {went_on}"
        yield gap_of_access(GapCause.STREAM, detail, (read.was_at, read.committed_at), read, read.since_snapshot)


def _select_ranges(filters: GapFilter) -> Any:
    """Select each range beside the previous one of the same source and incarnation."""
    row, commit, dataset = access_of(t.READ), table_of(t.COMMIT), table_of(t.DATASET)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    job = (commit.c.job_namespace, commit.c.job, commit.c.incarnation)
    source = (*job, row.c.dataset, row.c.generation, row.c.branch)
    chosen = (
        select(
            *source,
            commit.c.application,
            commit.c.run,
            commit.c.committed_at,
            row.c.since_snapshot,
            row.c.since_version,
            row.c.last,
            row.c.id,
            row.c.commit_id,
            commit.c.barrier,
            _before(row.c.id, source).label("was_id"),
            _before(row.c.commit_id, source).label("was_commit"),
            _before(row.c.snapshot, source).label("was"),
            _before(row.c.version, source).label("was_version"),
            _before(commit.c.barrier, source).label("was_barrier"),
            _before(commit.c.committed_at, source).label("was_at"),
        )
        .join_from(row, commit, its)
        .where(commit.c.batch_id.is_not(None), row.c.mode == "CHANGES", row.c.dataset.is_not(None))
    )
    if filters.datasets is not None:
        chosen = chosen.where(row.c.dataset.in_(filters.datasets))
    chosen = chosen.where(*filters.by_job(commit.c))
    if filters.since is not None:  # with room for the range before it
        chosen = chosen.where(row.c.last >= filters.since - SETTLE_MICROS)
    read = chosen.subquery()
    differs = or_(read.c.since_snapshot != read.c.was, read.c.since_version != read.c.was_version)
    differs = and_(differs, read.c.was_barrier < read.c.barrier, not_(_was_reached(read)))
    found = select(read, dataset.c.namespace, dataset.c.name).join_from(read, dataset, read.c.dataset == dataset.c.id)
    settled = read.c.last <= filters.now - SETTLE_MICROS
    return found.where(differs, settled, *filters.in_time(read.c.was_at, read.c.committed_at)).order_by(
        read.c.committed_at, read.c.dataset
    )


def _was_reached(read: Any) -> Any:
    """Return a condition: some range ended there. A query that reads a table twice has several."""
    row, commit = access_of(t.READ).alias(), table_of(t.COMMIT).alias()
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    ended = or_(row.c.snapshot == read.c.since_snapshot, row.c.version == read.c.since_version)
    mine = and_(commit.c.incarnation == read.c.incarnation, commit.c.barrier < read.c.barrier)
    return exists(select(row.c.id).join_from(row, commit, its).where(mine, row.c.dataset == read.c.dataset, ended))


def _before(column: Any, source: tuple[Any, ...]) -> Any:
    return func.lag(column).over(partition_by=source, order_by=_barrier())


def _barrier() -> Any:
    return table_of(t.COMMIT).c.barrier
