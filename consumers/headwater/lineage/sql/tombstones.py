"""Which rows are hidden, in SQL: by a deletion, or by an option of their catalog. `rows.tombstones` has the rules.

There can be a tombstone for each run. So a tombstone is looked up by what it names: run, job, the job of a step,
dataset, or nothing. Each lookup is an EXISTS with an index of its own; planners often find no index for one EXISTS with
several alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import ColumnElement, FromClause, Select, and_, case, or_, select, true, tuple_

from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA, OFF, SWITCHES, switches_over
from headwater.lineage.sql.catalogs import belongs_to, names_of_catalogs
from headwater.lineage.sql.tables import SparkAlternative, row_exists, table_of


def not_switched_off(row: Any, scopes: tuple[str, ...]) -> ColumnElement[bool]:
    """Return a condition: no option of the row's catalog switches off what deletions of these scopes hide."""
    switches = switches_over(scopes)
    option, spark = _declared_off(switches).subquery(), _off_in_spark().alias()
    is_its_name = and_(option.c.catalog_id.is_(None), option.c.catalog == row.catalog)
    is_off = and_(is_off_first(option.c), or_(is_its_name, belongs_to(row, option.c.catalog_id)))
    off = row_exists(option, where=is_off)
    is_of = and_(
        spark.c.its_name == row.catalog, or_(spark.c.its_dataset.is_(None), spark.c.its_dataset == row.dataset)
    )
    return SparkAlternative(
        or_(~any_switched_off(), ~off), ~row_exists(spark, where=and_(spark.c.name.in_(switches), is_of))
    )


def _declared_off(switches: tuple[str, ...]) -> Select[Any]:
    """Select the few declarations that switch lineage off. OFFSET 0 keeps PostgreSQL from expecting that the costly
    conditions are evaluated for every option, which would drown what an index saves."""
    option = table_of(t.CATALOG_OPTION)
    few: Select[Any] = select(*tuple(option.c)).where(option.c.name.in_(switches), option.c.value == OFF)
    return few.suffix_with("OFFSET 0", dialect="postgresql")


def any_switched_off() -> ColumnElement[bool]:
    """Return a condition that asks no other table: some driver declared an option that switches lineage off."""
    option = table_of(t.CATALOG_OPTION).alias()
    return row_exists(option, where=and_(option.c.name.in_(SWITCHES), option.c.value == OFF))


def is_off_first(option: Any) -> ColumnElement[bool]:
    """Return a condition: the option switches lineage off, and nobody declared it otherwise before."""
    earlier = table_of(t.CATALOG_OPTION).alias()
    other = earlier.c
    unnamed = and_(option.catalog_id.is_(None), other.catalog_id.is_(None), other.catalog == option.catalog)
    of_one = or_(other.catalog_id == option.catalog_id, unnamed)
    is_earlier = tuple_(other.first, other.id) < tuple_(option.first, option.id)
    return and_(option.value == OFF, ~row_exists(earlier, where=and_(other.name == option.name, of_one, is_earlier)))


@cache
def _off_in_spark() -> Select[Any]:
    """Select the options that switch lineage off, each with the names of its catalog, as for tombstones."""
    option, its = table_of(t.CATALOG_OPTION).alias(), names_of_catalogs().subquery("its")
    name = case((option.c.catalog_id.is_(None), option.c.catalog), else_=its.c.name)
    joined = option.outerjoin(its, option.c.catalog_id == its.c.catalog_id)
    columns = (option.c.name, name.label("its_name"), its.c.dataset.label("its_dataset"))
    return cast("Select[Any]", select(*columns).select_from(joined).where(is_off_first(option.c)))


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
