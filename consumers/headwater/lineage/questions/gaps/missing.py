"""What one gap is, and which are asked for."""

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

SETTLED: Final = 10 * 60 * 1_000_000
"""A hole counts when it is older than this, in microseconds: until then its event may be on its way."""


class Cause(str, Enum):
    """How it is known that something is missing."""

    TOLD = "TOLD"
    """Somebody missed it and said so; `reason` has the word."""
    HOLE = "HOLE"
    """A number of a producer's never came."""
    SILENCE = "SILENCE"
    """A producer's heartbeat stopped, and it never said that it closed."""
    PARTS = "PARTS"
    """Of an event that was cut, not all parts came."""
    UNKNOWN_PARENT = "UNKNOWN_PARENT"
    """A snapshot was made on one that nobody is known to have made: a writer without headwater, or a lost commit."""
    STREAM = "STREAM"
    """A stream read on from somewhere else than where it had stopped."""


@dataclass(frozen=True)
class Missing:
    """Something that may be missing, bounded as far as that is known."""

    cause: Cause
    detail: str
    """What a person should know, in a sentence."""
    since: datetime | None = None
    until: datetime | None = None
    """Not before and not after; None where nothing bounds it, or where it goes on."""
    reason: str | None = None
    count: int | None = None
    """How many events, at most."""
    producer: UUID | None = None
    family: str | None = None
    application: str | None = None
    run: UUID | None = None
    job: str | None = None
    dataset: str | None = None
    life: str | None = None
    branch: str | None = None
    snapshot: int | None = None


@dataclass(frozen=True)
class Asked:
    """Which gaps are wanted. Times are microseconds; a gap that reaches into them is one of them."""

    now: int
    since: int | None = None
    until: int | None = None
    job: tuple[str, str] | None = None
    """Its namespace and name."""
    datasets: tuple[bytes, ...] | None = None
    """All identities of the dataset that is asked for."""

    def in_time(self, first: Any, last: Any) -> list[ColumnElement[bool]]:
        """Conditions on what was from `first` to `last`."""
        conditions: list[ColumnElement[bool]] = []
        if self.since is not None:
            conditions.append(last >= self.since)
        if self.until is not None:
            conditions.append(first <= self.until)
        return conditions

    @property
    def applications(self) -> Any:
        """A selection of the applications that the job or the dataset had to do with; None where all are meant."""
        if self.job is None and self.datasets is None:
            return None
        run = table_of(t.RUN).c
        return select(run.application).where(run.run.in_(self.runs))

    @property
    def runs(self) -> Any:
        """A selection of the runs that the job or the dataset had to do with."""
        row = table_of(t.TABLE_LINEAGE).c
        chosen = select(row.run).where(row.run.is_not(None))
        if self.job is not None:
            mine = and_(row.job_namespace == self.job[0], row.job == self.job[1])
            steps = and_(row.parent_namespace == self.job[0], row.parent_job == self.job[1])
            chosen = chosen.where(or_(mine, steps))
        if self.datasets is not None:
            chosen = chosen.where(row.dataset.in_(self.datasets))
        return chosen

    def by_job(self, commit: Any) -> list[ColumnElement[bool]]:
        """Conditions on a commit: it was the job's, or that of one of its steps."""
        if self.job is None:
            return []
        mine = and_(commit.job_namespace == self.job[0], commit.job == self.job[1])
        steps = and_(commit.parent_namespace == self.job[0], commit.parent_job == self.job[1])
        return [commit.run.in_(self.runs), or_(mine, steps)]


def when(micros: int | None) -> datetime | None:
    return None if micros is None or not -(2**62) < micros <= LATEST else moment_of(micros)


def uuid_of(value: Any) -> UUID | None:
    return None if value is None else UUID(bytes=bytes(value))


def job_text(namespace: str | None, job: str | None) -> str | None:
    """A job as a person writes it."""
    if job is None or namespace in {None, "default"}:
        return job
    return f"{namespace}/{job}"
