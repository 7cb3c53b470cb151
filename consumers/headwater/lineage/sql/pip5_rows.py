"""Queries that select Paimon PIP-5's tables from the store's rows. `lineage.api` and the PIP-5 views use them.

Each query returns one row for each key of the proposal, and none of a validation. It chooses among several rows with
NOT EXISTS (a better one), not with a window function over all rows, so that a database can use an index for any filter
or join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select, true, tuple_

from headwater.events.names import DEFAULT_JOB_NAMESPACE, VALIDATION_JOB_NAMESPACE
from headwater.lineage.mapping.commits import COMPACTED, SOURCE
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA, TABLES_OF
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import row_exists, table_of
from headwater.lineage.sql.tombstones import not_hidden

RowCondition: TypeAlias = "Callable[[Any], ColumnElement[bool]]"
"""A condition: whether a row's table belongs to the requested catalog."""


@dataclass(frozen=True)
class RowFilter:
    """Which rows a query shows."""

    within: RowCondition
    indexed: RowCondition
    """Whether the row's names are short enough for the indexes of the views."""

    def __call__(self, row: Any) -> ColumnElement[bool]:
        return and_(self.indexed(row), self.within(row))


def any_catalog(_: Any) -> ColumnElement[bool]:
    """Accept the rows of all catalogs."""
    return true()


def job_name_column(by: Any) -> ColumnElement[Any]:
    """Return a job's name, with its namespace unless that is the default."""
    whole = by.job_namespace + literal("/") + by.job
    return case((by.job_namespace == DEFAULT_JOB_NAMESPACE, by.job), else_=whole)


ALL: Final = RowFilter(any_catalog, any_catalog)


def table_rows(side: str, within: RowFilter = ALL, *, by_catalog: bool = False) -> Select[Any]:
    """Select job, database, table, create_time: for each job and table the time of the first event. With `by_catalog`
    tables of several catalogs are apart, and their catalog's name is the last column."""

    def is_shown(row: Any) -> ColumnElement[bool]:
        named = and_(row.side == side, row.table_name.is_not(None), _is_of_production(row))
        return and_(named, within(row), not_hidden(row, row, TABLES_OF[side]))

    table = table_of(t.TABLE_LINEAGE)
    earlier = table.alias("earlier")
    row, other = table.c, earlier.c
    is_earlier = tuple_(other.first, other.id) < tuple_(row.first, row.id)
    same = and_(_same_job(other, row), _same_table(other, row, by_catalog=by_catalog))
    rows = select(
        job_name_column(row).label("job"),
        row.database_name.label("database"),
        row.table_name.label("table"),
        row.first.label("create_time"),
        *_catalog_of(row, by_catalog=by_catalog),
    ).where(is_shown(row), ~row_exists(earlier, where=and_(same, is_shown(other), is_earlier)))
    return cast("Select[Any]", rows)


def data_rows(side: str, within: RowFilter = ALL, *, by_catalog: bool = False) -> Select[Any]:
    """Select job, barrier_id, database, table, snapshot_id, create_time. Of several snapshots of one key it shows new
    data before compactions, and later ones before earlier ones. `by_catalog` is that of `table_rows`."""
    table, commits = access_of(t.READ if side == SOURCE else t.WRITE), table_of(t.COMMIT)

    def is_shown(row: Any, commit: Any) -> ColumnElement[bool]:
        known = and_(row.table_name.is_not(None), row.snapshot.is_not(None), row.main == 1, _is_of_production(commit))
        return and_(known, within(row), not_hidden(row, commit, DATA))

    def rank(row: Any) -> Any:
        data = case((row.commit_kind == COMPACTED, 0), else_=1) if side != SOURCE else row.main
        return tuple_(data, row.last, row.snapshot, row.id)

    other, other_commit = table.alias("better"), commits.alias("told")
    row, commit = table.c, commits.c
    same = and_(
        _same_job(other_commit.c, commit),
        other_commit.c.barrier == commit.barrier,
        _same_table(other.c, row, by_catalog=by_catalog),
    )
    better = and_(_are_one(other.c, other_commit.c), same, is_shown(other.c, other_commit.c), rank(other.c) > rank(row))
    rows = (
        select(
            job_name_column(commit).label("job"),
            commit.barrier.label("barrier_id"),
            row.database_name.label("database"),
            row.table_name.label("table"),
            row.snapshot.label("snapshot_id"),
            row.first.label("create_time"),
            *_catalog_of(row, by_catalog=by_catalog),
        )
        .join_from(table, commits, _are_one(row, commit))
        .where(is_shown(row, commit), ~row_exists(other, other_commit, where=better))
    )
    return cast("Select[Any]", rows)


def option_rows(is_asked: RowCondition) -> Select[Any]:
    """Select key, value: the value that was declared first. `is_asked` says whether a declaration is for it."""
    table = table_of(t.CATALOG_OPTION)
    earlier = table.alias("earlier")
    row, other = table.c, earlier.c
    is_earlier = tuple_(other.first, other.id) < tuple_(row.first, row.id)
    one = and_(other.name == row.name, is_asked(other), is_earlier)
    rows = select(row.name.label("key"), row.value.label("value")).where(is_asked(row), ~row_exists(earlier, where=one))
    return cast("Select[Any]", rows)


def startup_rows(within: RowFilter = ALL) -> Select[Any]:
    """Select job, database, table, snapshot_id: where the newest run of a job began to read a table."""
    table, runs = table_of(t.RUN_START), table_of(t.RUN)
    row, run = table.c, runs.c

    def is_shown(start: Any) -> ColumnElement[bool]:
        main = or_(start.branch.is_(None), start.branch == "main")
        known = and_(start.table_name.is_not(None), start.snapshot.is_not(None), main)
        return and_(known, within(start), not_hidden(start, run, DATA))

    newer, better = runs.alias("newer"), table.alias("better")
    other = better.c
    is_newer = and_(
        _same_job(newer.c, run),
        within.indexed(newer.c),
        tuple_(newer.c.started_at, newer.c.id) > tuple_(run.started_at, run.id),
    )
    is_later = tuple_(other.last, other.snapshot, other.id) > tuple_(row.last, row.snapshot, row.id)
    is_better = and_(other.run == row.run, _same_table(other, row), is_shown(other), is_later)
    rows = (
        select(
            job_name_column(run).label("job"),
            row.database_name.label("database"),
            row.table_name.label("table"),
            row.snapshot.label("snapshot_id"),
        )
        .join_from(table, runs, row.run == run.run)
        .where(_is_of_production(run), within.indexed(run), is_shown(row))
        .where(~row_exists(newer, where=is_newer), ~row_exists(better, where=is_better))
    )
    return cast("Select[Any]", rows)


def branch_rows(within: RowFilter = ALL) -> Select[Any]:
    """Select database, table, name, tag_name, tagged_snapshot_id, create_time of the branches that are there, as
    Paimon's design of branches has them in a table's `$branches`."""
    branch, alias, generation = table_of(t.BRANCH), table_of(t.ALIAS), table_of(t.GENERATION)
    row, name, of = branch.c, alias.c, generation.c
    own = and_(of.dataset == row.dataset, of.generation == row.generation)
    is_there = and_(row.deleted < row.last, name.deleted < name.last)
    rows = (
        select(
            name.database_name.label("database"),
            name.table_name.label("table"),
            row.branch.label("name"),
            row.from_tag.label("tag_name"),
            row.from_snapshot.label("tagged_snapshot_id"),
            row.last.label("create_time"),
        )
        .join_from(branch, alias, name.dataset == row.dataset)
        .where(is_there, within(name), ~row_exists(generation, where=and_(own, of.deleted >= of.last)))
    )
    return cast("Select[Any]", rows)


def _is_of_production(by: Any) -> ColumnElement[bool]:
    """Return a condition: the row is of a job, and of none that ran again only to be compared with what it had made."""
    return and_(by.job.is_not(None), by.job_namespace != VALIDATION_JOB_NAMESPACE)


def _same_job(one: Any, other: Any) -> ColumnElement[bool]:
    return and_(one.job == other.job, one.job_namespace == other.job_namespace)


def _same_table(one: Any, other: Any, *, by_catalog: bool = False) -> ColumnElement[bool]:
    same = and_(one.database_name == other.database_name, one.table_name == other.table_name)
    return and_(same, func.coalesce(one.catalog, "") == func.coalesce(other.catalog, "")) if by_catalog else same


def _catalog_of(row: Any, *, by_catalog: bool) -> tuple[ColumnElement[Any], ...]:
    return (func.nullif(row.catalog, "").label("catalog"),) if by_catalog else ()


def _are_one(row: Any, commit: Any) -> ColumnElement[bool]:
    return and_(row.commit_id == commit.id, row.barrier == commit.barrier)
