"""Streams that continue elsewhere than they stopped: a barrier in between is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, and_, exists, func, not_, or_, select

from headwater.lineage.questions.gaps.model import SETTLE_MICROS, GapCause, GapFilter, PossibleGap, gap_of_access
from headwater.lineage.questions.traversal.hidden_rows import ids_of_hidden_rows
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of


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
