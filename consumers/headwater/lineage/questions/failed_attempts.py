"""Runs that failed to write a table after it was written last: what a late table waits for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.events.jobs import JobStatus
from headwater.events.names import DatasetId
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.runs import error_text
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

_STATEMENTS: Final = 1_000
"""How many of the newest failed statements are looked through."""
_FAILED: Final = (JobStatus.FAILED.value, JobStatus.KILLED.value)
JobKey = tuple[str | None, str | None]


class FailedWrite(NamedTuple):
    """A run failed to write a table, by one of its statements or before it came to that."""

    at: int
    run: bytes | None
    error: str | None


@dataclass(frozen=True)
class AttemptsSince:
    """What counts as an attempt to write a table: of any job after a time, or of these jobs in other runs."""

    since: int
    members: frozenset[bytes]
    names: frozenset[str]
    jobs: frozenset[JobKey]
    run: bytes | None
    """The run that wrote it last."""


def find_failed_attempts(connection: Connection, wanted: Mapping[bytes, AttemptsSince]) -> dict[bytes, FailedWrite]:
    """Return the newest attempt on each of these tables that failed, if nothing succeeded after it."""
    found: dict[bytes, FailedWrite] = {}
    for key, attempt in (*_by_statements(connection, wanted), *_by_runs(connection, wanted)):
        if key not in found or attempt.at > found[key].at:
            found[key] = attempt
    return found


def _by_statements(
    connection: Connection, wanted: Mapping[bytes, AttemptsSince]
) -> Iterator[tuple[bytes, FailedWrite]]:
    """Yield statements that name the table as what they would have written."""
    row = table_of(t.FAILED_STATEMENT).c
    since = min(attempt.since for attempt in wanted.values())
    chosen = select(row.time, row.run, row.outputs, row.error).where(row.time > since, row.outputs.is_not(None))
    for failed in connection.execute(chosen.order_by(row.time.desc()).limit(_STATEMENTS)):
        places = [_place(one) for one in json.loads(failed.outputs)]
        for key, one in wanted.items():
            if failed.time > one.since and any(hash_ in one.members or name in one.names for hash_, name in places):
                yield (
                    key,
                    FailedWrite(
                        failed.time, None if failed.run is None else bytes(failed.run), error_text(failed.error)
                    ),
                )


def _place(output: dict[str, Any]) -> tuple[bytes | None, str]:
    dataset, table = output.get("dataset"), output.get("table") or {}
    name = ".".join(part for part in (table.get("catalog"), table.get("database"), table.get("table")) if part)
    return None if dataset is None else dataset_hash(DatasetId(**dataset)), name


def _by_runs(connection: Connection, wanted: Mapping[bytes, AttemptsSince]) -> Iterator[tuple[bytes, FailedWrite]]:
    """Yield the newest run of a table's job, or of the application that its job is a step of, if that run failed. Who
    analyses a statement in Spark 3.5 and fails shows nothing else."""
    row = table_of(t.RUN).c
    since = min(attempt.since for attempt in wanted.values())
    names = {name for attempt in wanted.values() for _, name in attempt.jobs if name is not None}
    chosen = select(row.run, row.job_namespace, row.job, row.first, row.status, row.status_at, row.error)
    newest: dict[JobKey, Any] = {}
    for written in select_by_keys(connection, chosen.where(row.first > since), row.job, names):
        job = (written.job_namespace, written.job)
        if job not in newest or written.first > newest[job].first:
            newest[job] = written
    for key, one in wanted.items():
        mine = [newest[job] for job in one.jobs if job in newest and newest[job].first > one.since]
        last = max(mine, key=lambda row_of: row_of.first, default=None)
        if last is not None and last.status in _FAILED and bytes(last.run) != one.run:
            yield key, FailedWrite(last.status_at or last.first, bytes(last.run), error_text(last.error))
