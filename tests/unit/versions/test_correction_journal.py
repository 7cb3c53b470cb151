"""The journal of corrections: steps are moved by one process at a time, and what is read is what was written.

Compare-and-set is what keeps a second corrector from doing a step twice; nothing else would notice a lost one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError
from headwater.lineage.store import Store
from headwater.versions.correction import CorrectionPlan, RerunCommand, RerunCommands, plan_correction
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState, corrections_in, corrections_of
from headwater.versions.step_journal import NewStep, StepKind, StepState, TakenOverError
from tests.kit.lineage.scripted_producer import at
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import add_times, counted, order_warehouse

BEGINNING, OPEN, SWITCHING = CorrectionState.BEGINNING, CorrectionState.OPEN, CorrectionState.SWITCHING


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def plan(store: Store) -> CorrectionPlan:
    story = order_warehouse()
    add_times(story, 20)
    commands = RerunCommands({"details": RerunCommand("details", "jobs/details.py {date}")})
    with store.engine.begin() as connection:
        put(connection, counted(story.events))
        return plan_correction(connection, "orders@4", commands=commands, now=at(story.minute))


@pytest.fixture
def journal(store: Store, plan: CorrectionPlan) -> CorrectionJournal:
    mirrors: list[NewStep] = [(StepKind.MIRROR, table.table, {}) for table in plan.corrected]
    return CorrectionJournal.create(store, plan, mirrors)


def test_a_correction_is_read_as_it_was_written(journal: CorrectionJournal, plan: CorrectionPlan, store: Store) -> None:
    """It finds a part of the plan that doesn't survive JSON: commands, durations, times and limits among them."""
    found = CorrectionJournal(store, journal.name).load()
    assert found.plan == plan
    assert plan.needed_jobs[0].commands
    assert plan.needed_jobs[0].last_duration is not None
    assert found.state is BEGINNING
    assert [(step.number, step.kind, step.subject, step.state) for step in found.steps] == [
        (number, StepKind.MIRROR, table.table, StepState.PENDING) for number, table in enumerate(plan.corrected, 1)
    ]
    assert journal.name.startswith("c-")
    assert "-orders-" in journal.name
    assert corrections_in(store) == [found.status]
    with store.engine.connect() as connection:
        assert corrections_of(connection, [journal.name, "c-other"]) == {journal.name: BEGINNING}


def test_steps_move_and_keep_what_came_out(journal: CorrectionJournal) -> None:
    epoch = journal.take_over()
    first = journal.load().steps[0]
    running = journal.move_step(epoch, first, StepState.RUNNING, {"expected": 5})
    done = journal.move_step(epoch, running, StepState.DONE)
    assert journal.load().steps[0] == done
    assert dict(done.detail) == {"expected": 5}
    count = len(journal.load().steps)
    added = journal.add(epoch, [(StepKind.RERUN, "details", {"command": "jobs/détails.py"})])
    assert [step.number for step in added] == [count + 1]
    assert [dict(step.detail) for step in journal.load().of(StepKind.RERUN)] == [{"command": "jobs/détails.py"}]


def test_who_was_taken_over_from_changes_nothing(journal: CorrectionJournal) -> None:
    old = journal.take_over()
    new = journal.take_over()
    before = journal.load()
    with pytest.raises(TakenOverError, match="another process works on c-"):
        journal.move_step(old, before.steps[0], StepState.RUNNING)
    with pytest.raises(TakenOverError):
        journal.add(old, [(StepKind.RERUN, "details", {})])
    with pytest.raises(TakenOverError):
        journal.move(old, [BEGINNING], OPEN)
    assert journal.load() == before
    journal.move(new, [BEGINNING], OPEN)
    assert journal.load().state is OPEN


def test_a_step_that_another_one_moved_isnt_moved_again(journal: CorrectionJournal) -> None:
    """With the same epoch: a caller that holds a step as it was before."""
    epoch = journal.take_over()
    step = journal.load().steps[0]
    journal.move_step(epoch, step, StepState.RUNNING)
    with pytest.raises(TakenOverError, match="isn't PENDING any more"):
        journal.move_step(epoch, step, StepState.RUNNING)


def test_a_state_that_isnt_expected_is_refused(journal: CorrectionJournal) -> None:
    epoch = journal.take_over()
    with pytest.raises(ConfigurationError, match="is BEGINNING, and only what is OPEN can become SWITCHING"):
        journal.move(epoch, [OPEN], SWITCHING)
    assert journal.load().state is BEGINNING


def test_a_correction_that_isnt_there(store: Store, journal: CorrectionJournal) -> None:
    with pytest.raises(ConfigurationError, match=f"no correction c-x: corrections that aren't over are {journal.name}"):
        CorrectionJournal(store, "c-x").load()
    with pytest.raises(ConfigurationError, match="no correction c-x"):
        CorrectionJournal(store, "c-x").take_over()


def test_a_name_that_is_taken_is_not_given_again(
    store: Store, journal: CorrectionJournal, plan: CorrectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names have four random digits: of 300 corrections of a table on one day two would have the same one."""
    drawn = iter([journal.name[-4:], journal.name[-4:], "zzzz"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(drawn))
    assert CorrectionJournal.create(store, plan, []).name == f"{journal.name[:-4]}zzzz"
