"""Streams that read on from somewhere else than where they had stopped: a barrier between the two is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, and_, exists, func, not_, or_, select

from headwater.lineage.questions.gaps.missing import SETTLED, Asked, Cause, Missing, job_text, uuid_of, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of


def breaks(connection: Connection, asked: Asked) -> Iterator[Missing]:
    for each in connection.execute(_chosen(asked)):
        stopped, went_on = each.was or each.was_version, each.since_snapshot or each.since_version
        yield Missing(
            Cause.STREAM,
            f"it stopped reading at {stopped} and went on behind {went_on}",
            when(each.was_at),
            when(each.at),
            application=each.application,
            run=uuid_of(each.run),
            job=job_text(each.job_namespace, each.job),
            dataset=f"{each.namespace}/{each.name.lstrip('/')}",
            life=each.life,
            branch=each.branch,
            snapshot=each.since_snapshot,
        )


def _chosen(asked: Asked) -> Any:
    """Each range beside the one before it, of one source of one incarnation."""
    row, commit, dataset = table_of(t.READ), table_of(t.COMMIT), table_of(t.DATASET)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    job = (commit.c.job_namespace, commit.c.job, commit.c.incarnation)
    source = (*job, row.c.dataset, row.c.life, row.c.branch)
    chosen = (
        select(
            *source,
            commit.c.application,
            commit.c.run,
            commit.c.at,
            row.c.since_snapshot,
            row.c.since_version,
            row.c.last,
            commit.c.barrier,
            _before(row.c.snapshot, source).label("was"),
            _before(row.c.version, source).label("was_version"),
            _before(commit.c.barrier, source).label("was_barrier"),
            _before(commit.c.at, source).label("was_at"),
        )
        .join_from(row, commit, its)
        .where(commit.c.batch_id.is_not(None), row.c.mode == "CHANGES", row.c.dataset.is_not(None))
    )
    if asked.datasets is not None:
        chosen = chosen.where(row.c.dataset.in_(asked.datasets))
    chosen = chosen.where(*asked.by_job(commit.c))
    if asked.since is not None:  # with room for the range before it
        chosen = chosen.where(row.c.last >= asked.since - SETTLED)
    read = chosen.subquery()
    differs = or_(read.c.since_snapshot != read.c.was, read.c.since_version != read.c.was_version)
    differs = and_(differs, read.c.was_barrier < read.c.barrier, not_(_was_reached(read)))
    found = select(read, dataset.c.namespace, dataset.c.name).join_from(read, dataset, read.c.dataset == dataset.c.id)
    settled = read.c.last <= asked.now - SETTLED
    return found.where(differs, settled, *asked.in_time(read.c.was_at, read.c.at)).order_by(read.c.at, read.c.dataset)


def _was_reached(read: Any) -> Any:
    """One query may read a table twice: then one of its ranges ended there."""
    row, commit = table_of(t.READ).alias(), table_of(t.COMMIT).alias()
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    ended = or_(row.c.snapshot == read.c.since_snapshot, row.c.version == read.c.since_version)
    mine = and_(commit.c.incarnation == read.c.incarnation, commit.c.barrier < read.c.barrier)
    return exists(select(row.c.id).join_from(row, commit, its).where(mine, row.c.dataset == read.c.dataset, ended))


def _before(column: Any, source: tuple[Any, ...]) -> Any:
    return func.lag(column).over(partition_by=source, order_by=_barrier())


def _barrier() -> Any:
    return table_of(t.COMMIT).c.barrier
