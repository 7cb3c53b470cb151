"""Snapshots made on one that nobody is known to have made: another writer's, or of a commit that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, not_, or_, select

from headwater.lineage.law.visible import DATA
from headwater.lineage.questions.gaps.missing import SETTLED, Asked, Cause, Missing, job_text, uuid_of, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of


def unknown_parents(connection: Connection, asked: Asked) -> Iterator[Missing]:
    """The first snapshot that is known of a table counts too: what was in the table before it isn't known."""
    for each in connection.execute(_chosen(asked)):
        yield Missing(
            Cause.UNKNOWN_PARENT,
            f"snapshot {each.snapshot} was made on {each.parent_snapshot}, which nobody told of",
            None,
            when(each.first),
            application=each.application,
            run=uuid_of(each.run),
            job=job_text(each.job_namespace, each.job),
            dataset=f"{each.namespace}/{each.name.lstrip('/')}",
            life=each.life,
            branch=each.branch,
            snapshot=each.parent_snapshot,
        )


def _chosen(asked: Asked) -> Any:
    row, commit, dataset = table_of(t.WRITE), table_of(t.COMMIT), table_of(t.DATASET)
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
        .where(row.c.parent_snapshot.is_not(None), not_(_is_known(row)), row.c.last <= asked.now - SETTLED)
        .where(not_(_may_have_gone(row)), *asked.in_time(row.c.first, row.c.last))
    )
    if asked.datasets is not None:
        chosen = chosen.where(row.c.dataset.in_(asked.datasets))
    chosen = chosen.where(*asked.by_job(commit.c))
    return chosen.order_by(row.c.first, row.c.dataset, row.c.snapshot)


def _is_known(row: Any) -> ColumnElement[bool]:
    """Also where it was hidden since: what was deleted is known to have been. Ids go on over branches, never over
    lives; an older life may be known by another word only, so one without a life counts for any."""
    made, done = table_of(t.WRITE).alias(), table_of(t.MODIFICATION).alias()
    by_write = exists().where(
        made.c.dataset == row.c.dataset, made.c.snapshot == row.c.parent_snapshot, _may_be(made.c.life, row.c.life)
    )
    by_change = exists().where(
        done.c.dataset == row.c.dataset, done.c.produced == row.c.parent_snapshot, _may_be(done.c.life, row.c.life)
    )
    return by_write | by_change


def _may_be(one: Any, other: Any) -> ColumnElement[bool]:
    return or_(one == other, one.is_(None), other.is_(None))


def _may_have_gone(row: Any) -> ColumnElement[bool]:
    """Where lineage was deleted or has expired, and may be gone from the disk, what came before the first that is left
    was known once."""
    stone, earlier = table_of(t.TOMBSTONE).alias(), table_of(t.WRITE).alias()
    of_it = or_(stone.c.dataset == row.c.dataset, stone.c.dataset.is_(None))
    is_left = exists().where(
        earlier.c.dataset == row.c.dataset, _may_be(earlier.c.life, row.c.life), earlier.c.last < row.c.last
    )
    return and_(exists().where(stone.c.scope.in_(DATA), of_it), not_(is_left))
