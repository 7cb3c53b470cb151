"""The jobs of a table, and the tables of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, func, select

from headwater.events.names import JobName
from headwater.lineage.law.commits import SINK, SOURCE
from headwater.lineage.law.visible import TABLES_OF
from headwater.lineage.questions.about import is_job, job_key, limits_of, table_meant
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, described
from headwater.lineage.questions.gaps.missing import job_text, uuid_of, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.visible import not_deleted


class Does(str, Enum):
    READS = "READS"
    WRITES = "WRITES"


_SIDES = {Does.WRITES: SINK, Does.READS: SOURCE}


@dataclass(frozen=True)
class JobOfTable:
    """A job reads or writes a table."""

    job: str | None
    does: Does
    parent: str | None
    """The application or block whose step it is."""
    first: datetime | None
    last: datetime | None
    """When it was told first and last."""
    runs: int
    last_run: UUID | None


@dataclass(frozen=True)
class TableOfJob:
    """A table that a job reads or writes."""

    table: str
    does: Does
    dataset: Dataset | None
    """None where the table is known by its name only."""
    job: str | None
    """The step, where the job is an application or a block."""
    first: datetime | None
    last: datetime | None
    runs: int
    last_run: UUID | None


class Group(NamedTuple):
    row: Any
    last_run: UUID | None


def jobs_of(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[JobOfTable]:
    """Which jobs read and write a table: those that write first, and of each the one that was there last."""
    about = table_meant(connection, table)
    row = table_of(t.TABLE_LINEAGE).c
    named = (row.job_namespace, row.job, row.parent_namespace, row.parent_job)
    found = [
        JobOfTable(
            job_text(each.row.job_namespace, each.row.job),
            does,
            job_text(each.row.parent_namespace, each.row.parent_job),
            *times_of(each),
        )
        for does in _SIDES
        for each in grouped(connection, does, named, row.dataset.in_(about.keys))
    ]
    return Answer(tuple(found), complete_until(connection, now), limits_of(connection, table=about, now=now))


def tables_of(connection: Connection, job: JobName | str, *, now: datetime | None = None) -> Answer[TableOfJob]:
    """Which tables a job reads and writes; of an application or a block, those of its steps."""
    row = table_of(t.TABLE_LINEAGE).c
    named = (row.job_namespace, row.job, row.dataset, row.catalog, row.database_name, row.table_name)
    rows = {does: grouped(connection, does, named, is_job(row, job_key(job))) for does in _SIDES}
    found_rows = [each.row for several in rows.values() for each in several]
    keys = {bytes(each.dataset) for each in found_rows if each.dataset is not None}
    datasets = described(connection, keys)
    found = [
        TableOfJob(
            _name(each.row) or datasets[bytes(each.row.dataset)].place,
            does,
            None if each.row.dataset is None else datasets[bytes(each.row.dataset)],
            job_text(each.row.job_namespace, each.row.job),
            *times_of(each),
        )
        for does, several in rows.items()
        for each in several
    ]
    return Answer(tuple(found), complete_until(connection, now), limits_of(connection, job=job, now=now))


def grouped(connection: Connection, does: Does, named: Sequence[Any], about: ColumnElement[bool]) -> list[Group]:
    """What is visible of a side by these names, and which run was the last of each."""
    side, row = _SIDES[does], table_of(t.TABLE_LINEAGE).c
    is_one = (row.side == side, row.last > row.deleted, about, not_deleted(row, row, TABLES_OF[side]))
    place = func.row_number().over(partition_by=named, order_by=(row.last.desc(), row.run.desc()))
    ranked = select(*named, row.run, row.first, row.last, place.label("place")).where(*is_one).subquery()
    columns = [ranked.c[each.name] for each in named]
    times = (func.min(ranked.c.first).label("first"), func.max(ranked.c.last).label("last"))
    chosen = select(*columns, *times, func.count(ranked.c.run.distinct()).label("runs")).group_by(*columns)
    newest = select(*columns, ranked.c.run).where(ranked.c.place == 1)
    last = {tuple(each[:-1]): uuid_of(each.run) for each in connection.execute(newest)}
    found = [Group(each, last[tuple(each[: len(named)])]) for each in connection.execute(chosen)]
    return sorted(found, key=lambda group: (-group.row.last, tuple(map(str, group.row))))


def times_of(group: Group) -> tuple[datetime | None, datetime | None, int, UUID | None]:
    return when(group.row.first), when(group.row.last), group.row.runs, group.last_run


def _name(each: Any) -> str:
    return ".".join(part for part in (each.catalog, each.database_name, each.table_name) if part)
