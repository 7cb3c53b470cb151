"""How far mirrors are behind production: counted by hand, and what is said where the store doesn't know it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headwater.events.jobs import CommitKind
from headwater.lineage.store import Store
from headwater.versions.correction import plan_correction
from headwater.versions.correction.journal import Correction, CorrectionJournal, CorrectionState
from headwater.versions.correction.lag import MirrorLag, find_lags, next_command
from headwater.versions.step_journal import NewStep, StepKind, StepState
from tests.kit.lineage.scripted_producer import at
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import order_warehouse

ORDERS, DETAILS = "lake.db.orders", "lake.db.details"
UP_TO_DATE = MirrorLag(commits=0, behind=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


def begun(store: Store, story: StoryProducer, expected: dict[str, int]) -> CorrectionJournal:
    """Begin a correction whose mirrors take account of these snapshots."""
    with store.engine.begin() as connection:
        put(connection, story.events)
        plan = plan_correction(connection, "orders@4")
    mirrors: list[NewStep] = [(StepKind.MIRROR, table, {}) for table in expected]
    journal = CorrectionJournal.create(store, plan, mirrors)
    epoch = journal.take_over()
    for step in journal.load().steps:
        detail = {
            "table": step.subject,
            "branch": "correction_1",
            "name": f"{step.subject}.branch_correction_1",
            "begins_at": 1,
            "begins_at_in_table": 1,
            "expected": expected[step.subject],
        }
        journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)
    journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.OPEN)
    return journal


def lags_of(store: Store, found: Correction, minute: float) -> dict[str, MirrorLag]:
    with store.engine.connect() as connection:
        return find_lags(connection, found, at(minute))


def test_commits_count_that_a_mirror_has_nothing_of_and_maintenance_does_not(store: Store) -> None:
    """Two commits and a compaction of the orders come after the snapshot that the mirror takes account of, none of the
    details. The first of the two was made ten minutes ago."""
    story = order_warehouse()
    first = story.minute + 1
    story.commit("orders@6", parent=5, minute=first)
    story.commit("orders@7", parent=6, kind=CommitKind.COMPACT)
    story.commit("orders@8", parent=7)
    journal = begun(store, story, {ORDERS: 5, DETAILS: 3})
    found = journal.load()
    lags = lags_of(store, found, first + 10)
    assert lags == {ORDERS: MirrorLag(commits=2, behind=timedelta(minutes=10)), DETAILS: UP_TO_DATE}
    epoch = journal.take_over()
    detail = {"writes": [DETAILS], "target": {}}
    [step] = journal.add(epoch, [(StepKind.RERUN, "details", detail)])
    journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)
    name, found = journal.name, journal.load()
    words = f"headwater correct run {name}: production may have written to {ORDERS} since"
    assert next_command(found, lags) == words
    assert next_command(found, dict.fromkeys((ORDERS, DETAILS), UP_TO_DATE)) == (
        f"headwater correct diff {name}, then headwater correct switch {name}"
    )


def test_a_snapshot_that_nobody_reported_is_no_lag_of_nothing(store: Store) -> None:
    """The store has orders@5 as the newest, and the mirror takes account of a later one."""
    found = begun(store, order_warehouse(), {ORDERS: 9}).load()
    [lag] = lags_of(store, found, 60).values()
    assert (lag.commits, lag.behind, lag.is_behind) == (None, None, True)
    assert lag.problem == f"the store doesn't know what {ORDERS} got after 9"


def test_what_is_over_has_no_lag_and_nothing_to_do(store: Store) -> None:
    journal = begun(store, order_warehouse(), {ORDERS: 3})
    epoch = journal.take_over()
    for before, state in ((CorrectionState.OPEN, "ABORTING"), (CorrectionState.ABORTING, "ABORTED")):
        journal.move(epoch, [before], CorrectionState(state))
        found = journal.load()
        if state == "ABORTING":
            assert next_command(found, {}) == f"headwater correct abort {found.name}: mirrors are still to be removed"
    assert (lags_of(store, found, 60), next_command(found, {})) == ({}, None)
