"""Fences: marks in the store at which the jobs of a group stop between two barriers, while a correction is switched.

A job tells the store that it works on a barrier, and looks for a fence then; who sets a fence looks for such jobs then.
So one of the two sees the other.

Until the first table is switched a fence counts only while its process renews it: if that dies, jobs go on by
themselves. From then on it stays until the switch is through or taken back, since the tables are of two minds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from headwater.events.clock import wall_micros
from headwater.lineage.sql.writer_tables import CORRECTION_STEPS, CORRECTIONS

LEASE_SECONDS: Final = 60.0
"""How long a fence counts without being renewed."""
FENCE: Final = "FENCE"
"""The kind of a fence's step in the journal; it is RUNNING while the fence stands."""
_LEASED, _FIRM = "OPEN", "SWITCHING"
_CORRECTION: Final = CORRECTIONS.c
_STEP: Final = CORRECTION_STEPS.c


@dataclass(frozen=True)
class JobFence:
    """A fence that stands."""

    group: str
    correction: str
    is_firm: bool
    """Whether tables are being switched, so that it stays whatever becomes of the process."""

    def __str__(self) -> str:
        if self.is_firm:
            return (
                f"the group {self.group} stands still while {self.correction} is switched. If nobody does that any "
                f"more, go on with it: `headwater correct switch {self.correction}`, or take it back by --back"
            )
        return (
            f"the group {self.group} stands still, since {self.correction} is about to be switched. It goes on "
            f"{LEASE_SECONDS:.0f} seconds after that process has died, at the latest"
        )


def find_fence(connection: Connection, group: str) -> JobFence | None:
    """Return the fence of a group; None if none stands."""
    chosen = select(_CORRECTION.id, _CORRECTION.name, _CORRECTION.state).where(_CORRECTION.state.in_([_LEASED, _FIRM]))
    for correction in connection.execute(chosen).all():
        steps = select(_STEP.subject, _STEP.moved_at).where(
            _STEP.correction_id == correction.id, _STEP.kind == FENCE, _STEP.state == "RUNNING"
        )
        for step in connection.execute(steps):
            is_firm = correction.state == _FIRM
            is_renewed = step.moved_at + LEASE_SECONDS * 1_000_000 > wall_micros()
            if step.subject == group and (is_firm or is_renewed):
                return JobFence(group, correction.name, is_firm)
    return None
