"""Which rows are hidden, in SQL: by a deletion, or by an option of their catalog. The rules are those of
`rows.tombstones` and `rows.switches`.

There can be a tombstone for each run. So a tombstone is looked up by what it names: run, job, the job of a step,
dataset, or nothing. Each lookup is an EXISTS with an index of its own; planners often find no index for one EXISTS with
several alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, or_, select, true

from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.catalogs import belongs_to, names_of_catalogs
from headwater.lineage.sql.switches import any_switched_off, not_switched_off
from headwater.lineage.sql.tables import SparkAlternative, row_exists, table_of


def not_hidden(row: Any, by: Any, scopes: tuple[str, ...]) -> ColumnElement[bool]:
    """Return a condition: neither a deletion nor an option of its catalog hides the row. `by` is the row that names the
    reporting job: the row itself, or its commit."""
    return and_(not_deleted(row, by, scopes), not_switched_off(row, scopes))


def hides_anything() -> ColumnElement[bool]:
    """Return a condition that asks no other table: there is a deletion, or an option that switches lineage off."""
    return or_(row_exists(table_of(t.TOMBSTONE), where=true()), any_switched_off())


def not_deleted(row: Any, by: Any, scopes: tuple[str, ...]) -> ColumnElement[bool]:
    """Return a condition: no tombstone hides the row."""
    nested = _has_no_stone(row, by, scopes, [table_of(t.TOMBSTONE).alias() for _ in range(5)])
    return SparkAlternative(nested, _has_no_stone(row, by, scopes, [_stones_in_spark().alias() for _ in range(5)]))


def _has_no_stone(row: Any, by: Any, scopes: tuple[str, ...], stones: Sequence[FromClause]) -> ColumnElement[bool]:
    run, job, step, dataset, wide = stones
    is_its_dataset = [or_(stone.c.dataset.is_(None), stone.c.dataset == row.dataset) for stone in (run, job, step)]
    found = [
        (run, and_(run.c.run == by.run, _is_job(run.c, by), is_its_dataset[0])),
        (job, and_(job.c.run.is_(None), _is_own(job.c, by), is_its_dataset[1])),
        (step, and_(step.c.run.is_(None), _is_step(step.c, by), is_its_dataset[2])),
        (dataset, and_(dataset.c.run.is_(None), dataset.c.job.is_(None), dataset.c.dataset == row.dataset)),
        (wide, and_(wide.c.run.is_(None), wide.c.job.is_(None), wide.c.dataset.is_(None))),
    ]
    return and_(*(~row_exists(stone, where=and_(which, *_covers(stone.c, row, scopes))) for stone, which in found))


def commit_not_hidden(commit: Any) -> ColumnElement[bool]:
    """Return a condition: no tombstone hides the commit itself, whatever tables it used."""
    run, job, step, wide = (table_of(t.TOMBSTONE).alias() for _ in range(4))
    found = [
        (run, and_(run.c.run == commit.run, _is_job(run.c, commit))),
        (job, and_(job.c.run.is_(None), _is_own(job.c, commit))),
        (step, and_(step.c.run.is_(None), _is_step(step.c, commit))),
        (wide, and_(wide.c.run.is_(None), wide.c.job.is_(None))),
    ]
    return and_(*(~row_exists(stone, where=and_(which, *_covers_all(stone.c, commit))) for stone, which in found))


def _is_own(stone: Any, by: Any) -> ColumnElement[bool]:
    return and_(stone.job == by.job, stone.job_namespace == by.job_namespace)


def _is_step(stone: Any, by: Any) -> ColumnElement[bool]:
    return and_(stone.with_steps == 1, stone.job == by.parent_job, stone.job_namespace == by.parent_namespace)


def _is_job(stone: Any, by: Any) -> ColumnElement[bool]:
    return or_(stone.job.is_(None), _is_own(stone, by), _is_step(stone, by))


def _covers(stone: Any, row: Any, scopes: tuple[str, ...]) -> list[ColumnElement[bool]]:
    """Return the other conditions of a tombstone: time, scope, catalog, generation and snapshot."""
    conditions: list[ColumnElement[bool]] = [
        stone.deleted >= row.last,
        stone.scope.in_(scopes),
        or_(stone.catalog_id.is_(None), _is_in_catalog(row, stone)),
    ]
    if "generation" not in row:
        return [*conditions, stone.generation.is_(None), stone.up_to_snapshot.is_(None)]
    conditions.append(or_(stone.generation.is_(None), stone.generation == row.generation))
    return [*conditions, or_(stone.up_to_snapshot.is_(None), row.snapshot <= stone.up_to_snapshot)]


def _is_in_catalog(row: Any, stone: Any) -> ColumnElement[bool]:
    if "its_name" not in stone:
        return belongs_to(row, stone.catalog_id)
    return and_(stone.its_name == row.catalog, or_(stone.its_dataset.is_(None), stone.its_dataset == row.dataset))


@cache
def _stones_in_spark() -> Select[Any]:
    """Select tombstones, each with every name of its catalog and, where the name alone doesn't tell, every dataset that
    lies there. Spark refers to the next enclosing statement only, so `belongs_to` can't stand within an EXISTS."""
    stone, its = table_of(t.TOMBSTONE), names_of_catalogs().subquery("its")
    joined = stone.outerjoin(its, stone.c.catalog_id == its.c.catalog_id)
    names = its.c.name.label("its_name"), its.c.dataset.label("its_dataset")
    return select(*stone.c, *names).select_from(joined)


def _covers_all(stone: Any, commit: Any) -> list[ColumnElement[bool]]:
    nothing_else = [stone[name].is_(None) for name in ("dataset", "generation", "up_to_snapshot", "catalog_id")]
    return [stone.deleted >= commit.last, stone.scope.in_(DATA), *nothing_else]
