"""A stream's snapshot as one statement would make it: from its sources as far as the stream had read them.

Paimon PIP-5 validates a streaming job so: a batch job reads the source at the snapshot that the sink's snapshot was
made from, and its result is compared with the sink at that snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import select

from headwater.lineage.questions.traversal.context import is_range
from headwater.lineage.questions.traversal.hidden_rows import load_marked_reads
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.versions.validation.job_commits import JobCommits
from headwater.versions.validation.model import RedirectedOutput, ResultStart
from headwater.versions.validation.obstacles import ValidationObstacles
from headwater.versions.validation.pinned_inputs import TOPIC

_NEWEST: Final = 1_000
"""So many micro-batches are searched for what was read last of each source."""
_STATE: Final = "STATE"


def as_one_statement(job: JobCommits, write: SnapshotWrite, obstacles: ValidationObstacles) -> JobCommits:
    """Return a stream's commits as one that reads each source up to where the stream had read it, and writes the
    snapshot."""
    reads, began = _load_reads(job, write)
    newest: dict[bytes, SnapshotRead] = {}
    first: dict[bytes, SnapshotRead] = {}
    for each in sorted(reads, key=lambda read: read.barrier):
        key = job.table_of(each) if each.dataset is not None else each.id
        newest[key] = each
        first.setdefault(key, each)
    whole = [_up_to(read, first[key]) for key, read in newest.items()]
    own = [read._replace(commit_id=write.commit_id or read.commit_id, barrier=write.barrier) for read in whole]
    if began and any(read.format == TOPIC for read in own):
        obstacles.add_doubt(
            f"the stream's batches before {began} aren't known, and so not where it began to read a topic"
        )
    if any(is_range(read) and read.since is not None and read.format != TOPIC for read in first.values()):
        obstacles.note("the stream began behind the first snapshot of a source: a batch job reads that, too")
    obstacles.note("a stream made it: the job is run as one batch, and all rows are compared")
    return replace(job, writes=[write], reads=own, is_stream=False, is_cut=False)


def as_whole_result(output: RedirectedOutput) -> RedirectedOutput:
    """Return an output that begins empty, as before the stream's first batch: the job makes all rows of the state, and
    may add them where the stream replaced some."""
    return replace(output, start=ResultStart.EMPTY, replaces_first=True, commits=())


def _load_reads(job: JobCommits, write: SnapshotWrite) -> tuple[Sequence[SnapshotRead], int]:
    """Load what the query read until it made the snapshot: in its first micro-batch that is known, and in the newest
    ones. Return that with the first one's number."""
    connection, commit = job.walk.connection, table_of(t.COMMIT).c
    own = select(commit.incarnation, commit.job_namespace, commit.job)
    query = connection.execute(own.where(commit.id == write.commit_id, commit.barrier == write.barrier)).one()
    until = select(commit.id, commit.barrier, commit.batch_id).where(
        commit.incarnation == query.incarnation,
        commit.job_namespace == query.job_namespace,
        commit.job == query.job,
        commit.barrier <= write.barrier,
    )
    rows = connection.execute(until.order_by(commit.barrier.desc()).limit(_NEWEST)).all()
    rows = [*rows, *connection.execute(until.order_by(commit.barrier).limit(1)).all()]
    return load_marked_reads(job.walk, {(bytes(row.id), row.barrier) for row in rows}), rows[-1].batch_id or 0


def _up_to(read: SnapshotRead, first: SnapshotRead) -> SnapshotRead:
    """Return the read of all that a stream had read: a table at its end, a topic from its beginning to there."""
    if read.format == TOPIC:
        return read._replace(since_version=first.since_version, hidden=read.hidden or first.hidden)
    return read._replace(mode=_STATE, since=None, since_version=None)
