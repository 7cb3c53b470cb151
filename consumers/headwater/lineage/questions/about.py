"""What a question is about: a table under all of its identities, or a job; and what limits every answer about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from headwater.events.names import DEFAULT_JOB_NAMESPACE, JobName
from headwater.lineage.questions.answers import Limit, Why
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.missing import when
from headwater.lineage.questions.names import find_dataset
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import table_of

_GAPS: Final = 1_000


@dataclass(frozen=True)
class About:
    """A table, and its identities: a rename may have moved its data, or two were found to be one."""

    dataset: Dataset
    keys: tuple[bytes, ...]

    @property
    def label(self) -> str:
        return self.dataset.label


def table_meant(connection: Connection, table: str | Dataset) -> About:
    """What a person types, or a dataset that was found before."""
    dataset = find_dataset(connection, table) if isinstance(table, str) else table
    return About(dataset, identities(connection, dataset.key))


def identities(connection: Connection, dataset: bytes) -> tuple[bytes, ...]:
    """All that are one with it, itself first."""
    row = table_of(t.LINK).c
    known, new = {dataset: None}, [dataset]
    while new:
        found = [
            bytes(other)
            for one, two in ((row.old, row.new), (row.new, row.old))
            for (other,) in among(connection, select(two), one, new)
        ]
        new = [each for each in dict.fromkeys(found) if each not in known]
        known.update(dict.fromkeys(new))
    return tuple(known)


def job_key(job: JobName | str) -> tuple[str, str]:
    """Its namespace and name; text is the name of one in the default namespace."""
    if isinstance(job, str):
        return DEFAULT_JOB_NAMESPACE, job
    return job.namespace or DEFAULT_JOB_NAMESPACE, job.name


def is_job(row: Any, job: tuple[str, str], *, steps: bool = True) -> ColumnElement[bool]:
    """Of a row that says by which job it was told: it is this one, or one of its steps."""
    mine = and_(row.job_namespace == job[0], row.job == job[1])
    return or_(mine, and_(row.parent_namespace == job[0], row.parent_job == job[1])) if steps else mine


def limits_of(
    connection: Connection,
    *,
    table: About | None = None,
    job: JobName | str | None = None,
    now: datetime | None = None,
) -> tuple[Limit, ...]:
    """Gaps and deletions that concern a table or a job."""
    about = table.label if table else str(job)
    keys = table.keys if table else None
    name = JobName(name=job) if isinstance(job, str) else job
    found = gaps(connection, datasets=keys, job=name, at_most=_GAPS, now=now)
    counted = Counter(each.reason or each.cause.value for each in found)
    told = [Limit(Why.GAP, about, f"{reason} ({number})") for reason, number in sorted(counted.items())]
    return (*told, *deletions(connection, about, keys, None if job is None else job_key(job)))


def deletions(
    connection: Connection, about: str, keys: Collection[bytes] | None, job: tuple[str, str] | None
) -> Iterator[Limit]:
    """What was deleted of a table's or a job's lineage, by scope."""
    stone, row = table_of(t.TOMBSTONE).c, table_of(t.TABLE_LINEAGE).c
    of_runs = select(row.run).where(row.run.is_not(None))
    conditions: list[ColumnElement[bool]] = []
    if keys is not None:
        of_runs = of_runs.where(row.dataset.in_(keys))
        jobs = select(row.job).where(row.dataset.in_(keys))
        conditions += [stone.dataset.in_(keys), stone.job.in_(jobs)]
    if job is not None:
        of_runs = of_runs.where(is_job(row, job))
        conditions += [and_(stone.job_namespace == job[0], stone.job == job[1])]
    everything = and_(stone.job.is_(None), stone.run.is_(None), stone.dataset.is_(None))
    chosen = select(stone.scope, func.count(), func.max(stone.deleted))
    conditions += [stone.run.in_(of_runs), everything]
    for scope, _, deleted in connection.execute(chosen.where(or_(*conditions)).group_by(stone.scope)):
        word = {"DATA": "data lineage", "ALL": "table and data lineage"}.get(scope, "table lineage")
        yield Limit(Why.DELETED, about, f"some {word} up to {_text(when(deleted))} was deleted")


def _text(moment: datetime | None) -> str:
    return "?" if moment is None else moment.isoformat(timespec="seconds")
