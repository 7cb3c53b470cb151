"""Puts the mirrors of a correction in their tables' places: table by table from the sources on, one commit for each.

Each commit is made only if its table is still at the snapshot that its mirror takes account of. The journal has a step
RUNNING before and DONE after its commit, which carries a mark: whoever finds it RUNNING looks for the mark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of
from headwater.lineage.questions.runs import runs
from headwater.lineage.store import Store
from headwater.versions.branches import MainMovedError
from headwater.versions.correction.execution.streams import (
    StreamFork,
    fork_back,
    forks_of,
    remove_forks,
    unread_mirrors,
)
from headwater.versions.correction.journal import Correction, CorrectionJournal, CorrectionState
from headwater.versions.correction.model import CorrectionPlan, JobKind, PhaseDisplay
from headwater.versions.correction.moved_jobs import (
    JobMoves,
    SwitchRefusedError,
    check_standing,
    move_steps,
    remove_mirrored,
)
from headwater.versions.cuts import TableSnapshot
from headwater.versions.step_journal import JournalStep, StepKind, StepState

_MOVES: Final = frozenset({StepKind.MOVE_GROUP, StepKind.MOVE_JOB})
_OPEN, _SWITCHING, _SWITCHED = CorrectionState.OPEN, CorrectionState.SWITCHING, CorrectionState.SWITCHED


@dataclass(frozen=True)
class TableSwitch:
    """What a switch does to one table, or did."""

    table: str
    branch: str
    head: int | None
    """The mirror's newest snapshot."""
    expected: int | None
    """The snapshot at which the table has to be."""
    mark: str
    made_since: int = 0
    """When the jobs began that made the mirror, in microseconds."""
    snapshot: int | None = None
    """The table's snapshot afterwards."""
    began_at: int = 0
    """When its step was begun, in microseconds: always the same, whoever goes on with it."""
    has_returned: bool = False
    """Whether the table was given back what it had before."""

    @classmethod
    def from_step(cls, step: JournalStep) -> TableSwitch:
        return cls(step.subject, **step.detail)

    def to_detail(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return {field: value for field, value in vars(self).items() if field != "table"}


class SwitchTables(ABC):
    """The tables of a correction and their mirrors, as they are when a method is called."""

    @abstractmethod
    def head_of_table(self, table: str) -> int | None:
        """Return a table's newest snapshot."""

    @abstractmethod
    def head_of_mirror(self, table: str, branch: str) -> int | None:
        """Return the newest snapshot of a table's mirror; None if there is no such mirror."""

    @abstractmethod
    def problem(self, table: str, branch: str) -> str | None:
        """Return why a mirror can't take its table's place, whatever the heads of both are; None if it can."""

    @abstractmethod
    def switch(self, switch: TableSwitch) -> int:
        """Put a mirror in its table's place in one commit with the mark, and return the table's snapshot afterwards. A
        MainMovedError if the table is somewhere else than expected, or the mirror has another head."""

    @abstractmethod
    def find(self, table: str, previous: int | None, mark: str) -> int | None:
        """Return the snapshot that a commit with a mark gave a table which was at `previous`; None if there is none."""

    @abstractmethod
    def go_back(self, table: str, to: int, expected: int, mark: str) -> int:
        """Give a table the rows of one of its snapshots in one commit with the mark. A MainMovedError if the table is
        somewhere else than expected."""

    @abstractmethod
    def report(self, switch: TableSwitch, switched: Mapping[str, int]) -> None:
        """Tell the store what a switched table was made from. `switched` are the snapshots of all tables that were
        switched before."""

    @abstractmethod
    def report_end(self, found: Correction, switched: Sequence[TableSwitch]) -> None:
        """Tell that all tables of a correction have their corrected rows. It may be told again."""

    @abstractmethod
    def report_return(self, table: str, to: int, expected: int, snapshot: int) -> None:
        """Tell the store that a table has gone back."""

    def location_of_table(self, table: str) -> str:
        """Return the directory of a table that a stream reads."""
        raise SwitchRefusedError(f"{table} has no directory in which a stream could go on")

    @abstractmethod
    def remove_mirror(self, table: str, branch: str) -> None:
        """Remove a mirror, if it is there."""

    @abstractmethod
    def label_of(self, name: str) -> str:
        """Return the full name of a table by the name that an aligned job has for it."""

    @abstractmethod
    def position(self, name: str, snapshot: int) -> TableSnapshot:
        """Return a snapshot of a table as the data versions of aligned jobs have it."""


SwitchTablesOpener = Callable[[], AbstractContextManager[SwitchTables]]


class Switcher:
    """Switches one correction, and takes it over from any other process that works on it."""

    def __init__(
        self,
        store: Store,
        name: str,
        open_tables: SwitchTablesOpener,
        report: Callable[[str], None] = lambda _: None,
        show: PhaseDisplay = lambda *_: None,
        *,
        epoch: int | None = None,
        start_stream: Callable[[str, str], None] = lambda job, checkpoint: None,  # noqa: ARG005 - names say what
    ) -> None:
        """`epoch` is that of a caller who has taken the correction over already."""
        self._given_epoch: Final = epoch
        self._store: Final = store
        self._journal: Final = CorrectionJournal(store, name)
        self._moves: Final = JobMoves(store, name)
        self._open_tables: Final = open_tables
        self._report: Final = report
        self._show: Final = show
        self._start_stream: Final = start_stream

    @cached_property
    def _epoch(self) -> int:
        """The correction is taken over with the first write."""
        return self._journal.take_over() if self._given_epoch is None else self._given_epoch

    def load(self) -> Correction:
        return self._journal.load()

    def preview(self) -> tuple[TableSwitch, ...]:
        """Return what a switch would do, or what is left of one that was begun, and change nothing."""
        found = self.load()
        with self._open_tables() as tables:
            steps = self._begun(found)
            if steps is None:
                return tuple(_check_ready(found, tables))
        return tuple(TableSwitch.from_step(step) for step in steps if step.state is not StepState.DONE)

    def switch(self) -> tuple[TableSwitch, ...]:
        """Switch all tables, or go on with it. Return what was done to each, the sources first.

        A SwitchRefusedError says which tables have moved since the mirrors were made; before the first table nothing
        was done then.
        """
        found = self.load()
        if found.state is _SWITCHED:
            return tuple(TableSwitch.from_step(step) for step in found.of(StepKind.SWITCH))
        with self._open_tables() as tables:
            steps = self._begun(found)
            if steps is None:
                steps = self._begin(found, tables)
            switched: dict[str, int] = {}
            done = list[TableSwitch]()
            for number, step in enumerate(steps, 1):
                each = TableSwitch.from_step(step)
                if step.state is not StepState.DONE:
                    each = self._switch_table(tables, step, switched)
                    self._report(f"switched {number} of {len(steps)}: {each.table} is at {each.snapshot}")
                self._show("tables", "tables", number, len(steps))
                assert each.snapshot is not None  # noqa: S101 - it was switched
                switched[each.table] = each.snapshot
                done.append(each)
            for step in _moves_of(self.load()):
                if step.state is not StepState.DONE:
                    running = self._running(step)
                    self._moves.do(running, tables, switched)
                    self._journal.move_step(self._epoch, running, StepState.DONE)
                    self._report(f"{step.subject} goes on behind data version {step.detail['number']}")
            self._return_streams(tables, switched)
            for each in reversed(done):
                tables.remove_mirror(each.table, each.branch)
            tables.report_end(found, done)
        remove_forks(found)
        self._journal.move(self._epoch, [_SWITCHING], _SWITCHED)
        self._lift_fences()
        for step in _moves_of(found := self.load()):
            if step.kind is StepKind.MOVE_JOB:
                remove_mirrored(step.detail["checkpoint"], found.name)
        return tuple(done)

    def _lift_fences(self) -> None:
        """Note that fences stand no more; what holds jobs back is the state of the correction."""
        for step in self.load().of(StepKind.FENCE):
            if step.state is StepState.RUNNING:
                self._journal.move_step(self._epoch, step, StepState.DONE)

    def _running(self, step: JournalStep) -> JournalStep:
        if step.state is StepState.RUNNING:
            return step
        return self._journal.move_step(self._epoch, step, StepState.RUNNING)

    def _return_streams(self, tables: SwitchTables, switched: Mapping[str, int]) -> None:
        """Make the checkpoints from which streams go on in production: behind all that their mirrors had."""
        for step in self.load().of(StepKind.RESUME):
            if step.state in {StepState.DONE, StepState.FAILED}:
                continue
            fork, running = StreamFork.from_step(step), self._running(step)
            locations = {table: tables.location_of_table(table) for table in fork.mirrors or {}}
            place = fork_back(fork, locations, switched)
            self._report(f"the stream {fork.job} goes on with the checkpoint {place}")
            self._start_stream(fork.job, place)
            self._journal.move_step(self._epoch, running, StepState.DONE, {**step.detail, "to": place})

    def go_back(self) -> tuple[TableSwitch, ...]:
        """Undo a switch that was begun and isn't at its end: each switched table gets the rows that it had, if nobody
        has written to it since. The correction is open again. Return what was undone, the last table first."""
        found = self.load()
        if found.state is not _SWITCHING:
            raise ConfigurationError(f"{found.name} is {found.state.value}: only a switch that was begun is undone")
        steps = _newest(found)
        if steps and all(step.state is StepState.DONE for step in steps):
            raise SwitchRefusedError(
                f"all tables of {found.name} are switched, and mirrors may be gone: `headwater correct switch "
                f"{found.name}` ends it, and then each table can go back to its former snapshot"
            )
        with self._open_tables() as tables:
            return self._undo(tables)

    def _undo(self, tables: SwitchTables) -> tuple[TableSwitch, ...]:
        """Note for all tables that they go back, before any does: no switch takes one that went back for switched."""
        for step in reversed(_newest(self.load())):
            each = TableSwitch.from_step(step)
            if step.state is StepState.RUNNING:
                each = replace(each, snapshot=tables.find(each.table, each.expected, each.mark))
            if step.state is not StepState.FAILED:
                self._journal.move_step(self._epoch, step, StepState.FAILED, each.to_detail())
        self._undo_moves()
        undone = list[TableSwitch]()
        for step in reversed(_newest(self.load())):
            each = TableSwitch.from_step(step)
            if each.snapshot not in {None, each.expected} and not each.has_returned:
                self._return_table(tables, each)
                undone.append(each)
                each = replace(each, has_returned=True)
                self._journal.move_step(self._epoch, step, StepState.FAILED, each.to_detail())
        self._journal.move(self._epoch, [_SWITCHING], _OPEN)
        self._lift_fences()
        return tuple(undone)

    def _undo_moves(self) -> None:
        """Give aligned jobs the barriers that they had, and let no stream go on with a mirror's checkpoint."""
        for step in reversed(_moves_of(self.load())):
            if step.state in {StepState.RUNNING, StepState.DONE}:
                self._moves.undo(step)
            if step.state is not StepState.FAILED:
                self._journal.move_step(self._epoch, step, StepState.FAILED)
        for step in self.load().of(StepKind.RESUME):
            if step.state is not StepState.FAILED:
                self._journal.move_step(self._epoch, step, StepState.FAILED)

    def _begun(self, found: Correction) -> Sequence[JournalStep] | None:
        """Return the steps of a switch that was begun; None if none was."""
        if found.state is _OPEN:
            return None
        if found.state is not _SWITCHING:
            raise ConfigurationError(f"{found.name} is {found.state.value}, and only what is OPEN can be switched")
        steps = _newest(found)
        if any(step.state is StepState.FAILED for step in steps):
            raise SwitchRefusedError(
                f"the switch of {found.name} is being undone: `headwater correct switch {found.name} --back` ends that"
            )
        return steps or None

    def _begin(self, found: Correction, tables: SwitchTables) -> Sequence[JournalStep]:
        """Note all that will be done, before anything is."""
        switches = _check_ready(found, tables)
        self._journal.move(self._epoch, [_OPEN, _SWITCHING], _SWITCHING)
        try:
            check_standing(self._store, found)  # from now on fences stay
        except SwitchRefusedError:
            self._journal.move(self._epoch, [_SWITCHING], _OPEN)
            self._lift_fences()
            raise
        steps = [(StepKind.SWITCH, each.table, each.to_detail()) for each in switches]
        streams = [(StepKind.RESUME, job, fork.to_detail()) for job, fork in forks_of(found).items()]
        added = self._journal.add(self._epoch, [*steps, *move_steps(self._store, found), *streams])
        return added[: len(steps)]

    def _switch_table(self, tables: SwitchTables, step: JournalStep, switched: Mapping[str, int]) -> TableSwitch:
        each, snapshot = TableSwitch.from_step(step), None
        if step.state is StepState.RUNNING:
            snapshot = tables.find(each.table, each.expected, each.mark)
        else:
            step = self._running(step)
        assert step.moved_at is not None  # noqa: S101 - the journal has it
        each = replace(each, began_at=micros_of(step.moved_at))
        if snapshot is None:
            try:
                snapshot = tables.switch(each)
            except MainMovedError as e:
                snapshot = tables.find(each.table, each.expected, each.mark)  # by a process that was slower to end
                if snapshot is None:
                    raise self._refuse(e, tables, switched) from e
        done = replace(each, snapshot=snapshot)
        tables.report(done, switched)
        self._journal.move_step(self._epoch, step, StepState.DONE, done.to_detail())
        return done

    def _refuse(self, error: MainMovedError, tables: SwitchTables, switched: Mapping[str, int]) -> SwitchRefusedError:
        """Return what to say of a table that has moved. If nothing was switched yet, the correction is open again."""
        name = self._journal.name
        if not switched:
            self._undo(tables)
            return SwitchRefusedError(f"{error}. Nothing was switched: run `headwater correct run {name}` again")
        return SwitchRefusedError(
            f"{error}. {', '.join(switched)} switched already: take that back by `headwater correct switch {name} "
            f"--back`, and run `headwater correct run {name}` again"
        )

    def _return_table(self, tables: SwitchTables, each: TableSwitch) -> None:
        assert each.snapshot is not None  # noqa: S101 - it was switched
        assert each.expected is not None  # noqa: S101 - a table that was read has a snapshot
        mark = f"{each.mark}/back"
        snapshot = tables.find(each.table, each.snapshot, mark)
        if snapshot is None:
            try:
                snapshot = tables.go_back(each.table, each.expected, each.snapshot, mark)
            except MainMovedError as e:
                raise SwitchRefusedError(
                    f"{e}. It was written to after its switch, and going back would take that away: delete what has "
                    f"come, or write it to {each.expected}, and put that in its place by hand"
                ) from e
        tables.report_return(each.table, each.expected, each.snapshot, snapshot)
        self._report(f"{each.table} has the rows of {each.expected} again, at {snapshot}")


def streams_behind(found: Correction) -> dict[str, str]:
    """Return the checkpoints from which streams go on in production behind a switch that is through, by job."""
    done = (step for step in found.of(StepKind.RESUME) if step.state is StepState.DONE)
    return {step.subject: str(step.detail["to"]) for step in done if "to" in step.detail}


def running_jobs(connection: Connection, plan: CorrectionPlan, now: datetime | None = None) -> list[str]:
    """Return the jobs of a plan that the store knows to run now. What they have read before a switch, they may write
    after it. Aligned jobs aren't among them: fences stop these."""
    jobs = dict.fromkeys(job.job for job in plan.needed_jobs if job.kind is not JobKind.ALIGNED)
    return [job for job in jobs if any(run.alive for run in runs(connection, job, now=now))]


def _newest(found: Correction) -> Sequence[JournalStep]:
    """Return the steps of the newest switch that was begun, if it isn't undone."""
    steps = found.of(StepKind.SWITCH)
    return steps[-len(found.of(StepKind.MIRROR)) :] if found.state is not _OPEN else ()


def _moves_of(found: Correction) -> list[JournalStep]:
    """Return the steps that move jobs, of the newest switch that was begun."""
    first = min((step.number for step in _newest(found)), default=0)
    return [step for step in found.steps if step.kind in _MOVES and step.number > first > 0]


def _check_ready(found: Correction, tables: SwitchTables) -> list[TableSwitch]:
    """Return what has to be done for each table, or raise a SwitchRefusedError that says why nothing can be."""
    mirrors = {step.subject: step.detail for step in found.of(StepKind.MIRROR) if step.state is StepState.DONE}
    heads = {table: tables.head_of_mirror(table, detail["branch"]) for table, detail in mirrors.items()}
    run = f"run `headwater correct run {found.name}` again"
    missing = [table.table for table in found.plan.corrected if heads.get(table.table) is None]
    if missing:
        raise SwitchRefusedError(f"{found.name} has no mirror of {', '.join(missing)}: {run}")
    if unmade := _unmade_tables(found, heads[found.plan.source]):
        raise SwitchRefusedError(
            f"{', '.join(unmade)} of {found.name} isn't made from what the mirrors have now, so nothing was switched: "
            f"{run}"
        )
    if unread := unread_mirrors(found):
        raise SwitchRefusedError(
            f"{', '.join(unread)} of {found.name} hasn't read all that the mirrors have, so nothing was switched: {run}"
        )
    moved = []
    for table, detail in mirrors.items():
        now = tables.head_of_table(table)
        if now != detail["expected"]:
            moved.append(f"{table} is at {now}, and its mirror takes account of {detail['expected']}")
    if moved:
        words = f"production has gone on since {found.name} was run last, so nothing was switched: {run}."
        raise SwitchRefusedError("\n  - ".join([words, *moved]))
    if problems := [each for table in mirrors if (each := tables.problem(table, mirrors[table]["branch"]))]:
        raise SwitchRefusedError("\n  - ".join(["nothing was switched:", *problems]))
    return [
        TableSwitch(
            table.table,
            mirrors[table.table]["branch"],
            heads[table.table],
            mirrors[table.table]["expected"],
            f"headwater {found.name} {found.status.epoch} {table.table}",
            _made_since(found, table.table),
        )
        for table in found.plan.corrected
    ]


def _made_since(found: Correction, table: str) -> int:
    """Return when the jobs began that made a mirror as it is; 0 for the source, which no job made."""
    steps = [step for step in found.of(StepKind.RERUN) if table in step.detail["writes"]]
    if any(table in job.writes for job in found.plan.needed_jobs if job.job in forks_of(found)):
        return int(found.status.made_at.timestamp() * 1_000_000)  # a stream has gone on in each run
    if not steps or steps[-1].moved_at is None:
        return 0
    first = next((step for step in steps if step.number == steps[-1].detail.get("since")), steps[-1])
    ended = int((first.moved_at or steps[-1].moved_at).timestamp() * 1_000_000)
    return ended - int((float(first.detail.get("seconds", 0)) + 1) * 1_000_000)


def _unmade_tables(found: Correction, source_head: int | None) -> list[str]:
    """Return the tables whose jobs haven't run on what the mirrors of their inputs have now."""
    newest: dict[str, JournalStep] = {}
    for step in found.of(StepKind.RERUN):
        newest |= dict.fromkeys(step.detail["writes"], step)
    if any(step.state is not StepState.DONE for step in found.of(StepKind.TAKE_OVER)):
        return [found.plan.source]
    unmade = list[str]()
    for table in (each.table for each in found.plan.corrected if each.table != found.plan.source):
        made = newest.get(table)
        if made is None or made.state is not StepState.DONE:
            unmade.append(table)
            continue
        reads = made.detail["target"]["reads"]
        there = {each: source_head if each == found.plan.source else _number(newest.get(each)) for each in reads}
        if reads != there:
            unmade.append(table)
    return unmade


def _number(step: JournalStep | None) -> int | None:
    return None if step is None else step.number
