"""Roll-backs in the journal of corrections: `r-20260301-orders-4f2a`, its plan, and what was done of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import Row, select

from headwater.events.clock import moment_of
from headwater.lineage.sql.writer_tables import CORRECTIONS
from headwater.lineage.store import Store
from headwater.versions.correction.journal import (
    ROLLBACK,
    CorrectionEntry,
    CorrectionState,
    CorrectionStep,
    StepKind,
    StepState,
    new_name,
    reading,
)
from headwater.versions.rollback.model import RollbackPlan

_PLAN: Final[TypeAdapter[RollbackPlan]] = TypeAdapter(RollbackPlan)
_UNDOES: Final = "undoes"
"""The number of the step that another one takes back."""


@dataclass(frozen=True, kw_only=True)
class RollbackStatus:
    """A roll-back without its plan and steps."""

    name: str
    source: str
    snapshot: int
    state: CorrectionState
    made_at: datetime
    moved_at: datetime


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """A roll-back, as the journal has it."""

    status: RollbackStatus
    plan: RollbackPlan
    steps: tuple[CorrectionStep, ...]

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def state(self) -> CorrectionState:
        return self.status.state

    @property
    def waiting(self) -> tuple[CorrectionStep, ...]:
        """The steps that aren't done. Once it is undone, only those that undo it count."""
        is_undone = self.state is not CorrectionState.ROLLING_BACK
        return tuple(
            step
            for step in self.steps
            if step.state is not StepState.DONE and (undone_by(step) is not None) is is_undone
        )


def undone_by(step: CorrectionStep) -> int | None:
    """Return the number of the step that a step takes back; None for one that rolls back."""
    found: int | None = step.detail.get(_UNDOES)
    return found


def undoing(step: CorrectionStep) -> Mapping[str, Any]:
    """Return what says that a step is taken back."""
    return {_UNDOES: step.number}


class RollbackJournal(CorrectionEntry):
    """The journal of one roll-back."""

    @classmethod
    def create(
        cls, store: Store, plan: RollbackPlan, steps: Sequence[tuple[StepKind, str, Mapping[str, Any]]]
    ) -> RollbackJournal:
        """Note a new roll-back with its steps."""
        journal = cls(store, new_name("r", plan.source))
        fields = {
            "source": plan.source,
            "snapshot": plan.snapshot,
            "mode": ROLLBACK,
            "plan": _PLAN.dump_json(plan).decode(),
        }
        journal.note(fields, CorrectionState.ROLLING_BACK, steps)
        return journal

    def load(self) -> Rollback:
        """Return the roll-back as it is now. A ConfigurationError if the store knows none of this name."""
        row, steps = self.read(is_rollback=True)
        return Rollback(status=_status(row), plan=_PLAN.validate_json(row.plan), steps=steps)


def rollbacks_in(store: Store) -> list[RollbackStatus]:
    """Return all roll-backs of a store, the newest first."""
    with reading(store) as connection:
        found = [_status(row) for row in connection.execute(select(CORRECTIONS).where(CORRECTIONS.c.mode == ROLLBACK))]
    return sorted(found, key=lambda each: (each.made_at, each.name), reverse=True)


def _status(row: Row[Any]) -> RollbackStatus:
    return RollbackStatus(
        name=row.name,
        source=row.source,
        snapshot=row.snapshot,
        state=CorrectionState(row.state),
        made_at=moment_of(row.made_at),
        moved_at=moment_of(row.moved_at),
    )
