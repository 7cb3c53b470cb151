"""What was deleted as a set, in SQL: the same as `law.visible`.

A policy may leave a tombstone for each run, so there may be as many as there are runs. What can cover a row is looked
for by what it names: its run, its job, the job whose step it is, its dataset, or none of these. Each is a condition of
its own, with one index to look into; alternatives within one leave it to the database's planner whether it finds them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, or_

from headwater.lineage.law.visible import DATA
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.catalogs import is_of
from headwater.lineage.sql.existing import there_is
from headwater.lineage.sql.tables import table_of


def not_deleted(row: Any, by: Any, scopes: ColumnElement[bool] | tuple[str, ...]) -> ColumnElement[bool]:
    """Of a row, and of the one that says who told it: itself, or its commit."""
    run, job, step, dataset, wide = (table_of(t.TOMBSTONE).alias() for _ in range(5))
    is_its_dataset = [or_(stone.c.dataset.is_(None), stone.c.dataset == row.dataset) for stone in (run, job, step)]
    found = [
        (run, and_(run.c.run == by.run, _is_job(run.c, by), is_its_dataset[0])),
        (job, and_(job.c.run.is_(None), _is_own(job.c, by), is_its_dataset[1])),
        (step, and_(step.c.run.is_(None), _is_step(step.c, by), is_its_dataset[2])),
        (dataset, and_(dataset.c.run.is_(None), dataset.c.job.is_(None), dataset.c.dataset == row.dataset)),
        (wide, and_(wide.c.run.is_(None), wide.c.job.is_(None), wide.c.dataset.is_(None))),
    ]
    return and_(*(~there_is(stone, where=and_(which, *_covers(stone.c, row, scopes))) for stone, which in found))


def not_deleted_whole(commit: Any) -> ColumnElement[bool]:
    """Of a barrier itself, whatever tables it had to do with."""
    run, job, step, wide = (table_of(t.TOMBSTONE).alias() for _ in range(4))
    found = [
        (run, and_(run.c.run == commit.run, _is_job(run.c, commit))),
        (job, and_(job.c.run.is_(None), _is_own(job.c, commit))),
        (step, and_(step.c.run.is_(None), _is_step(step.c, commit))),
        (wide, and_(wide.c.run.is_(None), wide.c.job.is_(None))),
    ]
    return and_(*(~there_is(stone, where=and_(which, *_covers_all(stone.c, commit))) for stone, which in found))


def _is_own(stone: Any, by: Any) -> ColumnElement[bool]:
    return and_(stone.job == by.job, stone.job_namespace == by.job_namespace)


def _is_step(stone: Any, by: Any) -> ColumnElement[bool]:
    return and_(stone.steps == 1, stone.job == by.parent_job, stone.job_namespace == by.parent_namespace)


def _is_job(stone: Any, by: Any) -> ColumnElement[bool]:
    return or_(stone.job.is_(None), _is_own(stone, by), _is_step(stone, by))


def _covers(stone: Any, row: Any, scopes: ColumnElement[bool] | tuple[str, ...]) -> list[ColumnElement[bool]]:
    """What else a tombstone asks for."""
    conditions: list[ColumnElement[bool]] = [
        stone.deleted >= row.last,
        stone.scope.in_(scopes) if isinstance(scopes, tuple) else scopes,
        or_(stone.catalog_id.is_(None), is_of(row, stone.catalog_id)),
    ]
    if "life" not in row:
        return [*conditions, stone.life.is_(None), stone.up_to_snapshot.is_(None)]
    conditions.append(or_(stone.life.is_(None), stone.life == row.life))
    return [*conditions, or_(stone.up_to_snapshot.is_(None), row.snapshot <= stone.up_to_snapshot)]


def _covers_all(stone: Any, commit: Any) -> list[ColumnElement[bool]]:
    nothing_else = [stone[name].is_(None) for name in ("dataset", "life", "up_to_snapshot", "catalog_id")]
    return [stone.deleted >= commit.last, stone.scope.in_(DATA), *nothing_else]
