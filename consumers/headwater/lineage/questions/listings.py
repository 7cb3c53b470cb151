"""Lists all jobs and all tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, exists, func, select

from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import load_datasets
from headwater.lineage.questions.gaps.model import format_job, time_of
from headwater.lineage.questions.subject import is_no_validation
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

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
