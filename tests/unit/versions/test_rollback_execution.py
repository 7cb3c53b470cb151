"""What a roll-back does, step by step: guarded, interrupted anywhere and gone on with, and taken back.

The tables are kept in this process. What the formats do is played on the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import ConfigurationError, TerminalError
from headwater.lineage.store import Store
from headwater.versions.aligned import checkpoints
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint, JobStart
from headwater.versions.aligned.claims import GroupClaims, JobTakenOverError
from headwater.versions.correction.journal import corrections_in
from headwater.versions.cuts import Cut, TableSnapshot
from headwater.versions.rollback import (
    RollbackJournal,
    RollbackPlan,
    RollbackRefusedError,
    RollbackRun,
    RollbackState,
    begin_rollback,
    plan_rollback,
    rollbacks_in,
    session_tables,
)
from headwater.versions.step_journal import JournalStep, StepState
from tests.kit.lineage.scripted_producer import at
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.stores import open_new_store
from tests.kit.versions.corrections import order_warehouse
from tests.kit.versions.memory_tables import DETAILS, ORDERS, REVENUE, KilledError, MemoryTables

GROUP, JOB = "shop", "details"


def _die(*_: Any, **__: Any) -> None:
    raise KilledError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        with opened.engine.begin() as connection:
            put(connection, order_warehouse())
        yield opened


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables()


def plan_of(store: Store, asked: Any = "orders@3") -> RollbackPlan:
    with store.engine.connect() as connection:
        return plan_rollback(connection, asked, is_chain=True, now=at(30))


@pytest.fixture
def checkpoint(store: Store, tmp_path: Path) -> Checkpoint:
    """Of the job that makes details: data version 1 is orders@3, and it wrote details@1; 2 is orders@5."""
    found = Checkpoint(str(tmp_path / "checkpoint"))
    found.write_start(JobStart(JOB, GROUP, {"orders": ORDERS}, 1, None, "newest", "first"))
    claims = GroupClaims(store, GROUP)
    claims.enter([ORDERS])
    before = None
    for number, (orders, details) in enumerate(((3, None), (5, 1)), 1):
        cut = Cut({ORDERS: TableSnapshot(orders, "1")})
        claims.claim(number, cut, JOB)
        found.write(Barrier(number, cut, before, True, {f"{DETAILS} 1": details}))
        before = cut
    epoch = claims.take_over(JOB, found.location)
    claims.move(JOB, epoch, done=2, running=None)
    return found


def test_tables_go_back_from_the_sources_on(store: Store, tables: MemoryTables) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    done = RollbackRun(store, tables, journal.name).resume()
    assert tables.rows == [3, 1, 1]
    assert tables.reported == [(ORDERS, 3, 6), (DETAILS, 1, 4), (REVENUE, 1, 3)]
    assert (done.state, done.plan) == (RollbackState.ROLLED_BACK, plan_of(store))
    assert {step.state for step in done.steps} == {StepState.DONE}
    assert [each.name for each in rollbacks_in(store)] == [journal.name]
    assert corrections_in(store) == []


def test_the_code_of_the_guide_rolls_back(
    store: Store, tables: MemoryTables, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It finds a name or an argument of the page that isn't there any more."""
    page = (Path(__file__).parents[3] / "docs/rollback.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.setattr("headwater.lineage.store.open_store", lambda _: nullcontext(store))
    monkeypatch.setattr(session_tables, "SessionTables", lambda *_: tables)
    exec(code, {"spark": None})  # noqa: S102 - it is the guide's
    said = capsys.readouterr().out
    assert "lake.db.orders: from 5 back to 3" in said
    assert "RollbackState.ROLLED_BACK" in said
    assert tables.rows == [3, 1, 1]


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("table", [ORDERS, DETAILS, REVENUE])
def test_who_is_killed_goes_on_there(store: Store, tables: MemoryTables, table: str, where: str) -> None:
    """Each table gets one commit, and each commit is told of."""
    journal = begin_rollback(store, tables, plan_of(store))
    tables.by_name[table].dies = where
    with pytest.raises(KilledError):
        RollbackRun(store, tables, journal.name).resume()
    assert journal.load().state is RollbackState.ROLLING_BACK
    assert RollbackRun(store, tables, journal.name).resume().state is RollbackState.ROLLED_BACK
    assert tables.rows == [3, 1, 1]
    assert [each.main_head() for each in tables.by_name.values()] == [6, 4, 3]
    assert {(name, to) for name, to, _ in tables.reported} == {(ORDERS, 3), (DETAILS, 1), (REVENUE, 1)}


def test_a_table_that_moved_before_is_refused_with_nothing_done(store: Store, tables: MemoryTables) -> None:
    tables.by_name[DETAILS].commit()
    tables.expired.add((REVENUE, 1))
    with pytest.raises(RollbackRefusedError) as refused:
        begin_rollback(store, tables, plan_of(store))
    assert "lake.db.details is at 4, and the store knows 3" in str(refused.value)
    assert "lake.db.revenue can't go back to 1: it has expired" in str(refused.value)
    assert (tables.rows, rollbacks_in(store)) == ([5, 4, 2], [])


def test_a_table_that_was_made_again_is_refused(store: Store, tables: MemoryTables) -> None:
    tables.by_name[ORDERS].generation = "2"
    with pytest.raises(RollbackRefusedError, match="dropped and made again"):
        begin_rollback(store, tables, plan_of(store))


def test_a_table_that_moves_meanwhile_stops_it_and_the_rest_is_taken_back(store: Store, tables: MemoryTables) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    tables.by_name[DETAILS].commit()
    with pytest.raises(TerminalError, match=rf"stopped at lake.db.details.*headwater rollback undo {journal.name}"):
        RollbackRun(store, tables, journal.name).resume()
    assert tables.rows == [3, 4, 2]
    assert RollbackRun(store, tables, journal.name).undo().state is RollbackState.UNDONE
    assert tables.rows == [5, 4, 2]


def test_it_is_undone_while_nothing_has_come_since(store: Store, tables: MemoryTables) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    RollbackRun(store, tables, journal.name).resume()
    found = RollbackRun(store, tables, journal.name).undo()
    assert (found.state, tables.rows) == (RollbackState.UNDONE, [5, 3, 2])
    assert tables.reported[3:] == [(REVENUE, 2, 4), (DETAILS, 3, 5), (ORDERS, 5, 7)]
    with pytest.raises(RollbackRefusedError, match="was undone already"):
        RollbackRun(store, tables, journal.name).undo()


def test_what_has_come_since_isnt_lost_by_undoing(store: Store, tables: MemoryTables) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    RollbackRun(store, tables, journal.name).resume()
    tables.by_name[ORDERS].commit()
    tables.expired.add((DETAILS, 3))
    with pytest.raises(RollbackRefusedError) as refused:
        RollbackRun(store, tables, journal.name).undo()
    assert "lake.db.orders is at 7, and was left at 6: what has come since would be lost" in str(refused.value)
    assert "lake.db.details can't go to 3 again: it has expired" in str(refused.value)
    assert tables.rows == [7, 1, 1]


@pytest.mark.parametrize("where", ["before", "after"])
def test_undoing_goes_on_where_it_was_killed(store: Store, tables: MemoryTables, where: str) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    RollbackRun(store, tables, journal.name).resume()
    tables.by_name[DETAILS].dies = where
    with pytest.raises(KilledError):
        RollbackRun(store, tables, journal.name).undo()
    assert RollbackRun(store, tables, journal.name).resume().state is RollbackState.UNDONE
    assert tables.rows == [5, 3, 2]
    assert [each.main_head() for each in tables.by_name.values()] == [7, 5, 4]


def test_what_was_interrupted_is_undone(store: Store, tables: MemoryTables) -> None:
    """The table whose commit was made, but not noted, is taken back, too."""
    journal = begin_rollback(store, tables, plan_of(store))
    tables.by_name[DETAILS].dies = "after"
    with pytest.raises(KilledError):
        RollbackRun(store, tables, journal.name).resume()
    RollbackRun(store, tables, journal.name).undo()
    assert tables.rows == [5, 3, 2]


def test_a_process_that_was_thought_to_be_dead_is_refused(store: Store, tables: MemoryTables) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    old = RollbackRun(store, tables, journal.name)
    seen: list[JournalStep] = []

    def progress(step: JournalStep) -> None:
        if not seen:
            seen.append(step)
            RollbackJournal(store, journal.name).take_over()

    old = RollbackRun(store, tables, journal.name, progress)
    with pytest.raises(TerminalError, match="another process works on"):
        old.resume()


def test_aligned_jobs_go_back_to_the_barrier_that_belongs_there(
    store: Store, tables: MemoryTables, checkpoint: Checkpoint
) -> None:
    """Under a new incarnation, so that what the job wrote before isn't taken for what it writes next."""
    plan = plan_of(store)
    assert [(job.job, job.group, job.keeps) for job in plan.jobs if job.group] == [(JOB, GROUP, 1)]
    assert [(each.group, each.newest, each.target) for each in plan.groups] == [(GROUP, 2, 1)]
    claims = GroupClaims(store, GROUP)
    running = claims.jobs()[0].epoch
    journal = begin_rollback(store, tables, plan)
    RollbackRun(store, tables, journal.name).resume()
    with pytest.raises(JobTakenOverError):
        claims.move(JOB, running, done=2, running=3)
    start, newest = checkpoint.start(), checkpoint.newest()
    assert start is not None
    assert newest is not None
    assert (start.incarnation != "first", newest.number, claims.jobs()[0].done) == (True, 1, 1)
    assert (claims.versions(5)[0].number, tables.rows) == (1, [3, 1, 1])
    assert claims.claim(2, Cut({ORDERS: TableSnapshot(7, "1")}), JOB).cut[ORDERS].snapshot == 7


@pytest.mark.parametrize(
    "where",
    [(checkpoints, "_write"), (checkpoints, "_move"), (GroupClaims, "move"), (GroupClaims, "set_back")],
    ids=["checkpoint", "barrier", "progress", "group"],
)
@pytest.mark.parametrize("is_undone", [False, True])
def test_jobs_and_groups_that_were_interrupted_end_up_the_same(
    store: Store,
    tables: MemoryTables,
    checkpoint: Checkpoint,
    where: tuple[Any, str],
    is_undone: bool,
) -> None:
    """The process ends at each thing that is written of them, the first time that it comes to it."""
    journal = begin_rollback(store, tables, plan_of(store))
    if is_undone:
        RollbackRun(store, tables, journal.name).resume()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*where, _die)
        run = RollbackRun(store, tables, journal.name)
        if is_undone and where[1] == "set_back":
            patch.setattr(GroupClaims, "confirm", _die)
        with pytest.raises(KilledError):
            run.undo() if is_undone else run.resume()
    RollbackRun(store, tables, journal.name).resume()
    start, claims = checkpoint.start(), GroupClaims(store, GROUP)
    numbers = [each.number for each in checkpoint.barriers()]
    versions = [each.number for each in reversed(claims.versions(5))]
    expected = [1, 2] if is_undone else [1]
    assert start is not None
    assert (numbers, versions, claims.jobs()[0].done) == (expected, expected, expected[-1])
    assert (start.incarnation == "first", tables.rows) == (is_undone, [5, 3, 2] if is_undone else [3, 1, 1])


def test_undoing_gives_jobs_their_checkpoints_back(store: Store, tables: MemoryTables, checkpoint: Checkpoint) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    RollbackRun(store, tables, journal.name).resume()
    RollbackRun(store, tables, journal.name).undo()
    start, claims = checkpoint.start(), GroupClaims(store, GROUP)
    assert start is not None
    assert (start.incarnation, [each.number for each in checkpoint.barriers()]) == ("first", [1, 2])
    assert ([each.number for each in claims.versions(5)], claims.jobs()[0].done) == ([2, 1], 2)
    assert not list(Path(checkpoint.location).glob("rolled-back/*/job.json"))


def test_a_job_that_has_gone_on_isnt_undone(store: Store, tables: MemoryTables, checkpoint: Checkpoint) -> None:
    journal = begin_rollback(store, tables, plan_of(store))
    RollbackRun(store, tables, journal.name).resume()
    cut = Cut({ORDERS: TableSnapshot(7, "1")})
    GroupClaims(store, GROUP).claim(2, cut, JOB)
    checkpoint.write(Barrier(2, cut, None, True))
    with pytest.raises(RollbackRefusedError) as refused:
        RollbackRun(store, tables, journal.name).undo()
    assert "the job details has gone on since, to data version 2" in str(refused.value)
    assert "the group shop has gone on since, to data version 2" in str(refused.value)


def test_a_data_version_takes_all_tables_of_its_group_back(
    store: Store, tables: MemoryTables, checkpoint: Checkpoint
) -> None:
    version = GroupClaims(store, GROUP).version(1)
    assert version is not None
    plan = plan_of(store, (GROUP, version))
    assert [(each.table, each.target) for each in plan.going_back] == [(ORDERS, 3), (DETAILS, 1), (REVENUE, 1)]
    assert plan.asked == "data version shop@1"


def test_a_checkpoint_that_isnt_on_this_machine_is_named(store: Store, checkpoint: Checkpoint) -> None:
    Path(checkpoint.location).rename(f"{checkpoint.location}-elsewhere")
    plan = plan_of(store)
    assert "there is no checkpoint at" in plan.stuck_jobs[0].problems[0]
    assert (plan.is_whole, plan.moving_jobs) == (False, ())


def test_a_roll_back_that_isnt_there(store: Store) -> None:
    with pytest.raises(ConfigurationError, match="no roll-back r-x: no roll-back is under way"):
        RollbackJournal(store, "r-x").load()
