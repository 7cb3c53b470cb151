"""Which checkpoint and which of its batches made a snapshot, as a stream that is begun there again has to know."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, select

from headwater.errors import ConfigurationError
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.gaps.model import format_job, time_of
from headwater.lineage.questions.name_checks import TableSubject, check_snapshot, resolve_table, subject_limits
from headwater.lineage.questions.names import find
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden


@dataclass(frozen=True)
class SnapshotCheckpoint:
    """A commit that made a snapshot. Without `batch` it wasn't one of a stream."""

    job: str
    batch: int | None
    """The number of the micro-batch, as in the checkpoint's `offsets` and `commits`."""
    checkpoint: str | None
    """Where the checkpoint is; None where the stream's start wasn't reported."""
    query: UUID | None
    """The id of the query, which stands in the checkpoint's `metadata`."""
    barrier: int
    run: UUID | None
    at: datetime | None
    """When it was committed."""


def checkpoints(
    connection: Connection, table_at_snapshot: str, *, now: datetime | None = None
) -> Answer[SnapshotCheckpoint]:
    """Return the commits that made a snapshot, `TABLE@SNAPSHOT`, with their checkpoints; normally one."""
    named = find(connection, table_at_snapshot)
    if named.snapshot is None:
        raise ConfigurationError(f"which snapshot? Write {table_at_snapshot}@SNAPSHOT")
    about = resolve_table(connection, named.dataset)
    rows = _commits(connection, about, named.snapshot)
    if not rows:
        check_snapshot(connection, about, named.snapshot)
    limits = subject_limits(connection, table=about, now=now)
    return Answer(tuple(map(_checkpoint, rows)), complete_until(connection, now), limits)


def _commits(connection: Connection, about: TableSubject, snapshot: int) -> list[Any]:
    write, commit, run = access_of(t.WRITE), table_of(t.COMMIT), table_of(t.RUN)
    by_commit = and_(commit.c.id == write.c.commit_id, commit.c.barrier == write.c.barrier)
    columns = (commit.c.job_namespace, commit.c.job, commit.c.batch_id, commit.c.barrier, commit.c.incarnation)
    query = (
        select(*columns, commit.c.run, commit.c.committed_at, run.c.stream)
        .join_from(write, commit, by_commit)
        .outerjoin(run, run.c.run == commit.c.run)
        .where(about.is_in(write.c), write.c.snapshot == snapshot, not_hidden(write.c, commit.c, DATA))
        .order_by(commit.c.barrier)
        .distinct()
    )
    return list(connection.execute(query))


def _checkpoint(row: Any) -> SnapshotCheckpoint:
    stream = json.loads(row.stream) if row.stream else {}
    is_stream = row.batch_id is not None
    return SnapshotCheckpoint(
        job=format_job(row.job_namespace, row.job) or "?",
        batch=row.batch_id,
        checkpoint=stream.get("checkpoint"),
        query=UUID(bytes=bytes(row.incarnation)) if is_stream and row.incarnation is not None else None,
        barrier=row.barrier,
        run=None if row.run is None else UUID(bytes=bytes(row.run)),
        at=None if row.committed_at is None else time_of(row.committed_at),
    )
