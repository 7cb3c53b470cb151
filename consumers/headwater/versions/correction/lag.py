"""How far the mirrors of a correction are behind production, as the store knows it, and what is to be done next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of, wall_micros
from headwater.versions.commit_lines import keeps_rows
from headwater.versions.correction.execution.redirects import mirrors_of
from headwater.versions.correction.journal import Correction, CorrectionState
from headwater.versions.rollback.lost_commits import find_lost
from headwater.versions.step_journal import JournalStep, StepKind, StepState
from headwater.versions.version_question import VersionQuestion, named_version


@dataclass(frozen=True, kw_only=True)
class MirrorLag:
    """What a mirror doesn't take account of yet."""

    commits: int | None
    """How many of production's commits; None if the store doesn't know what came after the last one that it does."""
    behind: timedelta | None
    """How long ago the first of them was made; nothing if there is none."""
    problem: str | None = None
    """Why that isn't known."""

    @property
    def is_behind(self) -> bool:
        return self.commits != 0


def find_lags(connection: Connection, found: Correction, now: datetime | None = None) -> dict[str, MirrorLag]:
    """Return the lag of each mirror that is there, by table. Of a correction that is over, nothing."""
    if found.state.is_over:
        return {}
    moment = moment_of(wall_micros()) if now is None else now
    return {
        table: _lag_of(connection, table, mirror.expected, moment)
        for table, mirror in mirrors_of(found).items()
        if mirror.expected is not None
    }


def _lag_of(connection: Connection, table: str, expected: int, now: datetime) -> MirrorLag:
    question = VersionQuestion(connection, None)
    try:
        [head] = question.starts([named_version(connection, table)])
    except ConfigurationError as e:
        return MirrorLag(commits=None, behind=None, problem=str(e))
    question.reader.histories.load([head])
    later = find_lost(question.reader, head, head._replace(snapshot=expected))
    if later.problem is not None:
        problem = f"the store doesn't know what {table} got after {expected}"
        return MirrorLag(commits=None, behind=None, problem=problem)
    changes = [write for write in later.writes if not keeps_rows([write])]
    numbers = {write.snapshot for write in changes} | later.unreported
    first = min((write.at for write in changes), default=None)
    return MirrorLag(commits=len(numbers), behind=None if first is None else max(now - moment_of(first), timedelta()))


def next_command(found: Correction, lags: Mapping[str, MirrorLag]) -> str | None:
    """Return what is to be done next, and why; None if the correction is over."""
    name = found.name
    if found.state is CorrectionState.BEGINNING:
        waiting = sum(step.state is not StepState.DONE for step in found.of(StepKind.MIRROR))
        return f"headwater correct run {name}: {waiting} mirrors are still to be made"
    if found.state is CorrectionState.SWITCHING:
        steps = found.of(StepKind.SWITCH)[-len(found.of(StepKind.MIRROR)) :]
        done = sum(step.state is StepState.DONE for step in steps)
        back = any(step.state is StepState.FAILED for step in steps)
        what = "it is being taken back" if back else f"{done} of {len(steps)} tables are switched"
        return f"headwater correct switch {name}{' --back' if back else ''}: {what}"
    if found.state is CorrectionState.ABORTING:
        return f"headwater correct abort {name}: mirrors are still to be removed"
    return None if found.state.is_over else _next_of_open(found, lags)


def _next_of_open(found: Correction, lags: Mapping[str, MirrorLag]) -> str:
    name, newest = found.name, dict[str, JournalStep]()
    for step in found.of(StepKind.RERUN):
        newest |= dict.fromkeys(step.detail["writes"], step)
    if not newest:
        return f"headwater correct sql {name} …, to correct the rows, then headwater correct run {name}"
    for step in newest.values():
        if step.state is not StepState.DONE:
            why = step.detail.get("error") or "it was interrupted"
            return f"headwater correct run {name}: {step.subject} isn't done: {why}"
    if behind := [table for table, lag in lags.items() if lag.is_behind]:
        return f"headwater correct run {name}: production may have written to {', '.join(behind)} since"
    return f"headwater correct diff {name}, then headwater correct switch {name}"
