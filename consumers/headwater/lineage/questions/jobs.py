"""The jobs of a table, the tables of a job, and lists of all jobs and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, exists, func, select

from headwater.events.names import JobName
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import format_job, time_of, uuid_of
from headwater.lineage.questions.name_checks import (
    belongs_to_job,
    check_job,
    is_no_validation,
    job_key,
    resolve_table,
    subject_limits,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import TABLES_OF
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden

AT_MOST: Final = 1_000


@dataclass(frozen=True)
class JobSummary:
    """A job that has lineage."""

    job: str | None
    parent: str | None
    job_type: str | None
    first: datetime | None
    last: datetime | None
    """When it was seen first and last."""


@dataclass(frozen=True)
class TableSummary:
    """A current name of a table, or a path or topic that has none."""

    table: str
    place: str
    first: datetime | None
    last: datetime | None


def jobs(connection: Connection, *, at_most: int = AT_MOST, now: datetime | None = None) -> Answer[JobSummary]:
    """List jobs, the most recent first. Validations are left out."""
    row = table_of(t.JOB).c
    chosen = select(table_of(t.JOB)).where(is_no_validation(row))
    found = list(connection.execute(chosen.order_by(row.last.desc(), row.id).limit(at_most + 1)))
    rows = tuple(
        JobSummary(
            format_job(job.job_namespace, job.job),
            format_job(job.parent_namespace, job.parent_job),
            job.job_type,
            time_of(job.first),
            time_of(job.last),
        )
        for job in found[:at_most]
    )
    cut = (AnswerLimit(LimitReason.CUT, f"the {at_most} jobs that were heard of last"),) if len(found) > at_most else ()
    return Answer(rows, complete_until(connection, now), cut)


def tables(connection: Connection, *, at_most: int = AT_MOST, now: datetime | None = None) -> Answer[TableSummary]:
    """List tables by their names in catalogs, and then paths and topics that no catalog has a name for."""
    named = _named_tables(connection, at_most + 1)
    rows = named + _unnamed_places(connection, at_most + 1 - len(named))
    cut = (AnswerLimit(LimitReason.CUT, f"the first {at_most} tables"),) if len(rows) > at_most else ()
    return Answer(tuple(rows[:at_most]), complete_until(connection, now), cut)


def _named_tables(connection: Connection, at_most: int) -> list[TableSummary]:
    row, place = table_of(t.ALIAS), table_of(t.DATASET)
    chosen = select(row, place.c.namespace, place.c.name).join_from(row, place, row.c.dataset == place.c.id)
    chosen = chosen.where(row.c.last > row.c.deleted)
    chosen = chosen.order_by(row.c.catalog, row.c.database_name, row.c.table_name, row.c.id).limit(at_most)
    return [
        TableSummary(
            ".".join(part for part in (table.catalog, table.database_name, table.table_name) if part),
            f"{table.namespace}/{table.name.lstrip('/')}",
            time_of(table.first),
            time_of(table.last),
        )
        for table in connection.execute(chosen)
    ]


def _unnamed_places(connection: Connection, at_most: int) -> list[TableSummary]:
    """List datasets that never had a name, with when a job was seen to read or write them."""
    if at_most <= 0:
        return []
    place, name, row = table_of(t.DATASET).c, table_of(t.ALIAS).c, table_of(t.TABLE_LINEAGE).c
    chosen = select(place.id).where(~exists().where(name.dataset == place.id))
    keys = [bytes(key) for key in connection.scalars(chosen.order_by(place.namespace, place.name).limit(at_most))]
    times = select(row.dataset, func.min(row.first).label("first"), func.max(row.last).label("last"))
    seen = {
        bytes(span.dataset): span for span in select_by_keys(connection, times.group_by(row.dataset), row.dataset, keys)
    }
    return [
        TableSummary(
            dataset.label,
            dataset.place,
            time_of(seen[key].first) if key in seen else None,
            time_of(seen[key].last) if key in seen else None,
        )
        for key, dataset in load_datasets(connection, keys).items()
    ]


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
