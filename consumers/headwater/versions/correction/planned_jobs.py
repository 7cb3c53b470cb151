"""The jobs of a correction: what made wrong snapshots, and how each is run again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from headwater.events.clock import moment_of
from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.lineage.questions.commit_facts import (
    CommitSource,
    amounts_read,
    amounts_written,
    commit_sources,
    stream_checkpoints,
    total,
)
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.runs import Run, runs_by_id
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.traversal.context import TraversalContext
from headwater.lineage.questions.traversal.hidden_rows import load_marked_reads
from headwater.lineage.questions.traversal.reconciled import RECONCILED
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite, load_writes_of_commits
from headwater.versions.aligned.claims import groups_of
from headwater.versions.commit_lines import keeps_rows
from headwater.versions.correction.model import JobKind, PlannedJob
from headwater.versions.correction.rerun_commands import RerunCommands
from headwater.versions.correction.wrong_snapshots import WrongSnapshots, passes_rows_on

ChainJobKey = tuple[str | None, str | None]


@dataclass
class _JobFacts:
    """What one job wrote that is made again."""

    writes: list[SnapshotWrite] = field(default_factory=list)

    @property
    def commits(self) -> set[tuple[bytes, int]]:
        return {(write.commit_id, write.barrier) for write in self.writes if write.commit_id is not None}

    @property
    def runs(self) -> set[bytes]:
        return {write.run for write in self.writes if write.run is not None}


class JobPlanner:
    """Plans all jobs of one correction, from facts that are loaded for all at once."""

    def __init__(
        self, walk: TraversalContext, wrong: WrongSnapshots, source: bytes, start: Collection[SnapshotWrite]
    ) -> None:
        self._walk = walk
        self._wrong = wrong
        self._jobs: Final = _group(wrong, source, {write.id for write in start})
        connection = walk.connection
        commits = {commit for facts in self._jobs.values() for commit in facts.commits}
        runs = {run for facts in self._jobs.values() for run in facts.runs}
        self._sources: Final = commit_sources(connection, commits)
        self._runs: Final = runs_by_id(connection, runs)
        self._checkpoints: Final = stream_checkpoints(connection, runs)
        self.written: Final = amounts_written(connection, commits)
        """What each write wrote that is made again, by its id."""
        self._amounts_read: Final = amounts_read(connection, commits)
        self._reads: Final = _by_commit(load_marked_reads(walk, commits))
        self._all_writes: Final = list(load_writes_of_commits(connection, commits))
        self._groups: Final = groups_of(connection, {job[1] for job in self._jobs if job[1] is not None})
        keys = {read.dataset for reads in self._reads.values() for read in reads if read.dataset is not None}
        keys |= {key for read in keys if (key := walk.identities.one(read))}
        keys |= {wrong.table_of(write) for write in self._all_writes} - {b""}
        self._names: Final = load_datasets(connection, keys)

    @property
    def jobs_of_tables(self) -> dict[bytes, set[ChainJobKey]]:
        """Which jobs make each table again."""
        found: dict[bytes, set[ChainJobKey]] = {}
        for job, facts in self._jobs.items():
            for write in facts.writes:
                found.setdefault(self._wrong.table_of(write), set()).add(job)
        return found

    @property
    def labels(self) -> dict[ChainJobKey, str]:
        return {job: format_job_key(job) or "?" for job in self._jobs}

    def plan(self, commands: RerunCommands) -> dict[ChainJobKey, PlannedJob]:
        """Return how each job is run again."""
        commands.refuse_unknown([name for job, facts in self._jobs.items() for name in _names_of(job, facts)])
        return {job: self._plan(job, facts, commands) for job, facts in self._jobs.items()}

    def _plan(self, job: ChainJobKey, facts: _JobFacts, commands: RerunCommands) -> PlannedJob:
        sources = [self._sources[commit] for commit, _ in sorted(facts.commits) if commit in self._sources]
        groups = self._groups.get(job[1] or "", []) if job[0] in {None, DEFAULT_JOB_NAMESPACE} else []
        kind = JobKind.ALIGNED if groups else JobKind.STREAM if _is_stream(sources) else JobKind.BATCH
        runs = [self._runs[run] for run in facts.runs if run in self._runs]
        reads = [read for commit, _ in facts.commits for read in self._reads.get(commit, ())]
        command = next((found for name in _names_of(job, facts) if (found := commands.of(name))), None)
        checkpoints = [path for _, path in groups] or [
            self._checkpoints[run] for run in facts.runs if run in self._checkpoints
        ]
        return PlannedJob(
            job=format_job_key(job) or "?",
            kind=kind,
            group=groups[0][0] if groups else None,
            reads=self._labels(read.dataset and self._identity(read) for read in reads),
            writes=self._labels(self._wrong.table_of(write) for write in facts.writes),
            commits=len(facts.commits),
            runs=max(len(facts.runs), 1),
            commands=() if command is None else command.commands(_starts(runs, facts)),
            read=total(self._amounts_read[read.id] for read in reads if read.id in self._amounts_read),
            written=total(self.written[write.id] for write in facts.writes if write.id in self.written),
            last_duration=_last_duration(runs) if kind is JobKind.BATCH else None,
            checkpoint=checkpoints[0] if len(set(checkpoints)) == 1 else None,
            last_right_batch=_batch_before(sources) if kind is JobKind.STREAM else None,
            notes=tuple(dict.fromkeys(self._notes(facts, reads, kind, sources))),
            problems=tuple(dict.fromkeys(self._problems(reads))),
        )

    def _notes(
        self, facts: _JobFacts, reads: Sequence[SnapshotRead], kind: JobKind, sources: Sequence[CommitSource]
    ) -> list[str]:
        notes = [
            f"it reads {self._label(self._identity(read))} as it is then: that has no versions"
            for read in reads
            if read.dataset is not None and read.snapshot is None and read.version is None and not read.candidates
        ]
        right = [write for write in self._all_writes if self._is_beside(write, facts)]
        notes += [
            f"it also writes {self._label(self._wrong.table_of(write))}, which isn't known to be wrong"
            for write in right
        ]
        if kind is JobKind.STREAM and len({source.incarnation for source in sources}) > 1:
            notes.append("it was given a new checkpoint meanwhile, so there is no batch from which it could go on")
        return sorted(notes)

    def _is_beside(self, write: SnapshotWrite, facts: _JobFacts) -> bool:
        """Return whether a commit of the job wrote a table that isn't wrong, too."""
        if (write.commit_id, write.barrier) not in facts.commits or keeps_rows([write]):
            return False
        wrong = {self._wrong.table_of(each) for each in facts.writes}
        return write.dataset is not None and self._wrong.table_of(write) not in wrong

    def _problems(self, reads: Sequence[SnapshotRead]) -> list[str]:
        found = [f"it read what Spark doesn't show: {read.opaque}" for read in reads if read.opaque is not None]
        for read in reads:
            name = ".".join(filter(None, read.name))
            if read.hidden is not None and read.dataset is not None:
                found.append(f"lineage of what it read of {self._label(self._identity(read))} was deleted or is off")
            elif read.dataset is None and read.opaque is None:
                found.append(f"it read {name or 'something'}, of which only the name is known")
        return found

    def _identity(self, read: SnapshotRead) -> bytes:
        return self._walk.identities.one(read.dataset or b"", read.generation)

    def _label(self, key: bytes) -> str:
        known: Dataset | None = self._names.get(key)
        return "?" if known is None else known.label

    def _labels(self, keys: Iterable[bytes | None]) -> tuple[str, ...]:
        return tuple(sorted({self._label(key) for key in keys if key}))


def is_made_again(write: SnapshotWrite, wrong: WrongSnapshots, source: bytes, start: Collection[bytes]) -> bool:
    """Return whether a job has to make a commit again. Rows that others added later to the table that the user corrects
    are right, and are taken over; so is what the user corrects himself."""
    if write.commit_id is None or keeps_rows([write]) or write.branch is not None or not write.main:
        return False
    if wrong.table_of(write) != source:
        return True
    return write.id not in start and (write.id in wrong.made_from_wrong or passes_rows_on(write))


def has_unknown_job(write: SnapshotWrite) -> bool:
    """Return whether nobody knows how a commit was made."""
    return write.evidence == RECONCILED or write.job[1] is None


def _group(wrong: WrongSnapshots, source: bytes, start: Collection[bytes]) -> dict[ChainJobKey, _JobFacts]:
    found: dict[ChainJobKey, _JobFacts] = {}
    writes = [*wrong.writes.values(), *wrong.unversioned.values()]
    for write in sorted(writes, key=lambda write: (write.at, write.id)):
        if is_made_again(write, wrong, source, start) and not has_unknown_job(write):
            found.setdefault(write.job, _JobFacts()).writes.append(write)
    return found


def _by_commit(reads: Sequence[SnapshotRead]) -> Mapping[bytes, Sequence[SnapshotRead]]:
    found: dict[bytes, list[SnapshotRead]] = {}
    for read in reads:
        found.setdefault(read.commit_id, []).append(read)
    return found


def _names_of(job: ChainJobKey, facts: _JobFacts) -> list[str]:
    """Return the names that a command can have: that of the job, and of the application that it is a step of."""
    names = [format_job_key(job), *(format_job_key(write.parent_job) for write in facts.writes)]
    return list(dict.fromkeys(name for name in names if name is not None))


def _is_stream(sources: Sequence[CommitSource]) -> bool:
    return any(source.batch_id is not None for source in sources)


def _batch_before(sources: Sequence[CommitSource]) -> int | None:
    """Return the last batch before the wrong ones, if all are of one checkpoint."""
    batches = [source.batch_id for source in sources if source.batch_id is not None]
    if not batches or min(batches) == 0 or len({source.incarnation for source in sources}) != 1:
        return None
    return min(batches) - 1


def _starts(runs: Sequence[Run], facts: _JobFacts) -> list[datetime]:
    known = [run.started for run in runs if run.started is not None]
    return known or [moment_of(min(write.at for write in facts.writes))]


def _last_duration(runs: Sequence[Run]) -> timedelta | None:
    ended = [(run.started, run.duration) for run in runs if run.ended is not None and run.started is not None]
    return max(ended, key=lambda run: run[0])[1] if ended else None
