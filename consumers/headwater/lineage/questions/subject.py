"""What a question is about, a table with all its identities or a job, and what limits every answer about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from headwater.events.names import DEFAULT_JOB_NAMESPACE, VALIDATION_JOB_NAMESPACE, JobName
from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.model import time_of
from headwater.lineage.questions.names import find_dataset
from headwater.lineage.questions.traversal.identities import Era, Identities, in_eras
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

_GAPS: Final = 1_000


@dataclass(frozen=True)
class TableSubject:
    """A table with all its identities: a rename may have moved its data, or several datasets were unified."""

    dataset: Dataset
    eras: Mapping[bytes, Era]
    """Its identities, each with the times for which it holds: another table may have had the place before or after."""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """All identities, that of the dataset first."""
        return tuple(dict.fromkeys((self.dataset.key, *self.eras)))

    def is_in(self, row: Any) -> ColumnElement[bool]:
        """Return a condition: a row with a dataset, `first` and `last` is about this table."""
        return in_eras(row, self.eras)

    def holds_at(self, dataset: bytes, time: int) -> bool:
        """Return whether a dataset was this table at a time."""
        era = self.eras.get(dataset)
        return era is not None and era.since < time <= era.until

    @property
    def label(self) -> str:
        return self.dataset.label


def resolve_table(connection: Connection, table: str | Dataset) -> TableSubject:
    """Resolve what a person typed, or a known dataset."""
    dataset = find_dataset(connection, table) if isinstance(table, str) else table
    return TableSubject(dataset, Identities(connection).group(dataset.key))


def job_key(job: JobName | str) -> tuple[str, str]:
    """Return a job's namespace and name. A text is a name in the default namespace."""
    if isinstance(job, str):
        return DEFAULT_JOB_NAMESPACE, job
    return job.namespace or DEFAULT_JOB_NAMESPACE, job.name


def belongs_to_job(row: Any, job: tuple[str, str], *, steps: bool = True) -> ColumnElement[bool]:
    """Return a condition: the job, or one of its steps, reported the row."""
    mine = and_(row.job_namespace == job[0], row.job == job[1])
    return or_(mine, and_(row.parent_namespace == job[0], row.parent_job == job[1])) if steps else mine


def is_no_validation(row: Any) -> ColumnElement[bool]:
    """Return a condition: the row is of no job that ran again only to be compared with what it had made."""
    return or_(row.job_namespace.is_(None), row.job_namespace != VALIDATION_JOB_NAMESPACE)


def subject_limits(
    connection: Connection,
    *,
    table: TableSubject | None = None,
    job: JobName | str | None = None,
    now: datetime | None = None,
) -> tuple[AnswerLimit, ...]:
    """Return the gaps and deletions that concern a table or a job."""
    about = table.label if table else str(job)
    keys = table.keys if table else None
    name = JobName(name=job) if isinstance(job, str) else job
    found = gaps(connection, datasets=keys, job=name, at_most=_GAPS, now=now)
    counted = Counter(gap.reason or gap.cause.value for gap in found)
    limits = [AnswerLimit(LimitReason.GAP, about, f"{reason} ({number})") for reason, number in sorted(counted.items())]
    return (*limits, *deletion_limits(connection, about, keys, None if job is None else job_key(job)))


def deletion_limits(
    connection: Connection, about: str, keys: Collection[bytes] | None, job: tuple[str, str] | None
) -> Iterator[AnswerLimit]:
    """Yield what was deleted of a table's or a job's lineage, by scope."""
    stone, row = table_of(t.TOMBSTONE).c, table_of(t.TABLE_LINEAGE).c
    of_runs = select(row.run).where(row.run.is_not(None))
    conditions: list[ColumnElement[bool]] = []
    if keys is not None:
        of_runs = of_runs.where(row.dataset.in_(keys))
        jobs = select(row.job).where(row.dataset.in_(keys))
        conditions += [stone.dataset.in_(keys), stone.job.in_(jobs)]
    if job is not None:
        of_runs = of_runs.where(belongs_to_job(row, job))
        conditions += [and_(stone.job_namespace == job[0], stone.job == job[1])]
    everything = and_(stone.job.is_(None), stone.run.is_(None), stone.dataset.is_(None))
    chosen = select(stone.scope, func.count(), func.max(stone.deleted))
    conditions += [stone.run.in_(of_runs), everything]
    for scope, _, deleted in connection.execute(chosen.where(or_(*conditions)).group_by(stone.scope)):
        word = {"DATA": "data lineage", "ALL": "table and data lineage"}.get(scope, "table lineage")
        yield AnswerLimit(LimitReason.DELETED, about, f"some {word} up to {_text(time_of(deleted))} was deleted")


def _text(moment: datetime | None) -> str:
    return "?" if moment is None else moment.isoformat(timespec="seconds")
