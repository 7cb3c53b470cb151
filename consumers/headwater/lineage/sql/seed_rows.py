"""Paimon PIP-5's tables, selected out of the store's rows: its interface reads them, and its views are made of them.

One row for each key that the proposal gives. Which of several rows is told is said by "there is no better one", and not
by a window over all of them: so a database comes to a few rows by an index whatever is asked for, also in a join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from sqlalchemy import ColumnElement, Select, and_, case, literal, or_, select, true, tuple_

from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.lineage.law.commits import COMPACTED, SOURCE
from headwater.lineage.law.visible import DATA, TABLES_OF
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.existing import there_is
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.visible import not_deleted

Within: TypeAlias = "Callable[[Any], ColumnElement[bool]]"
"""Whether a row with a table's name belongs to the catalog that is asked."""


@dataclass(frozen=True)
class Asked:
    """Whose rows are meant."""

    within: Within
    indexed: Within
    """Whether the names of a row are short enough for the indexes of the views."""

    def __call__(self, row: Any) -> ColumnElement[bool]:
        return and_(self.indexed(row), self.within(row))


def everywhere(_: Any) -> ColumnElement[bool]:
    """All catalogs of the store."""
    return true()


def job_text(by: Any) -> ColumnElement[Any]:
    """A job's name, behind its namespace where that isn't the default one: two of one name are two jobs."""
    whole = by.job_namespace + literal("/") + by.job
    return case((by.job_namespace == DEFAULT_JOB_NAMESPACE, by.job), else_=whole)


ALL: Final = Asked(everywhere, everywhere)


def table_rows(side: str, within: Asked = ALL) -> Select[Any]:
    """job, database, table, create_time: what was told first of a job and a table."""

    def is_told(row: Any) -> ColumnElement[bool]:
        named = and_(row.side == side, row.table_name.is_not(None), row.job.is_not(None))
        return and_(named, row.last > row.deleted, within(row), not_deleted(row, row, TABLES_OF[side]))

    table = table_of(t.TABLE_LINEAGE)
    earlier = table.alias("earlier")
    row, other = table.c, earlier.c
    is_earlier = tuple_(other.first, other.id) < tuple_(row.first, row.id)
    same = and_(_same_job(other, row), _same_table(other, row))
    rows = select(
        job_text(row).label("job"),
        row.database_name.label("database"),
        row.table_name.label("table"),
        row.first.label("create_time"),
    ).where(is_told(row), ~there_is(earlier, where=and_(same, is_told(other), is_earlier)))
    return cast("Select[Any]", rows)


def data_rows(side: str, within: Asked = ALL) -> Select[Any]:
    """job, barrier_id, database, table, snapshot_id, create_time: of a job, its barrier and a table. What was only
    compacted stands back behind data, and what was told earlier behind what was told last."""
    table, commits = table_of(t.READ if side == SOURCE else t.WRITE), table_of(t.COMMIT)

    def is_told(row: Any, commit: Any) -> ColumnElement[bool]:
        known = and_(row.table_name.is_not(None), row.snapshot.is_not(None), row.main == 1, commit.job.is_not(None))
        return and_(known, row.last > row.deleted, within(row), not_deleted(row, commit, DATA))

    def rank(row: Any) -> Any:
        data = case((row.commit_kind == COMPACTED, 0), else_=1) if side != SOURCE else row.main
        return tuple_(data, row.last, row.snapshot, row.id)

    other, told = table.alias("better"), commits.alias("told")
    row, commit = table.c, commits.c
    same = and_(_same_job(told.c, commit), told.c.barrier == commit.barrier, _same_table(other.c, row))
    better = and_(_are_one(other.c, told.c), same, is_told(other.c, told.c), rank(other.c) > rank(row))
    rows = (
        select(
            job_text(commit).label("job"),
            commit.barrier.label("barrier_id"),
            row.database_name.label("database"),
            row.table_name.label("table"),
            row.snapshot.label("snapshot_id"),
            row.first.label("create_time"),
        )
        .join_from(table, commits, _are_one(row, commit))
        .where(is_told(row, commit), ~there_is(other, told, where=better))
    )
    return cast("Select[Any]", rows)


def option_rows(is_asked: Within) -> Select[Any]:
    """key, value: the value that was declared first holds. `is_asked`: whether a declaration is of the catalog."""
    table = table_of(t.CATALOG_OPTION)
    earlier = table.alias("earlier")
    row, other = table.c, earlier.c
    is_earlier = tuple_(other.first, other.id) < tuple_(row.first, row.id)
    one = and_(other.name == row.name, is_asked(other), other.last > other.deleted, is_earlier)
    shown = and_(is_asked(row), row.last > row.deleted)
    rows = select(row.name.label("key"), row.value.label("value")).where(shown, ~there_is(earlier, where=one))
    return cast("Select[Any]", rows)


def startup_rows(within: Asked = ALL) -> Select[Any]:
    """job, database, table, snapshot_id: where the newest run of a job began to read a table."""
    table, runs = table_of(t.RUN_START), table_of(t.RUN)
    row, run = table.c, runs.c

    def is_told(start: Any) -> ColumnElement[bool]:
        main = or_(start.branch.is_(None), start.branch == "main")
        known = and_(start.table_name.is_not(None), start.snapshot.is_not(None), main)
        return and_(known, start.last > start.deleted, within(start), not_deleted(start, run, DATA))

    newer, better = runs.alias("newer"), table.alias("better")
    other = better.c
    is_newer = and_(
        _same_job(newer.c, run),
        within.indexed(newer.c),
        tuple_(newer.c.started_at, newer.c.id) > tuple_(run.started_at, run.id),
    )
    is_later = tuple_(other.last, other.snapshot, other.id) > tuple_(row.last, row.snapshot, row.id)
    is_better = and_(other.run == row.run, _same_table(other, row), is_told(other), is_later)
    rows = (
        select(
            job_text(run).label("job"),
            row.database_name.label("database"),
            row.table_name.label("table"),
            row.snapshot.label("snapshot_id"),
        )
        .join_from(table, runs, row.run == run.run)
        .where(run.job.is_not(None), within.indexed(run), is_told(row))
        .where(~there_is(newer, where=is_newer), ~there_is(better, where=is_better))
    )
    return cast("Select[Any]", rows)


def _same_job(one: Any, other: Any) -> ColumnElement[bool]:
    return and_(one.job == other.job, one.job_namespace == other.job_namespace)


def _same_table(one: Any, other: Any) -> ColumnElement[bool]:
    return and_(one.database_name == other.database_name, one.table_name == other.table_name)


def _are_one(row: Any, commit: Any) -> ColumnElement[bool]:
    return and_(row.commit_id == commit.id, row.barrier == commit.barrier)
