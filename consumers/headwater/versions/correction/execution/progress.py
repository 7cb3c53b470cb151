"""What the journal of a correction says of how far its mirrors are, and whether a job can go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.versions.correction.execution.stages import Stage
from headwater.versions.correction.execution.streams import is_cut
from headwater.versions.correction.execution.tables import Mirror
from headwater.versions.correction.journal import Correction
from headwater.versions.correction.model import CorrectionPlan, JobKind
from headwater.versions.step_journal import JournalStep, StepKind, StepState


def taken_until(found: Correction, source: Mirror) -> int:
    """Return the snapshot of the source up to which its commits were taken over."""
    done = [step for step in found.of(StepKind.TAKE_OVER) if step.state is StepState.DONE]
    if done:
        return int(done[-1].detail["until"])
    return found.plan.snapshot if is_cut(found) else source.begins_at_in_table


def made_by(found: Correction, stage: Stage, target: Mapping[str, Any]) -> int | None:
    """Return the step that has made what a stage writes, if that is as the stage would make it now."""
    last = _last_run(found, stage)
    is_there = last is not None and last.state is StepState.DONE and last.detail["target"] == target
    return last.number if last is not None and is_there else None


def continued_from(found: Correction, stage: Stage, target: Mapping[str, Any]) -> int | None:
    """Return the step that set the mirrors of aligned jobs back, if these can go on from what they have played since:
    what they read has only grown. None if they begin anew."""
    last = _last_run(found, stage)
    if last is None or last.state is not StepState.DONE or not stage.is_aligned or "since" not in last.detail:
        return None
    former = last.detail["target"]
    if former["commands"] != target["commands"] or set(former["reads"]) != set(target["reads"]):
        return None
    grown = all(_has_grown(found, table, former["reads"][table], now) for table, now in target["reads"].items())
    return int(last.detail["since"]) if grown else None


def is_read_by_aligned_jobs(plan: CorrectionPlan) -> bool:
    """Return whether an aligned job reads the table that the user corrects: then each of its later commits is taken
    over by itself, so that the job can read them one after the other."""
    return any(job.kind is JobKind.ALIGNED and plan.source in job.reads for job in plan.needed_jobs)


def _last_run(found: Correction, stage: Stage) -> JournalStep | None:
    steps = [step for step in found.of(StepKind.RERUN) if list(step.detail["writes"]) == list(stage.writes)]
    return steps[-1] if steps else None


def _has_grown(found: Correction, table: str, former: int, now: int) -> bool:
    """Return whether a mirror is what it was, or has only got rows since."""
    if former == now:
        return True
    if table == found.plan.source:
        at = former
        for step in found.of(StepKind.TAKE_OVER):
            if step.state is StepState.DONE and step.detail["before"] == at:
                at = step.detail["after"]
        return at == now
    steps = {step.number: step.detail.get("since") for step in found.of(StepKind.RERUN)}
    return steps.get(former) is not None and steps.get(former) == steps.get(now)
