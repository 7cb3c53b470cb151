"""Corrections in the journal: `c-20260301-orders-4f2a`, its plan, and what was done of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from pydantic import TypeAdapter
from sqlalchemy import Connection, select

from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.writer_tables import CORRECTIONS
from headwater.lineage.store import Store
from headwater.versions.correction.model import CorrectionPlan
from headwater.versions.step_journal import (
    EntryState,
    EntryStatus,
    StepJournal,
    StepJournalEntry,
    entry_id,
    statuses_in,
)


class CorrectionState(EntryState):
    """How far a correction is."""

    BEGINNING = "BEGINNING"
    """Its mirrors are being made."""
    OPEN = "OPEN"
    """Its mirrors are there: rows are corrected, and jobs run on them."""
    SWITCHING = "SWITCHING"
    SWITCHED = "SWITCHED"
    ABORTING = "ABORTING"
    ABORTED = "ABORTED"

    @property
    def is_over(self) -> bool:
        return self in {CorrectionState.SWITCHED, CorrectionState.ABORTED}


Correction = StepJournalEntry[CorrectionPlan, CorrectionState]
CorrectionStatus = EntryStatus[CorrectionState]


class CorrectionJournal(StepJournal[CorrectionPlan, CorrectionState]):
    """The journal of one correction."""

    what: ClassVar = "correction"
    prefix: ClassVar = "c"
    is_rollback: ClassVar = False
    plans = TypeAdapter(CorrectionPlan)
    states = CorrectionState

    def mode_of(self, plan: CorrectionPlan) -> str:
        return plan.mode.value


def corrections_in(store: Store) -> list[CorrectionStatus]:
    """Return all corrections of a store, the newest first."""
    return statuses_in(store, CorrectionState, is_rollback=False)


def corrections_of(connection: Connection, names: Collection[str]) -> dict[str, CorrectionState]:
    """Return the states of the corrections with these names, as far as there are such."""
    row = CORRECTIONS.c
    rows = select_by_keys(connection, select(row.name, row.state), row.id, map(entry_id, names))
    return {each.name: CorrectionState(each.state) for each in rows}
