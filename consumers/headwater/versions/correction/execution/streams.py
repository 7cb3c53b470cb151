"""Streams of an incremental correction: where the mirrors that they read are cut, and forks of their checkpoints.

A stream goes on behind its last right batch, and ends where its table's rows are changed. So a mirror that it reads
begins at the version that it had read then, gets what is right as commits that only add rows, and the corrected rows in
place of the wrong ones. The stream's checkpoint is forked for the mirrors, and goes on in each run where it was.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError
from headwater.versions.correction.execution.tables import CorrectionError, CorrectionTables, Mirror, mirror_branch
from headwater.versions.correction.journal import Correction
from headwater.versions.correction.model import CorrectionMode, CorrectionPlan, JobKind, PlannedJob
from headwater.versions.correction.rerun_commands import CHECKPOINT
from headwater.versions.forks import ForkError, SourceMove, plan_fork, write_fork
from headwater.versions.forks.checkpoint import local_path
from headwater.versions.forks.progress import newest_batch, unread_versions, version_read
from headwater.versions.step_journal import JournalStep, StepKind, StepState
from headwater.versions.validation.results import full_name

Steps = list[tuple[StepKind, str, Mapping[str, Any]]]
READ_BY_STREAMS: Final = frozenset({"DELTA"})
"""The formats whose streams can read a mirror."""
WRITTEN_BY_STREAMS: Final = frozenset({"DELTA"})
"""The formats that write a batch once into a mirror, however often a killed stream repeats it."""
_FORMER: Final = re.compile(r"__correction_\w+?_switched$")


@dataclass(frozen=True, kw_only=True)
class StreamFork:
    """A fork of a stream's checkpoint, with which it reads and writes mirrors."""

    job: str
    checkpoint: str
    """Production's."""
    batch: int
    reads: Mapping[str, int]
    """The tables of the correction that the stream reads, each with the version that it had read behind the batch."""
    fork: str = ""
    mirrors: Mapping[str, str] | None = None
    """Where the mirrors of these tables are."""

    @classmethod
    def from_step(cls, step: JournalStep) -> StreamFork:
        known = {key: value for key, value in step.detail.items() if key in cls.__dataclass_fields__}
        return cls(job=step.subject, **known)

    def to_detail(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return {key: value for key, value in asdict(self).items() if key != "job"}


@dataclass(frozen=True)
class StreamPlan:
    """What an incremental correction needs for its streams."""

    forks: tuple[StreamFork, ...] = ()
    cuts: Mapping[str, tuple[int, ...]] | None = None
    """By table that a stream reads, the versions at which its mirror stands before it is corrected, one after the
    other: it begins at the first."""

    def cut(self, plan: CorrectionPlan) -> CorrectionPlan:
        """Return the plan with the mirrors that streams read beginning where these need them."""
        cuts = self.cuts or {}
        tables = (
            replace(table, starts_at=cuts[table.table][0]) if table.table in cuts else table for table in plan.tables
        )
        return replace(plan, tables=tuple(tables))

    def steps(self) -> Steps:
        """Return the steps that follow on those which make the mirrors."""
        found: Steps = []
        for table, versions in (self.cuts or {}).items():
            found += [(StepKind.CUT, table, {"since": since, "until": until}) for since, until in pairwise(versions)]
        return [*found, *((StepKind.FORK, fork.job, fork.to_detail()) for fork in self.forks)]


def streams_of(plan: CorrectionPlan) -> list[PlannedJob]:
    """Return the jobs that run as streams on the mirrors: in full, a batch script does their work."""
    if plan.mode is not CorrectionMode.INCREMENTAL:
        return []
    return [job for job in plan.needed_jobs if job.kind is JobKind.STREAM]


def obstacles_of_streams(plan: CorrectionPlan) -> list[str]:
    """Return why streams of a plan can't go on behind their last right batches, as far as the plan shows it."""
    corrected = {table.table: table for table in plan.corrected}
    found = []
    for job in streams_of(plan):
        advice = "leave --mode incremental out, or leave its tables out by --only"
        if job.last_right_batch is None or job.checkpoint is None:
            found.append(f"no right batch is known of the stream {job.job} from which it could go on: {advice}")
        formats = {table: corrected[table].format for table in (*job.reads, *job.writes) if table in corrected}
        found += [
            f"the stream {job.job} reads {table}, and {_without_mirrors(formats[table])}: {advice}"
            for table in job.reads
            if table in formats and formats[table] not in READ_BY_STREAMS
        ]
        found += [
            f"the stream {job.job} writes {table}, and {_without_sinks(formats[table])}: {advice}"
            for table in job.writes
            if table in formats and formats[table] not in WRITTEN_BY_STREAMS
        ]
        found += [
            f"the stream {job.job} and the aligned job {other.job} both read {table}, and its mirror can't be cut for "
            f"the one and have each commit for the other: {advice}"
            for other in plan.needed_jobs
            for table in {*job.reads} & {*other.reads} & corrected.keys()
            if other.kind is JobKind.ALIGNED
        ]
        for other in plan.needed_jobs:
            if other is not job and not set(other.writes).isdisjoint({*job.writes} & corrected.keys()):
                found.append(
                    f"the stream {job.job} and {other.job} write one table, so neither runs by itself: {advice}"
                )
    return found


def _without_mirrors(table_format: str | None) -> str:
    if table_format == "ICEBERG":
        return "a stream of Iceberg reads main and no branch, which its mirror is"
    if table_format == "PAIMON":
        return "a stream of Paimon begins elsewhere without a word where a snapshot of its checkpoint is gone"
    return f"streams of {table_format or 'an unknown format'} can't be led to a mirror"


def _without_sinks(table_format: str | None) -> str:
    if table_format == "ICEBERG":
        return "Iceberg looks on main for the batches that a stream has written: a killed one would write twice"
    if table_format == "PAIMON":
        return "a batch that a stream of Paimon repeats after a kill is written twice"
    return f"no sink of {table_format or 'an unknown format'} can be led to a mirror"


def plan_streams(plan: CorrectionPlan, tables: CorrectionTables) -> StreamPlan:
    """Return where the mirrors that streams read are cut. A ConfigurationError says why a stream can't go on."""
    forks = [_fork_of(job, plan, tables) for job in streams_of(plan)]
    positions: dict[str, set[int]] = {}
    for fork in forks:
        for table, version in fork.reads.items():
            positions.setdefault(table, set()).add(version)
    planned = {table.table: table for table in plan.corrected}
    cuts = {}
    for table, versions in positions.items():
        last_right = planned[table].last_right
        if last_right is None or max(versions) > last_right:
            raise ConfigurationError(
                f"streams have read {table} up to version {max(versions)}, and its last right one is {last_right}: "
                "leave --mode incremental out"
            )
        _check_makers(plan, table)
        cuts[table] = tuple(sorted({*versions, last_right}))
    return StreamPlan(tuple(forks), cuts)


def _fork_of(job: PlannedJob, plan: CorrectionPlan, tables: CorrectionTables) -> StreamFork:
    assert job.checkpoint is not None  # noqa: S101 - it is an obstacle
    assert job.last_right_batch is not None  # noqa: S101
    corrected = {table.table for table in plan.corrected}
    try:
        found = {
            table: version_read(job.checkpoint, job.last_right_batch, tables.location_of(full_name(table)))
            for table in job.reads
            if table in corrected
        }
    except ForkError as e:
        raise ConfigurationError(f"the stream {job.job} can't go on behind its last right batch: {e}") from e
    reads = {table: version for table, version in found.items() if version is not None}
    return StreamFork(job=job.job, checkpoint=job.checkpoint, batch=job.last_right_batch, reads=reads)


def _check_makers(plan: CorrectionPlan, table: str) -> None:
    """Raise an error where a job makes a table anew that a stream reads: the stream would see its rows again."""
    for job in plan.needed_jobs:
        if table in job.writes and table != plan.source and job.kind is not JobKind.STREAM:
            raise ConfigurationError(
                f"a stream reads {table}, which {job.job} makes: each time it runs its mirror is set back, and a "
                "stream can't follow that. Leave --mode incremental out, or leave its tables out by --only"
            )


def make_fork(
    fork: StreamFork, correction: Correction, mirrors: Mapping[str, Mirror], tables: CorrectionTables
) -> StreamFork:
    """Fork a stream's checkpoint for the mirrors, unless that was done before."""
    places = {table: tables.location_of(mirrors[table].name) for table in fork.reads}
    moves = tuple(
        SourceMove(tables.location_of(full_name(table)), place, _head_at(correction, mirrors[table], fork.reads[table]))
        for table, place in places.items()
    )
    target = _fork_place(fork.checkpoint, correction.name)
    _fork_once(fork.checkpoint, fork.batch, target, moves, fork.job)
    return replace(fork, fork=target, mirrors=places)


def _head_at(correction: Correction, mirror: Mirror, version: int) -> int:
    """Return the mirror's version that holds what its table had at a version."""
    for step in correction.of(StepKind.CUT):
        if step.subject == mirror.table and step.detail["until"] == version:
            return int(step.detail["after"])
    return mirror.begins_at


def _fork_place(checkpoint: str, correction: str) -> str:
    """Return where a correction's fork of a checkpoint is: beside it, without what former corrections have added."""
    own = _FORMER.sub("", str(local_path(checkpoint, "checkpoint")))
    return f"{own}__{mirror_branch(correction)}"


def _fork_once(checkpoint: str, batch: int, target: str, moves: Sequence[SourceMove], job: str) -> None:
    if Path(target).exists():  # it is renamed when it is whole
        return
    try:
        write_fork(plan_fork(checkpoint, batch, target, tuple(moves)))
    except (ForkError, ConfigurationError) as e:
        raise CorrectionError(f"the checkpoint of the stream {job} can't be forked: {e}") from e


def forks_of(correction: Correction) -> dict[str, StreamFork]:
    """Return the forks that were made, by job."""
    done = (step for step in correction.of(StepKind.FORK) if step.state is StepState.DONE)
    return {step.subject: StreamFork.from_step(step) for step in done}


def with_checkpoint(command: str, forks: Mapping[str, StreamFork]) -> str:
    """Return a command with the stream's fork in the place of its checkpoint."""
    for fork in forks.values():
        command = command.replace(CHECKPOINT, shlex.quote(fork.fork))
    return command


def is_cut(correction: Correction) -> bool:
    """Return whether a stream reads the table that the user corrects, so that its mirror lacks the wrong rows."""
    return any(correction.plan.source in StreamFork.from_step(step).reads for step in correction.of(StepKind.FORK))


def problem_of_stream(fork: StreamFork) -> str | None:
    """Return what a stream hasn't done that ran on the mirrors: it has to read all that they have."""
    for table, place in (fork.mirrors or {}).items():
        try:
            left = unread_versions(fork.fork, place)
        except (ForkError, ConfigurationError) as e:
            return f"how far it has read {table} isn't known: {e}"
        if left:
            return (
                f"it ended before it had read all of the mirror of {table}, from version {left[0]} on: it has to read "
                "with the checkpoint that it has in production, and its script must wait for the query's end"
            )
    return None


def require_all_read(forks: Iterable[StreamFork]) -> None:
    """Raise an error if a stream that ran on the mirrors hasn't read all that they have."""
    for fork in forks:
        if problem := problem_of_stream(fork):
            raise CorrectionError(f"the stream {fork.job} isn't done: {problem}")


def unread_mirrors(correction: Correction) -> list[str]:
    """Return the streams that haven't read all that the mirrors have."""
    return [job for job, fork in forks_of(correction).items() if problem_of_stream(fork) is not None]


def remove_forks(correction: Correction) -> None:
    """Remove the checkpoints of a correction's own."""
    for step in correction.of(StepKind.FORK):  # one that is RUNNING may be there, too
        shutil.rmtree(_fork_place(StreamFork.from_step(step).checkpoint, correction.name), ignore_errors=True)


def fork_back(fork: StreamFork, locations: Mapping[str, str], switched: Mapping[str, int]) -> str:
    """Fork a stream's checkpoint for production's tables, unless that was done before, and return where it is. Each
    table has all that its mirror had at the snapshot to which it was switched."""
    moves = tuple(SourceMove(place, locations[table], switched[table]) for table, place in (fork.mirrors or {}).items())
    target = f"{fork.fork}_switched"
    if Path(target).exists():
        return target
    batch = newest_batch(fork.fork)
    if batch is None:
        raise CorrectionError(f"the checkpoint {fork.fork} of the stream {fork.job} is gone")
    _fork_once(fork.fork, batch, target, moves, fork.job)
    return target
