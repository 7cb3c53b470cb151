"""Roll-backs in the journal: `r-20260301-orders-4f2a`, its plan, and what was done of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import TypeAdapter

from headwater.lineage.store import Store
from headwater.versions.rollback.model import RollbackPlan
from headwater.versions.step_journal import (
    ROLLBACK,
    EntryState,
    EntryStatus,
    JournalStep,
    StepJournal,
    StepJournalEntry,
    StepState,
    statuses_in,
)

_UNDOES: Final = "undoes"
"""The number of the step that another one takes back."""


class RollbackState(EntryState):
    """How far a roll-back is."""

    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"
    UNDOING = "UNDOING"
    UNDONE = "UNDONE"

    @property
    def is_over(self) -> bool:
        return self in {RollbackState.ROLLED_BACK, RollbackState.UNDONE}


Rollback = StepJournalEntry[RollbackPlan, RollbackState]
RollbackStatus = EntryStatus[RollbackState]


class RollbackJournal(StepJournal[RollbackPlan, RollbackState]):
    """The journal of one roll-back."""

    what: ClassVar = "roll-back"
    prefix: ClassVar = "r"
    is_rollback: ClassVar = True
    plans = TypeAdapter(RollbackPlan)
    states = RollbackState

    def mode_of(self, plan: RollbackPlan) -> str:  # noqa: ARG002 - corrections have several modes
        return ROLLBACK


def waiting_steps(found: Rollback) -> tuple[JournalStep, ...]:
    """Return the steps that aren't done. Once a roll-back is undone, only those that undo it count."""
    is_undone = found.state is not RollbackState.ROLLING_BACK
    return tuple(
        step for step in found.steps if step.state is not StepState.DONE and (undone_by(step) is not None) is is_undone
    )


def undone_by(step: JournalStep) -> int | None:
    """Return the number of the step that a step takes back; None for one that rolls back."""
    found: int | None = step.detail.get(_UNDOES)
    return found


def undoing(step: JournalStep) -> Mapping[str, Any]:
    """Return what says that a step is taken back."""
    return {_UNDOES: step.number}


def rollbacks_in(store: Store) -> list[RollbackStatus]:
    """Return all roll-backs of a store, the newest first."""
    return statuses_in(store, RollbackState, is_rollback=True)
