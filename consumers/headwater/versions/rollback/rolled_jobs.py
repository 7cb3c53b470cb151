"""The jobs of a roll-back: of whose commits some are lost, and where each of them goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from headwater.errors import HeadwaterError
from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.lineage.questions.commit_facts import CommitSource, commit_sources, stream_checkpoints
from headwater.lineage.questions.names import find_known
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint
from headwater.versions.aligned.claims import groups_of, load_data_versions, load_groups, load_jobs
from headwater.versions.commit_lines import keeps_rows
from headwater.versions.correction.model import JobKind
from headwater.versions.cuts import Cut, JobProgress
from headwater.versions.rollback.model import RollbackVerdict, RolledGroup, RolledJob
from headwater.versions.rollback.rolled_tables import RollbackCandidate, TableFinder
from headwater.versions.table_parts import split_branch

_JobKey = tuple[str | None, str | None]


class JobFinder:
    """Finds the jobs of one roll-back."""

    def __init__(self, connection: Connection, tables: TableFinder) -> None:
        self._connection: Final = connection
        self._back: Final = {each.key: each for each in tables.order if each.verdict is RollbackVerdict.BACK}
        self._keys: dict[str, bytes | None] = {}
        self.groups: Final = list(self._find_groups())

    def planned(self) -> Iterator[RolledJob]:
        """Yield the jobs, those of groups first."""
        writes: dict[_JobKey, list[tuple[RollbackCandidate, SnapshotWrite]]] = {}
        for table in self._back.values():
            for write in table.lost.writes:
                if write.job[1] is not None and not keeps_rows([write]):
                    writes.setdefault(write.job, []).append((table, write))
        names = {job[1] for job in writes if job[1] is not None and job[0] in {None, DEFAULT_JOB_NAMESPACE}}
        aligned = {job: [group for group, _ in found] for job, found in groups_of(self._connection, names).items()}
        for group in self.groups:
            for job in load_jobs(self._connection, group.group):
                if group.group not in aligned.setdefault(job.job, []):
                    aligned[job.job].append(group.group)
        by_name = {job[1]: some for job, some in writes.items()}
        for name, groups in sorted(aligned.items()):
            for group_name in groups:
                yield from self._aligned(name, group_name, by_name.get(name, ()))
        others = sorted(writes.items(), key=lambda each: format_job_key(each[0]) or "")
        yield from (self._other(job, some) for job, some in others if job[1] not in aligned)

    def _find_groups(self) -> Iterator[RolledGroup]:
        """Yield the groups that have data versions with snapshots that are lost."""
        for group in load_groups(self._connection):
            if not any(self._key(table) in self._back for table in group.tables):
                continue
            found = load_data_versions(self._connection, group.name)
            kept = [version.number for version in found if not self._is_lost(version.cut)]
            lost = [version.number for version in found if version.number not in kept]
            if lost:
                yield RolledGroup(group=group.name, newest=group.newest, target=min(lost) - 1)

    def _aligned(
        self, name: str, group: str, writes: Sequence[tuple[RollbackCandidate, SnapshotWrite]]
    ) -> Iterator[RolledJob]:
        job = next((each for each in load_jobs(self._connection, group) if each.job == name), None)
        if job is None:
            return
        rolled = next((each for each in self.groups if each.group == group), None)
        problem, keeps = None, None
        try:
            is_lost, keeps = self._find_last_right(job, None if rolled is None else rolled.target)
        except HeadwaterError as e:
            is_lost, problem = True, str(e)
        if not is_lost and not writes:
            return
        if not is_lost:
            problem = f"its checkpoint {job.checkpoint} doesn't say which of its barriers made what is lost"
        yield RolledJob(
            job=name,
            kind=JobKind.ALIGNED,
            group=group,
            checkpoint=job.checkpoint,
            writes=_labels(table for table, _ in writes),
            commits=_count(writes),
            keeps=keeps,
            problems=() if problem is None else (problem,),
        )

    def _find_last_right(self, job: JobProgress, limit: int | None) -> tuple[bool, int | None]:
        """Return whether any of a job's barriers is lost, and the last one before these; None if it begins anew."""
        checkpoint = Checkpoint(job.checkpoint)
        start = checkpoint.start()
        if start is None:
            raise HeadwaterError(
                f"there is no checkpoint at {job.checkpoint}, as far as this machine sees: plan where the job runs, or "
                "start it with a new checkpoint afterwards"
            )
        barriers = checkpoint.barriers()
        lost = [each.number for each in barriers if self._is_barrier_lost(each) or (limit or each.number) < each.number]
        if not lost:
            return False, None
        before = [each.number for each in barriers if each.number < min(lost)]
        return True, max(before, default=None)

    def _is_barrier_lost(self, barrier: Barrier) -> bool:
        for key, before in barrier.sinks.items():
            table = self._back.get(self._key(key.rpartition(" ")[0]) or b"")
            if table is not None and before is not None and (before == table.target or before in table.lost.numbers):
                return True
        return self._is_lost(barrier.cut)

    def _is_lost(self, cut: Cut) -> bool:
        for name, each in cut.snapshots.items():
            table = self._back.get(self._key(name) or b"")
            if table is not None and each.snapshot in table.lost.numbers:
                return True
        return False

    def _key(self, name: str) -> bytes | None:
        """Return which table of the store a name means; none for a branch."""
        if name not in self._keys:
            stored, branch = split_branch(self._connection, name)
            found = None if branch is not None else find_known(self._connection, stored)
            self._keys[name] = None if found is None else found.key
        return self._keys[name]

    def _other(self, job: _JobKey, writes: Sequence[tuple[RollbackCandidate, SnapshotWrite]]) -> RolledJob:
        commits = {(write.commit_id, write.barrier) for _, write in writes if write.commit_id is not None}
        sources = list(commit_sources(self._connection, commits).values())
        runs = {write.run for _, write in writes if write.run is not None}
        checkpoints = set(stream_checkpoints(self._connection, runs).values())
        is_stream = any(source.batch_id is not None for source in sources)
        keeps, notes = _batch_before(sources) if is_stream else (None, ())
        return RolledJob(
            job=format_job_key(job) or "?",
            kind=JobKind.STREAM if is_stream else JobKind.BATCH,
            writes=_labels(table for table, _ in writes),
            commits=_count(writes),
            checkpoint=checkpoints.pop() if len(checkpoints) == 1 else None,
            keeps=keeps,
            notes=notes,
        )


def _labels(tables: Iterator[RollbackCandidate]) -> tuple[str, ...]:
    return tuple(sorted({table.dataset.label for table in tables}))


def _count(writes: Sequence[tuple[RollbackCandidate, SnapshotWrite]]) -> int:
    return len({(write.commit_id, write.barrier) for _, write in writes})


def _batch_before(sources: Sequence[CommitSource]) -> tuple[int | None, tuple[str, ...]]:
    """Return the last batch before those that are lost, and why it isn't known."""
    batches = [source.batch_id for source in sources if source.batch_id is not None]
    if len({source.incarnation for source in sources}) != 1:
        return None, ("it was given a new checkpoint meanwhile, so there is no batch from which it could go on",)
    if min(batches) == 0:
        return None, ("its first batch is lost, too: start it with a new checkpoint",)
    return min(batches) - 1, ()
