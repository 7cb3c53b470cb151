"""Runs: their status, whether they are alive, and which statements failed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, select

from headwater.events.clock import wall_micros
from headwater.events.jobs import JobStatus, parameters_text
from headwater.events.names import JobName
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.model import format_job, time_of, uuid_of
from headwater.lineage.questions.gaps.sequences import silence_limit
from headwater.lineage.questions.name_checks import (
    TableSubject,
    belongs_to_job,
    check_job,
    check_run,
    is_no_validation,
    job_key,
    resolve_table,
    subject_limits,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import stamp_name, table_of

AT_MOST: Final = 100
_PRODUCER: Final = slice(9, 25)
"""Where a stamp contains the producer: after rank and time."""


@dataclass(frozen=True)
class FailedStatement:
    """A statement that failed."""

    at: datetime | None
    job: str | None
    error: str
    condition: str | None
    """Spark's error class, if there is one."""
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
    """UNKNOWN if no event reported it."""
    inferred: bool
    """Whether another process reported the status, because the run had died."""
    alive: bool
    """Whether its status isn't terminal and its producer still sends heartbeats."""
    heard: datetime | None
    """When its producer was last heard of."""
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    signal: int | None
    error: str | None
    policy: str | None
    """What becomes of its lineage when it ends."""
    code_version: str | None
    parent_run: UUID | None
    failures: tuple[FailedStatement, ...]

    @property
    def duration(self) -> timedelta | None:
        """How long it took, or has taken until it was last heard of."""
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
    """Return runs, newest first: of a job (also as a step, or as the application of steps), or of a table.
    Those of validations are left out unless they are asked for by job or run."""
    about = None if table is None else resolve_table(connection, table)
    chosen = _select_runs(None if job is None else job_key(job), about, run).limit(at_most + 1)
    found = list(connection.execute(chosen))
    if not found and run is not None:
        check_run(connection, run)
    if not found and job is not None:
        check_job(connection, job_key(job))
    rows = found[:at_most]
    heard = _signs_of_life(connection, rows, wall_micros() if now is None else micros_of_argument(now, "now"))
    failures = _failures(connection, rows)
    limits = () if job is None and about is None else subject_limits(connection, table=about, job=job, now=now)
    if len(found) > at_most:
        limits = (*limits, AnswerLimit(LimitReason.CUT, f"the newest {at_most} runs"))
    reported = tuple(_run(run, heard, failures.get(bytes(run.run), ())) for run in rows)
    return Answer(reported, complete_until(connection, now), limits)


def runs_by_id(connection: Connection, ids: Iterable[bytes], now: datetime | None = None) -> dict[bytes, Run]:
    """Return the status of these runs, without failed statements."""
    row = table_of(t.RUN)
    found = list(select_by_keys(connection, select(row), row.c.run, ids))
    heard = _signs_of_life(connection, found, wall_micros() if now is None else micros_of_argument(now, "now"))
    return {bytes(run.run): _run(run, heard, ()) for run in found}


def _select_runs(job: tuple[str, str] | None, about: TableSubject | None, run: UUID | None) -> Any:
    row, known = table_of(t.RUN).c, table_of(t.TABLE_LINEAGE).c
    chosen = select(table_of(t.RUN))
    if job is not None:
        mine = select(row.run).where(belongs_to_job(row, job))
        steps = select(known.run).where(belongs_to_job(known, job), known.run.is_not(None))
        of_job = mine.union(steps).subquery("of_job")  # joined, as MariaDB would look for each run in it
        chosen = chosen.join(of_job, of_job.c.run == row.run)
    if about is not None:
        chosen = chosen.where(row.run.in_(select(known.run).where(about.is_in(known))))
    if run is not None:
        chosen = chosen.where(row.run == run.bytes)
    if run is None and job is None:
        chosen = chosen.where(is_no_validation(row))
    return chosen.order_by(row.first.desc(), row.run)


def _signs_of_life(connection: Connection, rows: Iterable[Any], now: int) -> dict[bytes, tuple[bool, int]]:
    """Return for each producer whether it is alive, and when it was last heard of."""
    row = table_of(t.PRODUCER).c
    query = select(row.producer, row.last, row.closed_at, silence_limit(row).label("patience"))
    found = select_by_keys(connection, query, row.producer, {_producer_of(run) for run in rows} - {b""})
    return {
        bytes(producer.producer): (
            producer.closed_at is None and producer.last + producer.patience >= now,
            producer.last,
        )
        for producer in found
    }


def _producer_of(row: Any) -> bytes:
    """Return the producer that reported the start, or else the status."""
    values = row._mapping  # noqa: SLF001 - it is public, and so named to leave names to columns
    start = bytes(values[stamp_name("start")])
    return (start or bytes(values[stamp_name("status")]))[_PRODUCER]


def _run(row: Any, heard: dict[bytes, tuple[bool, int]], failures: tuple[FailedStatement, ...]) -> Run:
    status = JobStatus(row.status) if row.status in set(JobStatus) else JobStatus.UNKNOWN
    is_heard, last = heard.get(_producer_of(row), (False, None))
    return Run(
        run=uuid_of(row.run),
        job=format_job(row.job_namespace, row.job),
        parent=format_job(row.parent_namespace, row.parent_job),
        application=row.application or None,
        scope=row.scope,
        job_type=row.job_type,
        user=row.user_name,
        status=status,
        inferred=bool(row.inferred),
        alive=is_heard and not status.is_terminal,
        heard=time_of(last if last is not None else row.last),
        started=time_of(row.started_at if row.started_at is not None else row.first),
        ended=time_of(row.status_at) if status.is_terminal else None,
        exit_code=row.exit_code,
        signal=row.signal,
        error=error_text(row.error),
        policy=row.on_job_end,
        code_version=row.code_version,
        parent_run=uuid_of(row.parent_run),
        failures=failures,
    )


def _failures(connection: Connection, rows: Iterable[Any]) -> dict[bytes, tuple[FailedStatement, ...]]:
    row = table_of(t.FAILED_STATEMENT).c
    found: dict[bytes, list[tuple[Any, FailedStatement]]] = {}
    for statement in select_by_keys(
        connection, select(table_of(t.FAILED_STATEMENT)), row.run, {bytes(run.run) for run in rows}
    ):
        details = json.loads(statement.error or "{}")
        outputs = tuple(map(_place, json.loads(statement.outputs or "[]")))
        failed = FailedStatement(
            time_of(statement.time),
            format_job(statement.job_namespace, statement.job),
            error_text(statement.error) or "",
            details.get("condition"),
            statement.statement,
            statement.batch_id,
            outputs,
        )
        found.setdefault(bytes(statement.run), []).append(
            ((statement.time, bytes(statement.producer), statement.sequence), failed)
        )
    return {run: tuple(one for _, one in sorted(several, key=lambda pair: pair[0])) for run, several in found.items()}


def error_text(text: str | None) -> str | None:
    """Return the exception's class, the first line of its message, and the parameters that it doesn't show."""
    if not text:
        return None
    reported = json.loads(text)
    message = str(reported.get("message") or "").strip().partition("\n")[0]
    words = ": ".join(part for part in (str(reported.get("type") or ""), message) if part)
    return words + parameters_text(message, reported.get("parameters") or {})


def _place(place: dict[str, Any]) -> str:
    table, dataset = place.get("table") or {}, place.get("dataset") or {}
    name = ".".join(part for part in (table.get("catalog"), table.get("database"), table.get("table")) if part)
    return name or f"{dataset.get('namespace', '')}/{str(dataset.get('name', '')).lstrip('/')}".strip("/") or "?"
