"""What there is: all jobs, all tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select

from headwater.lineage.questions.answers import Answer, Limit, Why
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.gaps.missing import job_text, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

AT_MOST: Final = 1_000


@dataclass(frozen=True)
class Job:
    """A name that lineage is kept under."""

    job: str | None
    parent: str | None
    job_type: str | None
    first: datetime | None
    last: datetime | None
    """When it was told of first and last."""


@dataclass(frozen=True)
class NamedTable:
    """A name that holds."""

    table: str
    place: str
    first: datetime | None
    last: datetime | None


def jobs(connection: Connection, *, at_most: int = AT_MOST, now: datetime | None = None) -> Answer[Job]:
    """The one that was heard of last stands first."""
    row = table_of(t.JOB).c
    chosen = select(table_of(t.JOB)).where(row.last > row.deleted)
    found = list(connection.execute(chosen.order_by(row.last.desc(), row.id).limit(at_most + 1)))
    rows = tuple(
        Job(
            job_text(each.job_namespace, each.job),
            job_text(each.parent_namespace, each.parent_job),
            each.job_type,
            when(each.first),
            when(each.last),
        )
        for each in found[:at_most]
    )
    cut = (Limit(Why.CUT, f"the {at_most} jobs that were heard of last"),) if len(found) > at_most else ()
    return Answer(rows, complete_until(connection, now), cut)


def tables(connection: Connection, *, at_most: int = AT_MOST, now: datetime | None = None) -> Answer[NamedTable]:
    """By the names that catalogs have for them."""
    row, place = table_of(t.ALIAS), table_of(t.DATASET)
    chosen = select(row, place.c.namespace, place.c.name).join_from(row, place, row.c.dataset == place.c.id)
    chosen = chosen.where(row.c.last > row.c.deleted)
    chosen = chosen.order_by(row.c.catalog, row.c.database_name, row.c.table_name, row.c.id).limit(at_most + 1)
    found = list(connection.execute(chosen))
    rows = tuple(
        NamedTable(
            ".".join(part for part in (each.catalog, each.database_name, each.table_name) if part),
            f"{each.namespace}/{each.name.lstrip('/')}",
            when(each.first),
            when(each.last),
        )
        for each in found[:at_most]
    )
    cut = (Limit(Why.CUT, f"the first {at_most} tables"),) if len(found) > at_most else ()
    return Answer(rows, complete_until(connection, now), cut)
