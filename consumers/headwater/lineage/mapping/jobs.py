"""Rows of events about jobs and runs, and of job lineage: which tables and columns a statement reads and writes."""

from __future__ import annotations

from functools import singledispatch
from typing import Final

from headwater.events.jobs import (
    Committed,
    JobEvent,
    JobLineage,
    JobStarted,
    JobStatusChanged,
    LineageRetention,
    RunScope,
    StatementFailed,
)
from headwater.lineage.mapping.commits import map_commit
from headwater.lineage.mapping.keys import (
    clean_text,
    dataset_hash,
    generation_text,
    job_name_key,
    table_name_key,
    to_json_text,
    uuid_bytes,
)
from headwater.lineage.mapping.lineage_content import map_job_lineage
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import tables as t

_DELETED_AT_END: Final = {LineageRetention.DELETE_TABLE: ("TABLES",), LineageRetention.DELETE_ALL: ("TABLES", "DATA")}
_BEFORE_TERMINAL, _INFERRED, _REPORTED = 0, 1, 2


@singledispatch
def map_job_event(event: JobEvent, build: RowBuilder) -> None:
    """Add the rows of a job event. Kinds that aren't registered below only say that their job exists."""
    _job(event, build)


def _job(event: JobEvent, build: RowBuilder) -> None:
    if event.job is not None:
        build.observed(t.JOB, job_name_key(event.job))


map_job_event.register(Committed)(map_commit)
map_job_event.register(JobLineage)(map_job_lineage)


@map_job_event.register
def _of_start(event: JobStarted, build: RowBuilder) -> None:
    parent = job_name_key(event.parent_job)
    if event.scope is RunScope.APPLICATION:  # one that dies before its first heartbeat is missed all the same
        origin = (clean_text(event.application), *job_name_key(event.job), uuid_bytes(event.run))
        build.observed(t.PRODUCER, (build.producer,), heartbeat=(*origin, build.sequence, None, None))
    if event.job is not None:
        build.observed(t.JOB, job_name_key(event.job), about=(event.job_type.value, *parent))
    if event.run is None:
        return
    run = event.run.bytes
    start = (
        *job_name_key(event.job),
        *parent,
        clean_text(event.application),
        event.scope.value,
        event.job_type.value,
        clean_text(event.user),
        clean_text(event.code_version),
        clean_text(event.headwater_version),
        uuid_bytes(event.parent_run),
        build.time,
        to_json_text(event.spark),
        to_json_text(event.stream),
        to_json_text(event.parent),
    )
    build.observed(t.RUN, (run,), start=start)
    for each in event.starts_at:
        build.place(each)
        key = (
            run,
            dataset_hash(each.dataset),
            generation_text(each.generation),
            clean_text(each.branch),
            *table_name_key(each.table),
        )
        build.observed(t.RUN_START, key, place=(each.snapshot, clean_text(each.version), each.reason.value))


@map_job_event.register
def _of_status(event: JobStatusChanged, build: RowBuilder) -> None:
    """Add a run's status. A terminal status beats RUNNING, and one that the run reported beats one that somebody
    inferred."""
    _job(event, build)
    if event.run is None:
        return
    rank = (_INFERRED if event.inferred else _REPORTED) if event.status.is_terminal else _BEFORE_TERMINAL
    values = (
        event.status.value,
        int(event.inferred),
        build.time,
        event.exit_code,
        event.signal,
        to_json_text(event.error),
        event.on_job_end.value if event.on_job_end else None,
    )
    build.ranked(t.RUN, (event.run.bytes,), "status", values, rank)
    if event.status.is_terminal and event.on_job_end is not None:
        for scope in _DELETED_AT_END.get(event.on_job_end, ()):
            key = (scope, None, None, 0, event.run.bytes, None, None, None, None)
            build.deleted(t.TOMBSTONE, key)


@map_job_event.register
def _of_failure(event: StatementFailed, build: RowBuilder) -> None:
    _job(event, build)
    for place in (*event.inputs, *event.outputs):
        build.place(place)
    values = (
        *job_name_key(event.job),
        *job_name_key(event.parent_job),
        uuid_bytes(event.run),
        uuid_bytes(event.incarnation),
        build.time,
        event.statement,
        event.batch_id,
        to_json_text(event.error),
        to_json_text(event.inputs),
        to_json_text(event.outputs),
        clean_text(event.sql),
    )
    build.observed(t.FAILED_STATEMENT, (build.producer, build.sequence), event=values)
