"""Runs: how each stands, whether it is still heard, and what failed in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, select

from headwater.events.clock import micros_of, wall_micros
from headwater.events.jobs import JobStatus
from headwater.events.names import JobName
from headwater.lineage.questions.about import About, is_job, job_key, limits_of, table_meant
from headwater.lineage.questions.answers import Answer, Limit, Why
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.missing import job_text, uuid_of, when
from headwater.lineage.questions.gaps.silence import patience
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import stamp_name, table_of

AT_MOST: Final = 100
_PRODUCER: Final = slice(9, 25)
"""Where a stamp has its producer: behind the rank and the time."""


@dataclass(frozen=True)
class Failed:
    """A statement that ended with an error."""

    at: datetime | None
    job: str | None
    error: str
    condition: str | None
    """Spark's error class, where there is one."""
    statement: int | None
    batch: int | None
    outputs: tuple[str, ...]
    """What it would have written."""


@dataclass(frozen=True)
class Run:
    run: UUID | None
    job: str | None
    parent: str | None
    application: str | None
    scope: str | None
    job_type: str | None
    user: str | None
    status: JobStatus
    """UNKNOWN where nobody told of it."""
    inferred: bool
    """Told by somebody else, who found it dead."""
    alive: bool
    """It has no terminal status, and whoever told of it is still heard."""
    heard: datetime | None
    """When whoever told of it was heard last."""
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    signal: int | None
    error: str | None
    policy: str | None
    """What was to become of its lineage."""
    code_version: str | None
    parent_run: UUID | None
    failures: tuple[Failed, ...]

    @property
    def duration(self) -> timedelta | None:
        """How long it took, or takes so far as it was heard."""
        until = self.ended or self.heard
        return None if self.started is None or until is None else max(until - self.started, timedelta(0))


def runs(
    connection: Connection,
    job: JobName | str | None = None,
    *,
    table: str | Dataset | None = None,
    run: UUID | None = None,
    at_most: int = AT_MOST,
    now: datetime | None = None,
) -> Answer[Run]:
    """Runs, the newest first: of a job (also as a step, or as the application of steps), or with a table."""
    about = None if table is None else table_meant(connection, table)
    chosen = _chosen(None if job is None else job_key(job), about, run).limit(at_most + 1)
    found = list(connection.execute(chosen))
    rows = found[:at_most]
    heard = _heard(connection, rows, wall_micros() if now is None else micros_of(now))
    failures = _failures(connection, rows)
    limits = () if job is None and about is None else limits_of(connection, table=about, job=job, now=now)
    if len(found) > at_most:
        limits = (*limits, Limit(Why.CUT, f"the newest {at_most} runs"))
    told = tuple(_run(each, heard, failures.get(bytes(each.run), ())) for each in rows)
    return Answer(told, complete_until(connection, now), limits)


def runs_by_id(connection: Connection, ids: Iterable[bytes], now: datetime | None = None) -> dict[bytes, Run]:
    """How these stand, without what failed in them."""
    row = table_of(t.RUN)
    found = list(among(connection, select(row), row.c.run, ids))
    heard = _heard(connection, found, wall_micros() if now is None else micros_of(now))
    return {bytes(each.run): _run(each, heard, ()) for each in found}


def _chosen(job: tuple[str, str] | None, about: About | None, run: UUID | None) -> Any:
    row, known = table_of(t.RUN).c, table_of(t.TABLE_LINEAGE).c
    chosen = select(table_of(t.RUN))
    if job is not None:
        mine = select(row.run).where(is_job(row, job))
        steps = select(known.run).where(is_job(known, job), known.run.is_not(None))
        chosen = chosen.where(row.run.in_(mine.union(steps)))
    if about is not None:
        chosen = chosen.where(row.run.in_(select(known.run).where(known.dataset.in_(about.keys))))
    if run is not None:
        chosen = chosen.where(row.run == run.bytes)
    return chosen.order_by(row.first.desc(), row.run)


def _heard(connection: Connection, rows: Iterable[Any], now: int) -> dict[bytes, tuple[bool, int]]:
    """By producer, whether it is alive and when it was heard."""
    row = table_of(t.PRODUCER).c
    wanted = select(row.producer, row.last, row.closed_at, patience(row).label("patience"))
    found = among(connection, wanted, row.producer, {_producer_of(each) for each in rows} - {b""})
    return {
        bytes(each.producer): (each.closed_at is None and each.last + each.patience >= now, each.last) for each in found
    }


def _producer_of(row: Any) -> bytes:
    """Of whoever told how it began; else, how it stands."""
    values = row._mapping  # noqa: SLF001 - it is public, and so named to leave names to columns
    start = bytes(values[stamp_name("start")])
    return (start or bytes(values[stamp_name("status")]))[_PRODUCER]


def _run(row: Any, heard: dict[bytes, tuple[bool, int]], failures: tuple[Failed, ...]) -> Run:
    status = JobStatus(row.status) if row.status in set(JobStatus) else JobStatus.UNKNOWN
    is_heard, last = heard.get(_producer_of(row), (False, None))
    return Run(
        run=uuid_of(row.run),
        job=job_text(row.job_namespace, row.job),
        parent=job_text(row.parent_namespace, row.parent_job),
        application=row.application or None,
        scope=row.scope,
        job_type=row.job_type,
        user=row.user_name,
        status=status,
        inferred=bool(row.inferred),
        alive=is_heard and not status.is_terminal,
        heard=when(last if last is not None else row.last),
        started=when(row.started_at if row.started_at is not None else row.first),
        ended=when(row.at) if status.is_terminal else None,
        exit_code=row.exit_code,
        signal=row.signal,
        error=_error(row.error),
        policy=row.policy,
        code_version=row.code_version,
        parent_run=uuid_of(row.parent_run),
        failures=failures,
    )


def _failures(connection: Connection, rows: Iterable[Any]) -> dict[bytes, tuple[Failed, ...]]:
    row = table_of(t.FAILURE).c
    found: dict[bytes, list[tuple[Any, Failed]]] = {}
    for each in among(connection, select(table_of(t.FAILURE)), row.run, {bytes(each.run) for each in rows}):
        details = json.loads(each.error or "{}")
        outputs = tuple(map(_place, json.loads(each.outputs or "[]")))
        failed = Failed(
            when(each.time),
            job_text(each.job_namespace, each.job),
            _error(each.error) or "",
            details.get("condition"),
            each.statement,
            each.batch_id,
            outputs,
        )
        found.setdefault(bytes(each.run), []).append(((each.time, bytes(each.producer), each.sequence), failed))
    return {run: tuple(one for _, one in sorted(several, key=lambda pair: pair[0])) for run, several in found.items()}


def _error(text: str | None) -> str | None:
    """The first line of what was told, behind the class of the exception."""
    if not text:
        return None
    told = json.loads(text)
    message = str(told.get("message") or "").strip().partition("\n")[0]
    return ": ".join(part for part in (str(told.get("type") or ""), message) if part)


def _place(place: dict[str, Any]) -> str:
    table, dataset = place.get("table") or {}, place.get("dataset") or {}
    name = ".".join(part for part in (table.get("catalog"), table.get("database"), table.get("table")) if part)
    return name or f"{dataset.get('namespace', '')}/{str(dataset.get('name', '')).lstrip('/')}".strip("/") or "?"
