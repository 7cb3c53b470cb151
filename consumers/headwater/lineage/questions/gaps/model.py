"""What a gap is, and which gaps a question asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, or_, select

from headwater.events.clock import LATEST, moment_of
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

SETTLE_MICROS: Final = 10 * 60 * 1_000_000
"""A gap counts only when it is older than this, in microseconds: its event may still arrive."""


class GapCause(str, Enum):
    """How it is known that something is missing."""

    REPORTED = "REPORTED"
    """An event reported it; `reason` says why."""
    MISSING_SEQUENCE = "MISSING_SEQUENCE"
    """A number of a producer never arrived."""
    SILENCE = "SILENCE"
    """A producer's heartbeats stopped, and it never closed."""
    UNKNOWN_PARENT = "UNKNOWN_PARENT"
    """A snapshot's parent is unknown: a writer without headwater, or a lost commit."""
    STREAM = "STREAM"
    """A stream continued elsewhere than it had stopped."""
    OPTION = "OPTION"
    """A driver declared another value for an immutable option of a catalog than the first one."""


@dataclass(frozen=True)
class PossibleGap:
    """Something that may be missing, with its bounds as far as they are known."""

    cause: GapCause
    detail: str
    """A sentence for people."""
    since: datetime | None = None
    until: datetime | None = None
    """The range of times that it concerns; None where it is open."""
    reason: str | None = None
    count: int | None = None
    """How many events, at most."""
    producer: UUID | None = None
    family: str | None = None
    application: str | None = None
    run: UUID | None = None
    job: str | None = None
    dataset: str | None = None
    generation: str | None = None
    branch: str | None = None
    snapshot: int | None = None


@dataclass(frozen=True)
class GapFilter:
    """Which gaps are asked for. Times are microseconds; a gap matches if it overlaps them."""

    now: int
    since: int | None = None
    until: int | None = None
    job: tuple[str, str] | None = None
    """Namespace and name."""
    datasets: tuple[bytes, ...] | None = None
    """All identities of the dataset."""

    def in_time(self, first: Any, last: Any) -> list[ColumnElement[bool]]:
        """Return conditions: the range from `first` to `last` overlaps the requested times."""
        conditions: list[ColumnElement[bool]] = []
        if self.since is not None:
            conditions.append(last >= self.since)
        if self.until is not None:
            conditions.append(first <= self.until)
        return conditions

    @property
    def applications(self) -> Any:
        """A query for the applications that used the job or the dataset; None if all are meant."""
        if self.job is None and self.datasets is None:
            return None
        run = table_of(t.RUN).c
        return select(run.application).where(run.run.in_(self.runs))

    @property
    def runs(self) -> Any:
        """A query for the runs that used the job or the dataset."""
        chosen = self.of_job("run")
        if self.datasets is not None:
            chosen = chosen.where(table_of(t.TABLE_LINEAGE).c.dataset.in_(self.datasets))
        return chosen

    def of_job(self, name: str) -> Any:
        """A query for the runs or datasets that the job and its steps used; for all if none is asked for."""
        row = table_of(t.TABLE_LINEAGE).c
        chosen = select(row[name]).where(row[name].is_not(None))
        if self.job is None:
            return chosen
        mine = and_(row.job_namespace == self.job[0], row.job == self.job[1])
        steps = and_(row.parent_namespace == self.job[0], row.parent_job == self.job[1])
        return chosen.where(or_(mine, steps))

    def by_job(self, commit: Any) -> list[ColumnElement[bool]]:
        """Return conditions: the commit belongs to the job or one of its steps."""
        if self.job is None:
            return []
        mine = and_(commit.job_namespace == self.job[0], commit.job == self.job[1])
        steps = and_(commit.parent_namespace == self.job[0], commit.parent_job == self.job[1])
        return [commit.run.in_(self.runs), or_(mine, steps)]


def gap_of_access(
    cause: GapCause, detail: str, times: tuple[int | None, int | None], row: Any, snapshot: int | None
) -> PossibleGap:
    """Return a gap beside a read or a write, whose row has its commit and its dataset."""
    since, until = times
    return PossibleGap(
        cause,
        detail,
        time_of(since),
        time_of(until),
        application=row.application,
        run=uuid_of(row.run),
        job=format_job(row.job_namespace, row.job),
        dataset=f"{row.namespace}/{row.name.lstrip('/')}",
        generation=row.generation,
        branch=row.branch,
        snapshot=snapshot,
    )


def time_of(micros: int | None) -> datetime | None:
    """Return the time of a microsecond value; None for values that aren't times."""
    return None if micros is None or not -(2**62) < micros <= LATEST else moment_of(micros)


def uuid_of(value: Any) -> UUID | None:
    return None if value is None else UUID(bytes=bytes(value))


def format_job(namespace: str | None, job: str | None) -> str | None:
    """Return a job's name as people write it."""
    if job is None or namespace in {None, "default"}:
        return job
    return f"{namespace}/{job}"
