"""Aligned jobs of production go on from what they have played on the mirrors, after their tables were switched.

Each of their groups gets a data version of the switched snapshots, and each job a barrier of it that is committed: the
tables have all of it already.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from headwater.errors import TerminalError
from headwater.lineage.store import Store
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.correction.journal import Correction
from headwater.versions.cuts import Cut, JobProgress, TableSnapshot
from headwater.versions.step_journal import JournalStep, StepKind, StepState

StepPlan = tuple[StepKind, str, Mapping[str, Any]]


class SwitchRefusedError(TerminalError):
    """A correction can't be switched as it is; the message says what to do."""


class SnapshotFinder(Protocol):
    """What the tables of a session say of snapshots."""

    def label_of(self, name: str) -> str:
        """Return the full name of a table by the name that a job has for it."""
        ...

    def position(self, name: str, snapshot: int) -> TableSnapshot:
        """Return a snapshot of a table as a cut has it."""
        ...


def mirrored_checkpoint(checkpoint: str, correction: str) -> Checkpoint:
    """Return the checkpoint of a job on the mirrors. It is beside the barriers of production's job, so that it is where
    the job can write."""
    return Checkpoint(str(Path(Checkpoint(checkpoint).location) / "corrections" / correction))


def remove_mirrored(checkpoint: str, correction: str) -> None:
    """Remove the checkpoint of a job on the mirrors, if it is there."""
    shutil.rmtree(mirrored_checkpoint(checkpoint, correction).location, ignore_errors=True)


def groups_of_correction(found: Correction) -> dict[str, set[str]]:
    """Return the groups of the aligned jobs that a correction runs, each with the names of these."""
    groups: dict[str, set[str]] = {}
    for job in found.plan.needed_jobs:
        if job.group is not None:
            groups.setdefault(job.group, set()).add(job.job)
    for step in _newest_runs(found):
        for each in step.detail["aligned"]:
            groups.setdefault(each["group"], set()).add(each["job"])
    return groups


def jobs_at_work(store: Store, groups: Mapping[str, Iterable[str]]) -> list[tuple[str, JobProgress]]:
    """Return the jobs that play a barrier now, each with its group."""
    return [
        (group, job)
        for group, names in sorted(groups.items())
        for job in GroupClaims(store, group).jobs()
        if job.job in set(names) and job.running is not None
    ]


def check_standing(store: Store, found: Correction) -> None:
    """Raise a SwitchRefusedError unless the aligned jobs stand between two barriers behind fences, and the mirrors have
    all that they have read."""
    groups = groups_of_correction(found)
    fenced = {step.subject for step in found.of(StepKind.FENCE) if step.state is StepState.RUNNING}
    again = f"run `headwater correct switch {found.name}` again"
    if missing := sorted(set(groups) - fenced):
        raise SwitchRefusedError(
            f"the jobs of {', '.join(missing)} don't stand still, so nothing was switched: {again}"
        )
    if working := jobs_at_work(store, groups):
        names = ", ".join(f"{job.job} (data version {job.running})" for _, job in working)
        raise SwitchRefusedError(f"{names} went on meanwhile, so nothing was switched: {again}")
    for step in _newest_runs(found):
        for group, number in step.detail["target"]["data versions"].items():
            newest = GroupClaims(store, group).settled_newest()
            if not step.detail["final"] or newest is None or newest.number != number:
                raise SwitchRefusedError(f"the group {group} went on meanwhile, so nothing was switched: {again}")


def move_steps(store: Store, found: Correction) -> list[StepPlan]:
    """Return the steps that let the jobs go on, in their order: groups first."""
    groups, jobs = dict[str, StepPlan](), list[StepPlan]()
    for step in _newest_runs(found):
        for each in step.detail["aligned"]:
            newest = GroupClaims(store, each["group"]).newest()
            assert newest is not None  # noqa: S101 - its jobs have played some
            detail = {"number": newest.number + 1}
            groups[each["group"]] = (StepKind.MOVE_GROUP, each["group"], detail)
            jobs.append((StepKind.MOVE_JOB, each["job"], {**detail, **each}))
    return [*groups.values(), *jobs]


class JobMoves:
    """Does the steps of `move_steps`, and undoes them. Each can be done again."""

    def __init__(self, store: Store, correction: str) -> None:
        self._store: Final = store
        self._correction: Final = correction

    def do(self, step: JournalStep, tables: SnapshotFinder, switched: Mapping[str, int]) -> None:
        """`switched` are the snapshots of all tables that were switched."""
        if step.kind is StepKind.MOVE_GROUP:
            self._move_group(step, tables, switched)
        else:
            self._move_job(step)

    def _move_group(self, step: JournalStep, tables: SnapshotFinder, switched: Mapping[str, int]) -> None:
        claims, number = GroupClaims(self._store, step.subject), int(step.detail["number"])
        before = claims.version(number - 1)
        assert before is not None  # noqa: S101 - nobody takes data versions out behind a fence
        snapshots = dict(before.cut.snapshots)
        for name in snapshots:
            snapshot = switched.get(tables.label_of(name))
            if snapshot is not None:
                snapshots[name] = tables.position(name, snapshot)
        claims.claim(number, Cut(snapshots), f"headwater {self._correction}", behind_fence=True)

    def _move_job(self, step: JournalStep) -> None:
        claims, number = GroupClaims(self._store, step.detail["group"]), int(step.detail["number"])
        checkpoint, version = Checkpoint(step.detail["checkpoint"]), claims.version(number)
        assert version is not None  # noqa: S101 - its group was moved before
        last = next((each for each in reversed(checkpoint.barriers()) if each.number < number), None)
        before = None if last is None else last.cut
        checkpoint.write(Barrier(number, version.cut, before, is_committed=True))
        self._tell(claims, step.subject, number)

    def undo(self, step: JournalStep) -> None:
        """Let a job or a group be as it was before the switch. A SwitchRefusedError if it has gone on since."""
        number = int(step.detail["number"])
        if step.kind is StepKind.MOVE_GROUP:
            claims = GroupClaims(self._store, step.subject)
            self._check_undoable(f"the group {step.subject}", claims.newest(), number)
            claims.set_back(number - 1)
            return
        checkpoint = Checkpoint(step.detail["checkpoint"])
        self._check_undoable(f"the job {step.subject}", checkpoint.newest(), number)
        checkpoint.remove(number)
        last = checkpoint.newest()
        done = None if last is None else last.number if last.is_committed else last.number - 1
        self._tell(GroupClaims(self._store, step.detail["group"]), step.subject, done or None)

    def _check_undoable(self, what: str, newest: Any, number: int) -> None:
        if newest is not None and newest.number > number:
            raise SwitchRefusedError(f"{what} has gone on since, to data version {newest.number}: it can't go back")

    @staticmethod
    def _tell(claims: GroupClaims, job: str, done: int | None) -> None:
        """Tell the store how far a job is that stands still."""
        epoch = next(each.epoch for each in claims.jobs() if each.job == job)
        claims.move(job, epoch, done=done, running=None)


def _newest_runs(found: Correction) -> Sequence[JournalStep]:
    """Return the newest run of each stage that has aligned jobs."""
    newest: dict[str, JournalStep] = {}
    for step in found.of(StepKind.RERUN):
        if step.detail.get("aligned"):
            newest[step.subject] = step
    return list(newest.values())
