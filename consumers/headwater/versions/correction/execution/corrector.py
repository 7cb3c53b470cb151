"""Begins, runs and ends a correction. What is done is in the journal before and after, so each step can be taken up by
another process; production's tables are only read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.store import Store
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.correction.execution.aligned_reruns import (
    AlignedRerun,
    aligned_reruns,
    check_played,
    reruns_of,
)
from headwater.versions.correction.execution.progress import (
    continued_from,
    is_read_by_aligned_jobs,
    made_by,
    taken_until,
)
from headwater.versions.correction.execution.redirects import mirrors_of, open_mirrors
from headwater.versions.correction.execution.reruns import CommandRunner
from headwater.versions.correction.execution.stages import Stage, estimate_work, obstacles_of, stages_of
from headwater.versions.correction.execution.streams import (
    StreamFork,
    StreamPlan,
    forks_of,
    is_cut,
    make_fork,
    plan_streams,
    remove_forks,
    require_all_read,
    streams_of,
    with_checkpoint,
)
from headwater.versions.correction.execution.tables import CorrectionError, CorrectionTables, Mirror, mirror_branch
from headwater.versions.correction.journal import Correction, CorrectionJournal, CorrectionState
from headwater.versions.correction.model import CorrectionPlan, PhaseDisplay, TableVerdict
from headwater.versions.correction.moved_jobs import remove_mirrored
from headwater.versions.step_journal import JournalStep, NewStep, StepKind, StepState

TablesOpener = Callable[[], AbstractContextManager[CorrectionTables]]
_BEGINNING, _OPEN = CorrectionState.BEGINNING, CorrectionState.OPEN
_ABORTING, _ABORTED = CorrectionState.ABORTING, CorrectionState.ABORTED
_POLL_SECONDS: Final = 1.0
_UNMADE: Final = -1
"""The version of a mirror that would be made."""


@dataclass(frozen=True)
class RunResult:
    """What a run of a correction did."""

    stages: tuple[str, ...]
    """The jobs that ran, in their order."""
    taken_over: int
    """How many commits of the source were taken over."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """The tables that production has written to since, each with its newest snapshot."""


@dataclass(frozen=True)
class RunPreview:
    """What a run would do first."""

    stages: tuple[tuple[str, bool], ...]
    """The jobs in their order, and whether they would run."""
    to_take_over: int


@dataclass(frozen=True)
class _Look:
    """What is there before a round."""

    plan: CorrectionPlan
    heads: dict[str, int | None]
    """Production's newest snapshots, which the round takes account of."""
    versions: dict[str, int]
    """Those of the mirrors: the source's newest snapshot, for others the step that made them last."""


@dataclass(frozen=True)
class _StageRun:
    """A run of a stage that is about to begin."""

    stage: Stage
    target: dict[str, Any]
    since: int | None
    """The step that set its mirrors back, if it goes on from there."""
    look: _Look
    is_final: bool

    def detail(self, aligned: Sequence[AlignedRerun]) -> dict[str, Any]:
        """Return it as the journal keeps it, with what aligned jobs have to know in their processes."""
        found: dict[str, Any] = {"target": self.target, "writes": list(self.stage.writes)}
        if aligned:
            found["aligned"] = [each.to_detail() for each in aligned]
            found["heads"] = {table: self.look.heads[table] for table in (*self.stage.reads, *self.stage.writes)}
            found["final"] = self.is_final
        return found


def begin_correction(
    store: Store,
    plan: CorrectionPlan,
    open_tables: TablesOpener,
    *,
    anyway: bool = False,
    report: Callable[[str], None] = lambda _: None,
    show: PhaseDisplay = lambda *_: None,
) -> Corrector:
    """Note a correction in the store and make its mirrors. A ConfigurationError names all that stands in its way."""
    if obstacles := obstacles_of(plan, anyway=anyway):
        raise ConfigurationError("\n  - ".join([f"{plan.source}@{plan.snapshot} can't be corrected:", *obstacles]))
    streams = StreamPlan()
    if streams_of(plan):
        with open_tables() as tables:
            streams = plan_streams(plan, tables)
    plan = streams.cut(plan)
    mirrors: list[NewStep] = [(StepKind.MIRROR, table.table, {}) for table in plan.corrected]
    journal = CorrectionJournal.create(store, plan, [*mirrors, *streams.steps()])
    report(f"{journal.name}: it is in the store; whatever happens, `headwater correct abort {journal.name}` removes it")
    corrector = Corrector(store, journal.name, open_tables, report, show)
    corrector.make_mirrors()
    return corrector


class Corrector:
    """Works on one correction, and takes it over from any other process that does."""

    def __init__(
        self,
        store: Store,
        name: str,
        open_tables: TablesOpener,
        report: Callable[[str], None] = lambda _: None,
        show: PhaseDisplay = lambda *_: None,
        *,
        epoch: int | None = None,
    ) -> None:
        """`epoch` is that of a caller who has taken the correction over already."""
        self._given_epoch: Final = epoch
        self._store: Final = store
        self._journal: Final = CorrectionJournal(store, name)
        self._open_tables: Final = open_tables
        self._report: Final = report
        self._show: Final = show

    @cached_property
    def _epoch(self) -> int:
        """The correction is taken over with the first write."""
        return self._journal.take_over() if self._given_epoch is None else self._given_epoch

    def load(self) -> Correction:
        return self._journal.load()

    def make_mirrors(self) -> None:
        """Make the mirrors that aren't there yet, and open the correction."""
        found = self.load()
        planned = {table.table: table for table in found.plan.corrected}
        steps = found.of(StepKind.MIRROR)
        with self._open_tables() as tables:
            for number, step in enumerate(steps, 1):
                if step.state is StepState.DONE:
                    continue
                running = self._running(step)
                mirror = tables.make_mirror(planned[step.subject], mirror_branch(found.name))
                self._journal.move_step(self._epoch, running, StepState.DONE, mirror.to_detail())
                self._report(f"mirror {number} of {len(steps)}: {mirror.name}")
                self._show("mirrors", "mirrors", number, len(steps))
            self._prepare_streams(tables)
        self._journal.move(self._epoch, [_BEGINNING], _OPEN)

    def _prepare_streams(self, tables: CorrectionTables) -> None:
        """Bring the mirrors that streams read up to what is right, and fork the streams' checkpoints for them."""
        mirrors = mirrors_of(self.load())
        for step in self.load().of(StepKind.CUT):
            if step.state is not StepState.DONE:
                self._add_rows(tables, mirrors[step.subject], step)
        for step in self.load().of(StepKind.FORK):
            if step.state is not StepState.DONE:
                running = self._running(step)
                fork = make_fork(StreamFork.from_step(step), self.load(), mirrors, tables)
                self._journal.move_step(self._epoch, running, StepState.DONE, fork.to_detail())
                self._report(f"the stream {fork.job} goes on behind its batch {fork.batch}: {fork.fork}")

    def run(
        self,
        run_command: CommandRunner,
        make_plan: Callable[[Correction], CorrectionPlan],
        *,
        most_rounds: int = 3,
        patience_seconds: float = 60.0,
        is_final: bool = False,
    ) -> RunResult:
        """Take over what production has added to the source, run the jobs that have to, and do so again for what
        production makes meanwhile: until nothing is left, or so many rounds are through.

        With `is_final` aligned jobs also read what isn't in any data version yet: theirs in production stand then.
        """
        if self.load().state is _BEGINNING:
            self.make_mirrors()
        open_mirrors(self.load())
        ran, taken = list[str](), 0
        for _ in range(most_rounds):
            with self._open_tables() as tables:
                taken += self._take_over(tables)
                look = self._look(tables, make_plan, patience_seconds)
            new = self._run_stages(look, run_command, is_final=is_final)
            self._note_expected(look)
            ran += new
            if not new:
                return RunResult(tuple(ran), taken)
        with self._open_tables() as tables:
            return RunResult(tuple(ran), taken, self._behind(tables))

    def preview(self, make_plan: Callable[[Correction], CorrectionPlan]) -> RunPreview:
        """Return what a run would do first, and change nothing."""
        found = self.load()
        mirrors = open_mirrors(found)
        source = mirrors[found.plan.source]
        with self._open_tables() as tables:
            later = tables.later_commits(source.table, taken_until(found, source))
            look = self._look(tables, make_plan, 0)
        if later.adds:
            look.versions[source.table] = _UNMADE
        stages = []
        for stage in stages_of(look.plan, mirrors):
            made = made_by(found, stage, self._target(stage, look, is_final=False))
            stages.append((stage.name, made is None))
            look.versions.update(dict.fromkeys(stage.writes, _UNMADE if made is None else made))
        return RunPreview(tuple(stages), later.count)

    def abort(self) -> None:
        """Remove all mirrors, and end the correction. Production is as if it had never been begun."""
        self._journal.move(self._epoch, [_BEGINNING, _OPEN, _ABORTING], _ABORTING)
        found = self.load()
        with self._open_tables() as tables:
            for step in reversed(found.of(StepKind.MIRROR)):
                if step.state is not StepState.PENDING:
                    tables.remove_mirror(step.subject, mirror_branch(found.name))
                    self._report(f"the mirror of {step.subject} is gone")
        for rerun in {rerun for step in found.of(StepKind.RERUN) for rerun in reruns_of(step)}:
            remove_mirrored(rerun.checkpoint, found.name)
        remove_forks(found)
        self._journal.move(self._epoch, [_ABORTING], _ABORTED)

    def _take_over(self, tables: CorrectionTables) -> int:
        """Add what production has added to the source since. Returns how many commits that were."""
        found = self.load()
        mirror = mirrors_of(found)[found.plan.source]
        for step in found.of(StepKind.TAKE_OVER):
            if step.state is not StepState.DONE:
                self._add_rows(tables, mirror, step)
        since = taken_until(self.load(), mirror)
        later = tables.later_commits(mirror.table, since)
        if later.obstacles:
            raise CorrectionError(
                f"production has changed rows of {mirror.table} meanwhile, which can't be taken over by adding rows: "
                f"{', '.join(later.obstacles)}. The correction of {found.name} is as it was. Abort it, and begin from "
                "the newest wrong snapshot"
            )
        ends = later.snapshots if is_read_by_aligned_jobs(found.plan) else (later.newest,)
        for until in ends if later.newest != since else ():
            count = 1 if len(ends) > 1 else later.count
            detail = {"since": since, "until": until, "commits": count}
            [step] = self._journal.add(self._epoch, [(StepKind.TAKE_OVER, mirror.table, detail)])
            self._add_rows(tables, mirror, step)
            self._report(f"{mirror.table}: took over {count} commits, up to snapshot {until}")
            since = until
        return later.count

    def _add_rows(self, tables: CorrectionTables, mirror: Mirror, step: JournalStep) -> None:
        """Add rows in one commit. Where the mirror was before and after it tells it from what the user commits."""
        running = self._running(step)
        if "before" not in running.detail:
            detail = {**running.detail, "before": tables.head_of_mirror(mirror)}
            running = self._journal.move_step(self._epoch, running, StepState.RUNNING, detail)
        mark = f"headwater-{self._journal.name}/{step.number}"
        made = tables.take_over(mirror, step.detail["since"], step.detail["until"], mark)
        detail = {**running.detail, "after": running.detail["before"] if made is None else made}
        self._journal.move_step(self._epoch, running, StepState.DONE, detail)

    def _look(
        self, tables: CorrectionTables, make_plan: Callable[[Correction], CorrectionPlan], patience: float
    ) -> _Look:
        """Plan the correction as things are now. The store may learn of a commit later than its table has it."""
        found = self.load()
        mirrors, until = mirrors_of(found), time.monotonic() + patience
        while True:
            plan = make_plan(found)
            _check_same_tables(found, plan)
            planned = {table.table: table.newest for table in plan.corrected}
            heads = {table: tables.head_of_table(table) for table in mirrors}
            unknown = [
                table
                for table, head in heads.items()
                if table != plan.source and head != planned[table] and _has_changed(tables, table, planned[table])
            ]
            if not unknown:
                break
            if time.monotonic() >= until:
                at = ", ".join(f"{table}@{heads[table]}" for table in unknown)
                raise CorrectionError(
                    f"the store doesn't know who made {at}: wait until its events have arrived, or let headwater look "
                    "into the table's own log (`headwater reconcile`), and run the correction again"
                )
            time.sleep(_POLL_SECONDS)
        source = mirrors[plan.source]
        _check_only_added(found, tables.changes_of_mirror(source) if is_cut(found) else ())
        heads[plan.source] = taken_until(found, source)
        return _Look(plan, heads, {plan.source: tables.head_of_mirror(source)})

    def _run_stages(self, look: _Look, run_command: CommandRunner, *, is_final: bool) -> list[str]:
        """Run the stages whose inputs, commands or production have changed since they ran last."""
        found = self.load()
        for step in found.of(StepKind.RERUN):
            if step.state in {StepState.PENDING, StepState.RUNNING}:  # its process died; it runs anew from its begin
                self._journal.move_step(self._epoch, step, StepState.FAILED, {**step.detail, "error": "interrupted"})
        mirrors, ran = mirrors_of(found), list[str]()
        stages = stages_of(look.plan, mirrors)
        unit, amounts = estimate_work(stages)
        for number, stage in enumerate(stages, 1):
            target = self._target(stage, look, is_final=is_final)
            made = made_by(found, stage, target)
            self._show("jobs", unit, sum(amounts[: number - 1]), sum(amounts))
            if made is None:
                run = _StageRun(stage, target, continued_from(self.load(), stage, target), look, is_final)
                made = self._run_stage(run, list(mirrors.values()), run_command, f"{number} of {len(stages)}")
                ran.append(stage.name)
            look.versions.update(dict.fromkeys(stage.writes, made))
            self._show("jobs", unit, sum(amounts[:number]), sum(amounts))
        return ran

    def _target(self, stage: Stage, look: _Look, *, is_final: bool) -> dict[str, Any]:
        """Return what a stage is run for; for aligned jobs that is also how far their groups are."""
        target = stage.target(look.versions, look.heads)
        groups = sorted({rerun.group for rerun in aligned_reruns(stage.jobs)})
        if groups:
            newest = {group: GroupClaims(self._store, group).newest() for group in groups}
            target["data versions"] = {group: found and found.number for group, found in newest.items()}
            target["final"] = is_final
        return target

    def _run_stage(self, run: _StageRun, mirrors: Sequence[Mirror], run_command: CommandRunner, place: str) -> int:
        """Run the commands of a stage, and return the number of its step."""
        stage, aligned = run.stage, aligned_reruns(run.stage.jobs)
        detail = run.detail(aligned)
        [step] = self._journal.add(self._epoch, [(StepKind.RERUN, stage.name, detail)])
        detail["since"] = step.number if run.since is None else run.since
        step = self._journal.move_step(self._epoch, step, StepState.RUNNING, detail)
        began = time.monotonic()
        forks = {job: fork for job, fork in forks_of(self.load()).items() if job in {each.job for each in stage.jobs}}
        checkpoints = {fork.checkpoint: fork.fork for fork in forks.values()}
        kept = {table for job in stage.jobs if job.job in forks for table in job.writes}  # a stream goes on in these
        try:
            for number, command in enumerate(stage.commands):
                self._report(f"jobs {place}: {stage.name}, command {number + 1} of {len(stage.commands)}: {command}")
                resets = tuple(table for table in stage.writes if table not in kept)
                given = with_checkpoint(command, forks)
                again = () if number or run.since is not None else resets
                run_command(
                    self._journal.name,
                    stage.name,
                    given,
                    mirrors,
                    again,
                    checkpoints=checkpoints,
                    should_continue=self._is_own,
                )
            for each in aligned:
                check_played(each, self._journal.name, detail["since"])
            require_all_read(forks.values())
        except CorrectionError as e:
            error = str(e).partition("\n")[0]
            self._journal.move_step(self._epoch, step, StepState.FAILED, {**detail, "error": error})
            raise
        seconds = round(time.monotonic() - began, 1)
        self._journal.move_step(self._epoch, step, StepState.DONE, {**detail, "seconds": seconds})
        self._report(f"jobs {place}: {stage.name}: done, {seconds} s")
        return step.number

    def _is_own(self) -> bool:
        """Return whether no other process has taken the correction over, as far as the store can be asked."""
        try:
            return self.load().status.epoch == self._epoch
        except TransientError:
            return True

    def _note_expected(self, look: _Look) -> None:
        """Note which snapshots production must still have for the mirrors to be what they stand for."""
        for step in self.load().of(StepKind.MIRROR):
            mirror = Mirror.from_detail(step.detail)
            if look.heads[mirror.table] != mirror.expected:
                new = replace(mirror, expected=look.heads[mirror.table])
                self._journal.move_step(self._epoch, step, step.state, new.to_detail())

    def _behind(self, tables: CorrectionTables) -> dict[str, int]:
        found = mirrors_of(self.load())
        heads = {table: tables.head_of_table(table) for table in found}
        return {table: head for table, head in heads.items() if head is not None and head != found[table].expected}

    def _running(self, step: JournalStep) -> JournalStep:
        if step.state is StepState.RUNNING:
            return step
        return self._journal.move_step(self._epoch, step, StepState.RUNNING)


def _has_changed(tables: CorrectionTables, table: str, known: int | None) -> bool:
    """Return whether a table's rows have changed since a snapshot: maintenance changes none."""
    if known is None:
        return True
    later = tables.later_commits(table, known)
    return later.adds or bool(later.obstacles)


def _check_only_added(correction: Correction, changes: Sequence[str]) -> None:
    """Raise an error if the rows of a mirror were changed that a stream reads."""
    if changes:
        raise CorrectionError(
            f"the mirror of {correction.plan.source} was changed by {', '.join(changes)}, and a stream reads it, which "
            f"ends at a change of rows: abort {correction.name}, begin it again, and INSERT the corrected rows alone. "
            "The mirror has none of the wrong ones"
        )


def _check_same_tables(correction: Correction, plan: CorrectionPlan) -> None:
    """Raise an error if other tables are wrong now than when the correction was begun."""
    there = {step.subject for step in correction.of(StepKind.MIRROR)}
    now = {table.table: table for table in plan.tables}
    left_out = {*correction.plan.left_out, *(table.table for table in correction.plan.uncorrectable)}
    found = [
        f"{table.table} is made from what is wrong, too, since then"
        for table in plan.corrected
        if table.table not in there | left_out
    ]
    for name in sorted(there):
        table = now.get(name)
        if table is None or table.verdict in {TableVerdict.RIGHT, TableVerdict.DROPPED}:
            found.append(f"{name} isn't wrong any more: it was made anew, or dropped")
        elif not table.is_corrected:
            found.append(f"{name} can't be corrected any more: {'; '.join(table.problems)}")
    found += [
        f"the job {job.job} makes {', '.join(sorted(there.intersection(job.writes)))} now, and has no command: add "
        f'[jobs."{job.job}"] run = "SCRIPT" to correction.toml'
        for job in plan.needed_jobs
        if not job.commands and not (there - {plan.source}).isdisjoint(job.writes)
    ]
    if found:
        words = (
            f"{correction.name} isn't what has to be corrected any more. Abort it and begin anew, unless it is a "
            "command that is missing:"
        )
        raise CorrectionError("\n  - ".join([words, *found]))
