"""Finds in a store's lineage how a snapshot is made again: what is pinned, redirected, copied and compared.

A stream's snapshot as one statement would make it: from its sources as far as the stream had read them.

Paimon PIP-5 validates a streaming job so: a batch job reads the source at the snapshot that the sink's snapshot was
made from, and its result is compared with the sink at that snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, select

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of
from headwater.events.names import JobName
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps import GapCause
from headwater.lineage.questions.lineage_answers import add_known_limits
from headwater.lineage.questions.names import find, find_known
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.start_points import StartSelector, find_start
from headwater.lineage.questions.traversal.context import Basis, TraversalContext, is_range
from headwater.lineage.questions.traversal.hidden_rows import load_marked_reads
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.versions.validation.job_commits import MOST_COMMITS, JobCommits
from headwater.versions.validation.model import (
    ComparedRows,
    RedirectedOutput,
    ResultStart,
    ValidationObstacles,
    ValidationPlan,
)
from headwater.versions.validation.pinned_inputs import TOPIC, InputPlanner
from headwater.versions.validation.redirected_outputs import OutputPlanner

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


_HOLES: Final = frozenset({GapCause.MISSING_SEQUENCE})


def plan_validation(
    connection: Connection,
    sink: str,
    *,
    pins: Mapping[str, str] | None = None,
    allowed: Collection[str] = (),
    anyway: bool = False,
    copies: bool = False,
) -> ValidationPlan:
    """Return how the job is run again that made a snapshot, `"lake.dws.daily@8"`.

    A snapshot of a stream is made again by a batch job, whose result is compared as a whole.

    `pins` names versions of tables that lineage doesn't know, and `allowed` tables and paths that are read as they are
    now. With `anyway` gaps in lineage and inputs that Spark doesn't show become notes. With `copies` each result begins
    with what was there, also where the job has only added rows, or replaced all. An UnvalidatableError lists all that
    stands in the way, and a ConfigurationError that a pinned table isn't named in full.
    """
    _refuse_short_names(connection, pins or {})
    named = find(connection, sink)
    if named.column is not None or named.snapshot is None:
        raise ConfigurationError(f"which snapshot of {sink}? Write it as TABLE@SNAPSHOT, such as lake.dws.daily@8")
    walk = TraversalContext(connection)
    start = find_start(walk, named.dataset, StartSelector(named.snapshot), Basis.COMMIT)
    obstacles = ValidationObstacles(f"{named.dataset.label}@{named.snapshot}", allowed, is_forced=anyway)
    write = _known_write(start.writes, named.dataset, obstacles)
    job = JobCommits.load(walk, write)
    is_stream = job.is_stream
    if is_stream:
        job = as_one_statement(job, write, obstacles)
    _refuse_many_commits(job, obstacles)
    names = _load_names(walk, job)
    sink_key = job.table_of(write)
    planner = OutputPlanner(job, names, obstacles, copies=copies)
    outputs = planner.plan(sink_key)
    inputs = InputPlanner(job, names, pins or {}, obstacles).plan(write, outputs)
    _add_gaps(connection, job, obstacles)
    if sink_key not in outputs:
        obstacles.check()
    if is_stream:
        outputs = {sink_key: as_whole_result(outputs[sink_key])}
    output = outputs[sink_key]
    rows = ComparedRows.ALL if is_stream else planner.compared_rows(output, sink_key, write)
    obstacles.check()
    return ValidationPlan(
        sink=output,
        snapshot=write.snapshot or 0,
        rows=rows,
        inputs=inputs,
        outputs=tuple(outputs.values()),
        job=format_job_key(write.job),
        run=None if write.run is None else write.run.hex(),
        allowed=tuple(allowed),
        notes=obstacles.notes,
    )


def _refuse_short_names(connection: Connection, pins: Mapping[str, str]) -> None:
    """Raise an error for a name that a lens would look for in whichever catalog and namespace the job uses."""
    for name, version in pins.items():
        if "/" in name or name.count(".") > 1:
            continue
        known = find_known(connection, name)
        full = "catalog.namespace.table" if known is None else known.label
        raise ConfigurationError(f"{name}@{version} can't be pinned by that name: name the table in full, as {full}")


def _known_write(writes: Sequence[SnapshotWrite], dataset: Dataset, obstacles: ValidationObstacles) -> SnapshotWrite:
    """Return the write of the snapshot; an UnvalidatableError if nobody knows what it was made from."""
    if not writes:
        raise obstacles.error("nobody reported who wrote it, so what it was made from isn't known")
    write = writes[0]
    if write.hidden:
        raise obstacles.error(hidden_text(write.hidden))
    if write.evidence is not None:
        why = f"its commit is known from the log of {dataset.label} alone ({write.evidence}), and not what it read"
        raise obstacles.error(why)
    if write.commit_id is None:
        raise obstacles.error(f"it was made by {write.kind}, not by a job that wrote rows")
    return write


def _refuse_many_commits(job: JobCommits, obstacles: ValidationObstacles) -> None:
    if job.is_cut:
        why = f"its application made more than {MOST_COMMITS:,} commits, which is no script that can run again"
        raise obstacles.error(why)


def _load_names(walk: TraversalContext, job: JobCommits) -> Mapping[bytes, Dataset]:
    refs: list[SnapshotWrite | SnapshotRead] = [*job.writes, *job.reads]
    known = [ref for ref in refs if ref.dataset is not None]
    keys = {job.table_of(ref) for ref in known} | {ref.dataset for ref in known if ref.dataset is not None}
    return load_datasets(walk.connection, keys)


def _add_gaps(connection: Connection, job: JobCommits, obstacles: ValidationObstacles) -> None:
    """Doubt what the job read where events of its run are missing."""
    limits = LimitCollector()
    runs = {write.run for write in job.writes if write.run is not None}
    add_known_limits(connection, {}, runs, limits)
    for limit in limits.as_limits({}):
        if limit.why.value == "GAP":
            obstacles.add_doubt(f"lineage of the run has a gap: {limit.detail or limit.about}")
    for namespace, name in {write.job for write in job.writes if write.job[1] is not None}:
        of_job = JobName(namespace=namespace, name=name or "")
        for gap in gaps(connection, job=of_job, since=moment_of(job.began), until=moment_of(job.ended)):
            if gap.cause in _HOLES:
                obstacles.add_doubt(f"lineage of the run has a gap: {gap.detail}")
    if any(write.made_from == "UNKNOWN" for write in job.writes) and not job.reads:
        obstacles.add_doubt("it is unknown what one of the job's commits read")
