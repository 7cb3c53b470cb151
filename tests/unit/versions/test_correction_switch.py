"""A switch makes each table's commit once, whenever its process is killed, or none where production has gone on.

The tables are kept in this process, so each point at which it may die is played; the formats' commits have tests of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headwater.errors import ConfigurationError
from headwater.events import CorrectionSwitched, Heartbeat, JobName, JobStarted, JobStatusChanged
from headwater.lineage.mapping import map_event
from headwater.lineage.questions.history import history
from headwater.lineage.store import Store
from headwater.testing.examples import CONTEXT
from headwater.versions.correction import CorrectionPlan, RerunCommand, RerunCommands, plan_correction
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState
from headwater.versions.correction.moved_jobs import SwitchRefusedError
from headwater.versions.correction.switching import Switcher, TableSwitch, running_jobs
from headwater.versions.step_journal import StepKind, StepState
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, place
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import RUNS, add_times, counted, order_warehouse
from tests.kit.versions.memory_correction import KilledError
from tests.kit.versions.memory_switch import MemorySwitchTables

ORDERS, DETAILS, TOP = "lake.db.orders", "lake.db.details", "lake.db.top10"
MOST_POINTS = 200


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> CorrectionPlan:
    story = order_warehouse()
    add_times(story, 20)
    commands = RerunCommands({job: RerunCommand(job, f"jobs/{job}.py") for job in ("details", "top10")})
    with (
        open_new_store(str(tmp_path_factory.mktemp("plan") / "store.db")) as store,
        store.engine.begin() as connection,
    ):
        put(connection, counted(story.events))
        found = plan_correction(connection, "orders@4", commands=commands, now=at(story.minute))
    return replace(found, tables=tuple(table for table in found.tables if table.table in {ORDERS, DETAILS, TOP}))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


def open_correction(store: Store, plan: CorrectionPlan, *, is_run: bool = True) -> tuple[str, MemorySwitchTables]:
    """A correction whose mirrors are there, and whose jobs have run on them."""
    names = [table.table for table in plan.corrected]
    assert names == [ORDERS, DETAILS, TOP]
    journal = CorrectionJournal.create(store, plan, [(StepKind.MIRROR, name, {}) for name in names])
    epoch = journal.take_over()
    for step in journal.load().steps:
        running = journal.move_step(epoch, step, StepState.RUNNING)
        journal.move_step(epoch, running, StepState.DONE, {"branch": "correction_1", "expected": 1})
    journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.OPEN)
    if is_run:
        add_run(journal, epoch, DETAILS, {ORDERS: 9})
        add_run(journal, epoch, TOP, {DETAILS: len(names) + 1})
    return journal.name, MemorySwitchTables(names)


def add_run(journal: CorrectionJournal, epoch: int, table: str, reads: dict[str, int]) -> None:
    detail = {"writes": [table], "target": {"reads": reads}, "seconds": 1.5}
    [step] = journal.add(epoch, [(StepKind.RERUN, table, detail)])
    journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)


def test_tables_are_switched_from_the_sources_on_and_each_knows_those_before(
    store: Store, plan: CorrectionPlan
) -> None:
    name, tables = open_correction(store, plan)
    switcher = Switcher(store, name, tables.opening)
    assert [each.table for each in switcher.preview()] == [ORDERS, DETAILS, TOP]
    assert (switcher.load().state, tables.rows()) == (CorrectionState.OPEN, {"old"})
    done = switcher.switch()
    assert [(each.table, each.snapshot) for each in done] == [(ORDERS, 2), (DETAILS, 2), (TOP, 2)]
    assert tables.reports == [(ORDERS, {}), (DETAILS, {ORDERS: 2}), (TOP, {ORDERS: 2, DETAILS: 2})]
    assert (switcher.load().state, tables.mirrors) == (CorrectionState.SWITCHED, {})
    assert tables.ends == [dict.fromkeys((ORDERS, DETAILS, TOP), (1, 2))]
    assert Switcher(store, name, tables.opening).switch() == done
    assert [table.head for table in tables.tables.values()] == [2, 2, 2]


@pytest.mark.slow
def test_a_switch_that_is_killed_anywhere_goes_on_and_makes_each_commit_once(
    store: Store, plan: CorrectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each commit, each report, each removal and each write of the journal."""
    points = 0
    for point in range(1, MOST_POINTS):
        name, tables = open_correction(store, plan)
        with monkeypatch.context() as patch:
            tables.kills.at = point
            tables.die_at_writes_of_the_journal(patch)
            try:
                Switcher(store, name, tables.opening).switch()
            except KilledError:
                points += 1
        tables.kills.at = None
        switcher = Switcher(store, name, tables.opening)
        switcher.switch()
        assert {each for table in tables.tables.values() for each in [table.head]} == {2}, point
        assert (tables.rows(), tables.mirrors) == ({"new"}, {}), point
        assert {table for table, _ in tables.reports} == {ORDERS, DETAILS, TOP}, point
        assert all(step.state is StepState.DONE for step in switcher.load().of(StepKind.SWITCH)), point
        assert {str(end) for end in tables.ends} == {str(dict.fromkeys((ORDERS, DETAILS, TOP), (1, 2)))}, point
        if tables.kills.count < point:
            break
    assert points > 20


@pytest.mark.slow
def test_a_switch_that_is_killed_anywhere_is_taken_back_and_may_be_killed_there_too(
    store: Store, plan: CorrectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third point, each with a kill of the way back at another one. Whoever would rather go on with the switch is
    refused then, unless nothing went back: a table with its former rows never counts as switched. Where all tables were
    switched, only the end is left."""
    taken = ended = 0
    for point in range(6, MOST_POINTS, 3):
        name, tables = open_correction(store, plan)
        with monkeypatch.context() as patch:
            tables.die_at_writes_of_the_journal(patch)
            tables.kills.at = point
            try:
                Switcher(store, name, tables.opening).switch()
                break
            except KilledError:
                pass
            tables.kills.at, tables.kills.count = point % 7 + 1, 0
            try:
                Switcher(store, name, tables.opening).go_back()
            except KilledError:
                pass
            except ConfigurationError:
                assert Switcher(store, name, tables.opening).load().state is CorrectionState.OPEN
            except SwitchRefusedError:
                ended += 1
        tables.kills.at = None
        switcher = Switcher(store, name, tables.opening)
        states = {step.state for step in switcher.load().of(StepKind.SWITCH)}
        if states == {StepState.DONE}:
            switcher.switch()
            assert (tables.rows(), switcher.load().state) == ({"new"}, CorrectionState.SWITCHED), point
            continue
        if switcher.load().state is CorrectionState.SWITCHING:
            if StepState.FAILED in states:
                with pytest.raises(SwitchRefusedError, match="is being undone"):
                    switcher.switch()
            switcher.go_back()
        assert (tables.rows(), switcher.load().state) == ({"old"}, CorrectionState.OPEN), point
        assert all(table.head in {1, 3} for table in tables.tables.values()), point
        assert tables.ends == [], point
        taken += any(table.head == 3 for table in tables.tables.values())
    assert taken > 3
    assert ended > 1


@pytest.mark.slow
def test_a_table_that_went_back_is_never_taken_for_switched(
    store: Store, plan: CorrectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way back is killed at each point, and then the user switches after all. The last table's switch was committed
    and not noted, so its commit is looked for: it is there, before the one that took it back."""
    refused = 0
    for point in range(1, MOST_POINTS):
        name, tables = open_correction(store, plan)

        def die_at_the_last_one(switch: TableSwitch, switched: object) -> None:
            if switch.table == TOP:
                raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(tables, "report", die_at_the_last_one)
            with pytest.raises(KilledError):
                Switcher(store, name, tables.opening).switch()
        with monkeypatch.context() as patch:
            tables.die_at_writes_of_the_journal(patch)
            tables.kills.at, tables.kills.count = point, 0
            try:
                Switcher(store, name, tables.opening).go_back()
                break
            except KilledError:
                pass
        tables.kills.at = None
        try:
            Switcher(store, name, tables.opening).switch()
            assert tables.rows() == {"new"}, point
        except SwitchRefusedError:
            refused += 1
    assert refused > 5


def test_production_that_went_on_since_the_last_run_stops_the_switch_before_anything_is_done(
    store: Store, plan: CorrectionPlan
) -> None:
    name, tables = open_correction(store, plan)
    tables.tables[DETAILS].commit("written by production")
    with pytest.raises(SwitchRefusedError, match=f"(?s)correct run {name}.*{DETAILS} is at 2, and its mirror .* of 1"):
        Switcher(store, name, tables.opening).switch()
    assert (tables.tables[ORDERS].head, Switcher(store, name, tables.opening).load().state.value) == (1, "OPEN")


@pytest.mark.parametrize("moved", [ORDERS, DETAILS])
def test_a_commit_within_the_window_stops_the_switch_and_is_kept(
    store: Store, plan: CorrectionPlan, moved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came after all tables were looked at. Of the first table nothing has to be taken back."""
    name, tables = open_correction(store, plan)
    switch = tables.switch

    def switch_late(each: TableSwitch) -> int:
        if each.table == moved:
            tables.tables[moved].commit("written by production")
        return switch(each)

    monkeypatch.setattr(tables, "switch", switch_late)
    switcher = Switcher(store, name, tables.opening)
    with pytest.raises(SwitchRefusedError, match=f"main of {moved} is at 2, and not at 1"):
        switcher.switch()
    assert switcher.load().state is (CorrectionState.OPEN if moved == ORDERS else CorrectionState.SWITCHING)
    if moved == DETAILS:
        assert tables.tables[ORDERS].rows == "new"
        assert [each.table for each in switcher.go_back()] == [ORDERS]
        assert switcher.load().state is CorrectionState.OPEN
    assert {tables.tables[table].rows for table in {ORDERS, DETAILS, TOP} - {moved}} == {"old"}
    assert tables.tables[moved].rows == "written by production"


def test_a_table_that_was_written_to_after_its_switch_is_not_taken_back(store: Store, plan: CorrectionPlan) -> None:
    name, tables = open_correction(store, plan)
    tables.kills.at = 4  # behind the first table's commit and report
    with pytest.raises(KilledError):
        Switcher(store, name, tables.opening).switch()
    tables.tables[ORDERS].commit("written by production")
    with pytest.raises(SwitchRefusedError, match="written to after its switch"):
        Switcher(store, name, tables.opening).go_back()
    assert tables.tables[ORDERS].rows == "written by production"


def test_mirrors_on_which_jobs_have_not_run_are_not_switched(store: Store, plan: CorrectionPlan) -> None:
    """Production's tables would be empty, or made from rows that were corrected again since."""
    name, tables = open_correction(store, plan, is_run=False)
    with pytest.raises(SwitchRefusedError, match=f"{DETAILS}, {TOP} of {name} isn't made from what the mirrors have"):
        Switcher(store, name, tables.opening).switch()
    journal = CorrectionJournal(store, name)
    epoch = journal.take_over()
    add_run(journal, epoch, DETAILS, {ORDERS: 8})
    add_run(journal, epoch, TOP, {DETAILS: 4})
    with pytest.raises(SwitchRefusedError, match=f"^{DETAILS} of {name}"):
        Switcher(store, name, tables.opening).preview()
    tables.mirrors.pop(TOP)
    with pytest.raises(SwitchRefusedError, match=f"has no mirror of {TOP}"):
        Switcher(store, name, tables.opening).preview()
    assert tables.rows() == {"old"}


def test_jobs_of_the_chain_that_still_run_are_known(store: Store, plan: CorrectionPlan) -> None:
    """What they have read before a switch, they would write after it."""
    story = order_warehouse()
    for job in ("details", "top10"):
        about: dict[str, Any] = {"job": JobName(name=job), "run": UUID(int=RUNS[job])}
        story.emit(1, JobStarted, job_type="BATCH", **about)
        status = "FINISHED" if job == "top10" else "RUNNING"
        story.emit(story.minute, JobStatusChanged, status=status, **about)
    story.emit(story.minute, Heartbeat, interval=60)
    with store.engine.begin() as connection:
        put(connection, story.events)
        assert running_jobs(connection, plan, at(story.minute)) == ["details"]
        assert running_jobs(connection, plan, at(story.minute + 24 * 60)) == []


def test_who_goes_on_with_a_switch_reports_its_end_again_and_the_history_has_it_once(store: Store) -> None:
    """The process that was killed was another producer. It finds a second entry for what happened once, and one entry
    for what happened to two tables."""
    orders = place("orders")["table"]
    why = {"correction": "c-20260301-orders-4f2a", "wrong_table": orders, "wrong_snapshot": 4}
    for number, minute in ((1, 5), (2, 3), (3, 9)):
        for table in ("orders", "details"):
            about = {"context": CONTEXT, "identifier": place(table)["table"], "dataset": dataset(table), **why}
            moved = {"mirror": "correction_1", "previous_snapshot": 7, "snapshot": 9}
            event = ScriptedProducer(number).emit(minute, CorrectionSwitched, **about, **moved)
            store.merge(map_event(event))
    with store.engine.connect() as connection:
        [entry] = history(connection, "lake.sales.details").rows
    assert (entry.kind, entry.at, entry.changes) == (
        *("CorrectionSwitched", at(3)),
        ("corrected by c-20260301-orders-4f2a, since lake.sales.orders@4 was wrong: from 7 to 9",),
    )
