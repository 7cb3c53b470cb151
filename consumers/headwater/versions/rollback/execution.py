"""Carries a roll-back out, and undoes it, step by step as its journal says.

Aligned jobs and their groups go first: a job that is started again meanwhile then writes a table that hasn't gone back
yet, which stops the roll-back at that table. Tables go from the sources on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar
from uuid import uuid4

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.lineage.store import Store
from headwater.versions.aligned.checkpoints import Checkpoint
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.branches.model import MainRollBack
from headwater.versions.cuts import Cut
from headwater.versions.rollback.journal import (
    Rollback,
    RollbackJournal,
    RollbackState,
    undoing,
    undone_by,
    waiting_steps,
)
from headwater.versions.rollback.model import RollbackPlan, RolledTable
from headwater.versions.step_journal import JournalStep, NewStep, StepKind, StepState

_MOST_VERSIONS: Final = 100_000
"""How many data versions of a group are taken out."""
StepProgress = Callable[[JournalStep], None]


class RollbackRefusedError(ConfigurationError):
    """A roll-back can't be carried out or undone. Nothing was done for it."""


class RollableTable(Protocol):
    """What a roll-back needs of a table: FormatBranches has it."""

    @property
    def generation(self) -> str | None: ...

    def main_head(self) -> int | None: ...

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack: ...

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None: ...


T = TypeVar("T", bound=RollableTable)


class RollableTables(Protocol[T]):
    """The tables of a session."""

    def open(self, name: str) -> T: ...

    def problem(self, name: str, snapshot: int) -> str | None:
        """Return why a table can't be given the rows of a snapshot any more; None if it can."""
        ...

    def report(self, table: T, moved: MainRollBack, step: JournalStep) -> None:
        """Tell the store what was done to a table. A step that is told twice is known once."""
        ...


def begin_rollback(store: Store, tables: RollableTables[T], plan: RollbackPlan) -> RollbackJournal:
    """Look whether each table is as the plan says, and note the roll-back. A RollbackRefusedError says what is not."""
    if not plan.going_back:
        raise RollbackRefusedError(f"{plan.asked}: nothing has to go back")
    problems = [problem for table in plan.going_back for problem in _problems(tables, table)]
    if problems:
        raise RollbackRefusedError("\n  ".join(["nothing was rolled back:", *problems]))
    return RollbackJournal.create(store, plan, [*_job_steps(plan), *_table_steps(plan)])


def _problems(tables: RollableTables[T], table: RolledTable) -> list[str]:
    try:
        found = tables.open(table.table)
    except ConfigurationError as e:
        return [f"{table.table}: {e}"]
    if None not in (table.generation, found.generation) and table.generation != found.generation:
        return [f"{table.table} was dropped and made again since, and the store doesn't know of that yet"]
    if found.main_head() != table.newest:
        heard = "plan again when the store has heard of that commit, or tell it by `headwater reconcile`"
        return [f"{table.table} is at {found.main_head()}, and the store knows {table.newest} as its newest: {heard}"]
    assert table.target is not None  # noqa: S101 - of a table that goes back
    problem = tables.problem(table.table, table.target)
    return [] if problem is None else [f"{table.table} can't go back to {table.target}: {problem}"]


def _job_steps(plan: RollbackPlan) -> list[NewStep]:
    jobs: list[NewStep] = [
        (
            StepKind.MOVE_JOB,
            job.job,
            {"group": job.group, "checkpoint": job.checkpoint, "keeps": job.keeps, "incarnation": str(uuid4())},
        )
        for job in plan.moving_jobs
    ]
    return jobs + [(StepKind.MOVE_GROUP, group.group, {"keeps": group.target}) for group in plan.groups]


def _table_steps(plan: RollbackPlan) -> list[NewStep]:
    return [
        (StepKind.ROLL_BACK, table.table, {"to": table.target, "expected": table.newest}) for table in plan.going_back
    ]


class RollbackRun(Generic[T]):
    """Works on one roll-back. Older processes that do so are refused from then on."""

    def __init__(
        self, store: Store, tables: RollableTables[T], name: str, progress: StepProgress = lambda _: None
    ) -> None:
        self._store: Final = store
        self._tables: Final = tables
        self._journal: Final = RollbackJournal(store, name)
        self._progress: Final = progress
        self._epoch = 0

    def resume(self) -> Rollback:
        """Do what isn't done yet, of the roll-back or of its undoing. Return it as it is then."""
        found = self._journal.load()
        self._epoch = self._journal.take_over()
        for step in waiting_steps(found):
            self._do(step)
        if found.state is RollbackState.ROLLING_BACK:
            self._journal.move(self._epoch, [found.state], RollbackState.ROLLED_BACK)
        elif found.state is RollbackState.UNDOING:
            self._journal.move(self._epoch, [found.state], RollbackState.UNDONE)
        return self._journal.load()

    def undo(self) -> Rollback:
        """Take back all that was done, if each table is still as the roll-back left it. A RollbackRefusedError says
        which isn't."""
        found = self._journal.load()
        if found.state is RollbackState.UNDONE:
            raise RollbackRefusedError(f"{found.name} was undone already")
        if found.state is not RollbackState.UNDOING:
            done = self._done_steps(found)
            if problems := [problem for step in done for problem in self._problems_of_undoing(step)]:
                raise RollbackRefusedError("\n  ".join([f"{found.name} can't be undone:", *problems]))
            self._epoch = self._journal.take_over()
            self._journal.move(self._epoch, [found.state], RollbackState.UNDOING)
            self._journal.add(self._epoch, [self._undoing_step(step) for step in reversed(done)])
        return self.resume()

    def _undoing_step(self, step: JournalStep) -> NewStep:
        detail = dict(undoing(step))
        if step.kind is StepKind.ROLL_BACK:
            detail |= {"to": step.detail["expected"], "expected": self._made(step)}
        return step.kind, step.subject, detail

    def _made(self, step: JournalStep) -> int | None:
        """Return the snapshot that a table was given by a step; None if it wasn't done."""
        found: int | None = step.detail.get("snapshot")
        if found is not None:
            return found
        return self._tables.open(step.subject).marked_snapshot(step.detail["expected"], self._mark(step))

    def _done_steps(self, found: Rollback) -> list[JournalStep]:
        """Return the steps that have to be taken back. What was begun of a job or a group can be taken back, too."""
        begun = [step for step in found.steps if step.state is not StepState.PENDING]
        return [step for step in begun if step.kind is not StepKind.ROLL_BACK or self._made(step) is not None]

    def _problems_of_undoing(self, step: JournalStep) -> list[str]:
        if step.kind is StepKind.ROLL_BACK:
            return self._problems_of_table(step)
        if step.kind is StepKind.MOVE_JOB:
            newest = Checkpoint(step.detail["checkpoint"]).newest()
            at = None if newest is None else newest.number
            if at is not None and at > (step.detail["keeps"] or 0) and step.state is StepState.DONE:
                return [f"the job {step.subject} has gone on since, to data version {at}"]
        if step.kind is StepKind.MOVE_GROUP:
            state = GroupClaims(self._store, step.subject).state()
            if state is not None and state.newest > step.detail["keeps"] and step.state is StepState.DONE:
                return [f"the group {step.subject} has gone on since, to data version {state.newest}"]
        return []

    def _problems_of_table(self, step: JournalStep) -> list[str]:
        now, made, before = self._tables.open(step.subject).main_head(), self._made(step), step.detail["expected"]
        if now != made:
            return [f"{step.subject} is at {now}, and was left at {made}: what has come since would be lost"]
        problem = self._tables.problem(step.subject, before)
        return [] if problem is None else [f"{step.subject} can't go to {before} again: {problem}"]

    def _do(self, step: JournalStep) -> None:
        """Do a step, whether it was begun before or not."""
        running = step
        if step.state is not StepState.RUNNING:
            running = self._journal.move_step(self._epoch, step, StepState.RUNNING)
        self._progress(running)
        try:
            detail = self._work(running)
        except HeadwaterError as e:
            self._journal.move_step(self._epoch, running, StepState.FAILED)
            kind = TransientError if isinstance(e, TransientError) else TerminalError
            name = self._journal.name
            raise kind(
                f"{name} stopped at {step.subject}: {e}. What is done of it stays: `headwater rollback resume {name}` "
                f"goes on, `headwater rollback undo {name}` takes it back"
            ) from e
        self._progress(self._journal.move_step(self._epoch, running, StepState.DONE, {**running.detail, **detail}))

    def _work(self, step: JournalStep) -> Mapping[str, Any]:
        if step.kind is StepKind.ROLL_BACK:
            return self._roll_back(step)
        number = undone_by(step)
        subject = step if number is None else self._journal.load().steps[number - 1]
        if step.kind is StepKind.MOVE_JOB:
            return self._move_job(subject, is_undone=number is not None)
        return self._move_group(subject, is_undone=number is not None)

    def _roll_back(self, step: JournalStep) -> Mapping[str, Any]:
        table, mark = self._tables.open(step.subject), self._mark(step)
        to, expected = step.detail["to"], step.detail["expected"]
        made = table.marked_snapshot(expected, mark)
        moved = table.roll_back(to, expected, mark) if made is None else MainRollBack(to, expected, made)
        self._tables.report(table, moved, step)
        return {"snapshot": moved.snapshot}

    def _mark(self, step: JournalStep) -> str:
        return f"headwater-{self._journal.name}-{step.number}"

    def _move_job(self, step: JournalStep, *, is_undone: bool) -> Mapping[str, Any]:
        checkpoint = Checkpoint(step.detail["checkpoint"])
        claims = GroupClaims(self._store, step.detail["group"])
        epoch = claims.take_over(step.subject, checkpoint.location)
        if is_undone:
            checkpoint.restore(self._journal.name)
        else:
            checkpoint.set_back(step.detail["keeps"], step.detail["incarnation"], self._journal.name)
        newest = checkpoint.newest()
        number = None if newest is None else newest.number
        done = number if newest is None or newest.is_committed else newest.number - 1
        claims.move(step.subject, epoch, done=done or None, running=None)
        return {}

    def _move_group(self, step: JournalStep, *, is_undone: bool) -> Mapping[str, Any]:
        claims = GroupClaims(self._store, step.subject)
        if is_undone:
            for each in step.detail.get("taken", ()):
                claims.confirm(each["number"], Cut.from_json(each["cut"]), each["by"])
            return {}
        taken = step.detail.get("taken")
        if taken is None:  # they are noted before they are taken out
            later = claims.versions_from(step.detail["keeps"] + 1, _MOST_VERSIONS)
            taken = [{"number": each.number, "cut": each.cut.to_json(), "by": each.claimed_by} for each in later]
            self._journal.note_detail(self._epoch, step, {**step.detail, "taken": taken})
        claims.set_back(step.detail["keeps"])
        return {"taken": taken}
