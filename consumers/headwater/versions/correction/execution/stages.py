"""Which jobs run on the mirrors, in which order, and which have to run again.

Jobs that write a table together, or are run by one command, are one stage: its mirrors are set back to where they
began, and all of its commands run. So what a stage makes depends on what it reads alone, however often it was begun.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.errors import ConfigurationError
from headwater.lineage.questions.commit_facts import total
from headwater.versions.correction.execution.streams import obstacles_of_streams
from headwater.versions.correction.model import CorrectionMode, CorrectionPlan, JobKind, PlannedJob


@dataclass(frozen=True)
class Stage:
    """Jobs that run one after the other."""

    jobs: tuple[PlannedJob, ...]
    writes: tuple[str, ...]
    """The tables whose mirrors they write."""
    reads: tuple[str, ...]
    """The other tables whose mirrors they read."""

    @property
    def name(self) -> str:
        return ", ".join(job.job for job in self.jobs)

    @property
    def commands(self) -> tuple[str, ...]:
        """Each command once: the steps of an application have those of their application."""
        return tuple(dict.fromkeys(command for job in self.jobs for command in job.commands))

    @property
    def is_aligned(self) -> bool:
        """Whether only aligned jobs make its mirrors, which then go on where they are, as long as these only grow."""
        return all(job.kind is JobKind.ALIGNED for job in self.jobs)

    def target(self, versions: Mapping[str, int], heads: Mapping[str, int | None]) -> dict[str, Any]:
        """Return what the stage is run for: if that is as it was, it needn't run again. `versions` are those of the
        mirrors that it reads, `heads` what production has made of the tables that it writes."""
        return {
            "commands": list(self.commands),
            "reads": {table: versions[table] for table in self.reads},
            "production": {table: heads[table] for table in self.writes},
        }


def stages_of(plan: CorrectionPlan, tables: Collection[str]) -> list[Stage]:
    """Return the stages that make these tables, each after those whose tables it reads. No job makes the source, which
    the user corrects: what others add to it is taken over."""
    made = set(tables) - {plan.source}
    jobs = [job for job in plan.needed_jobs if not made.isdisjoint(job.writes)]
    return _ordered([_stage(group, made, plan.source) for group in _groups(jobs, made)])


def estimate_work(stages: Sequence[Stage]) -> tuple[str, list[int]]:
    """Return what can be counted of stages, and how much each makes by the plan: rows where those of all are known,
    else the commits that are made again."""
    written = [total(job.written for job in stage.jobs) for stage in stages]
    if all(each.rows and not each.unknown for each in written):
        return "rows", [each.rows for each in written]
    return "commits", [sum(job.commits for job in stage.jobs) for stage in stages]


def obstacles_of(plan: CorrectionPlan, *, anyway: bool) -> list[str]:
    """Return why a plan can't be carried out, each with what to do. With `anyway` tables may stay wrong."""
    found = []
    if not plan.corrected:
        found.append(f"nothing is wrong any more: {plan.source} and all that is made from it is right, or was dropped")
    found += [f"{job.job} {_without_command(job, plan.mode)}" for job in plan.needed_jobs if not job.commands]
    found += obstacles_of_streams(plan)
    found += [
        f"several groups have an aligned job {job.job}, and which of them wrote what is wrong isn't known: leave its "
        "tables out by --only"
        for job in plan.needed_jobs
        if job.kind is JobKind.ALIGNED and job.checkpoint is None
    ]
    found += [
        f"{job.job} changed rows of {plan.source} after the snapshot {plan.snapshot}, which can't be taken over by "
        f"adding rows: plan the correction from the snapshot behind that, or correct {plan.source} on a branch of yours"
        for job in plan.needed_jobs
        if plan.source in job.writes
    ]
    if not anyway:
        found += [
            f"{table.table} stays wrong ({'; '.join(table.problems)}): say --anyway to correct the rest nevertheless"
            for table in plan.uncorrectable
        ]
    if not found:
        stages_of(plan, [table.table for table in plan.corrected])
    return found


def _without_command(job: PlannedJob, mode: CorrectionMode) -> str:
    is_replaced = job.kind is JobKind.STREAM and mode is CorrectionMode.FULL
    what = "is a stream, and in full a batch script does its work" if is_replaced else "has no command"
    return f'{what}: add [jobs."{job.job}"] run = "SCRIPT" to correction.toml'


def _groups(jobs: Sequence[PlannedJob], tables: Collection[str]) -> list[list[PlannedJob]]:
    """Return the jobs by what they write together, in the plan's order."""
    groups: list[list[PlannedJob]] = []
    for job in jobs:
        joined = [group for group in groups if any(_belong_together(job, other, tables) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(other for group in joined for other in group), job])
    place = {id(job): number for number, job in enumerate(jobs)}
    return [sorted(group, key=lambda job: place[id(job)]) for group in groups]


def _belong_together(one: PlannedJob, other: PlannedJob, tables: Collection[str]) -> bool:
    """Return whether two jobs write a table together, or are steps of one application, which runs as a whole."""
    writes = any(table in other.writes for table in one.writes if table in tables)
    return writes or not set(one.commands).isdisjoint(other.commands)


def _stage(jobs: Sequence[PlannedJob], made: Collection[str], source: str) -> Stage:
    writes = {table for job in jobs for table in job.writes if table in made}
    reads = {table for job in jobs for table in job.reads if table in {*made, source}} - writes
    return Stage(tuple(jobs), tuple(sorted(writes)), tuple(sorted(reads)))


def _ordered(stages: Sequence[Stage]) -> list[Stage]:
    waiting, found = list(stages), list[Stage]()
    while waiting:
        unmade = {table for stage in waiting for table in stage.writes}
        ready = [stage for stage in waiting if unmade.isdisjoint(stage.reads)]
        if not ready:
            names = "; ".join(stage.name for stage in waiting)
            raise ConfigurationError(
                f"these jobs read what the others write, so there is no order in which each could run once: {names}. "
                "Leave one of their tables out by --only"
            )
        found += ready
        waiting = [stage for stage in waiting if stage not in ready]
    return found
