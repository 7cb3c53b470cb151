"""The jobs of a table, and the tables of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, select

from headwater.events.names import JobName
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import format_job, time_of, uuid_of
from headwater.lineage.questions.name_checks import check_job
from headwater.lineage.questions.subject import belongs_to_job, is_no_validation, job_key, resolve_table, subject_limits
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import TABLES_OF
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden


class TableAccess(str, Enum):
    READS = "READS"
    WRITES = "WRITES"


_SIDES = {TableAccess.WRITES: SINK, TableAccess.READS: SOURCE}


@dataclass(frozen=True)
class JobOfTable:
    """A job reads or writes a table."""

    job: str | None
    does: TableAccess
    parent: str | None
    """The application or block that the job is a step of."""
    first: datetime | None
    last: datetime | None
    """When an event last confirmed it; `first` when it was reported first."""
    runs: int
    last_run: UUID | None


@dataclass(frozen=True)
class TableOfJob:
    """A table that a job reads or writes."""

    table: str
    does: TableAccess
    dataset: Dataset | None
    """None if only the table's name is known."""
    job: str | None
    """The step, if the job is an application or a block."""
    first: datetime | None
    last: datetime | None
    runs: int
    last_run: UUID | None


class AccessGroup(NamedTuple):
    row: Any
    last_run: UUID | None


def jobs_of(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[JobOfTable]:
    """Return the jobs that read or write a table: writers first, then the most recent. Validations are left
    out."""
    about = resolve_table(connection, table)
    row = table_of(t.TABLE_LINEAGE).c
    named = (row.job_namespace, row.job, row.parent_namespace, row.parent_job)
    found = [
        JobOfTable(
            format_job(group.row.job_namespace, group.row.job),
            does,
            format_job(group.row.parent_namespace, group.row.parent_job),
            *times_of(group),
        )
        for does in _SIDES
        for group in group_accesses(connection, does, named, and_(about.is_in(row), is_no_validation(row)))
    ]
    return Answer(tuple(found), complete_until(connection, now), subject_limits(connection, table=about, now=now))


def tables_of(connection: Connection, job: JobName | str, *, now: datetime | None = None) -> Answer[TableOfJob]:
    """Return the tables that a job reads or writes. For an application or a block, those of its steps."""
    row = table_of(t.TABLE_LINEAGE).c
    named = (row.job_namespace, row.job, row.dataset, row.catalog, row.database_name, row.table_name)
    rows = {does: group_accesses(connection, does, named, belongs_to_job(row, job_key(job))) for does in _SIDES}
    if not any(rows.values()):
        check_job(connection, job_key(job))
    found_rows = [group.row for several in rows.values() for group in several]
    keys = {bytes(used.dataset) for used in found_rows if used.dataset is not None}
    datasets = load_datasets(connection, keys)
    found = [
        TableOfJob(
            _name(group.row) or datasets[bytes(group.row.dataset)].place,
            does,
            None if group.row.dataset is None else datasets[bytes(group.row.dataset)],
            format_job(group.row.job_namespace, group.row.job),
            *times_of(group),
        )
        for does, several in rows.items()
        for group in several
    ]
    return Answer(tuple(found), complete_until(connection, now), subject_limits(connection, job=job, now=now))


def group_accesses(
    connection: Connection, does: TableAccess, named: Sequence[Any], about: ColumnElement[bool]
) -> list[AccessGroup]:
    """Group the visible accesses of a side, with the last run of each group."""
    side, row = _SIDES[does], table_of(t.TABLE_LINEAGE).c
    is_one = (row.side == side, about, not_hidden(row, row, TABLES_OF[side]))
    place = func.row_number().over(partition_by=named, order_by=(row.last.desc(), row.run.desc()))
    ranked = select(*named, row.run, row.first, row.last, place.label("place")).where(*is_one).subquery()
    columns = [ranked.c[column.name] for column in named]
    times = (func.min(ranked.c.first).label("first"), func.max(ranked.c.last).label("last"))
    chosen = select(*columns, *times, func.count(ranked.c.run.distinct()).label("runs")).group_by(*columns)
    newest = select(*columns, ranked.c.run).where(ranked.c.place == 1)
    last = {tuple(run[:-1]): uuid_of(run.run) for run in connection.execute(newest)}
    found = [AccessGroup(group, last[tuple(group[: len(named)])]) for group in connection.execute(chosen)]
    return sorted(found, key=lambda group: (-group.row.last, tuple(map(str, group.row))))


def times_of(group: AccessGroup) -> tuple[datetime | None, datetime | None, int, UUID | None]:
    return time_of(group.row.first), time_of(group.row.last), group.row.runs, group.last_run


def _name(row: Any) -> str:
    return ".".join(part for part in (row.catalog, row.database_name, row.table_name) if part)
