"""Corrections are carried out on tables in memory: what runs, what runs again, and that a death at any point changes
nothing about how it ends.

Rows are numbers: 999 is the wrong order, 5 the right one, and what is made from an order is that times 10. So the truth
is worked out by hand, and a step that is done twice or not at all shows in the rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.store import Store, open_store
from headwater.local import Service
from headwater.versions.correction import (
    CorrectionMode,
    CorrectionPlan,
    JobKind,
    PlannedTable,
    RerunCommand,
    RerunCommands,
    plan_correction,
)
from headwater.versions.correction.execution.corrector import Corrector, RunResult, begin_correction
from headwater.versions.correction.execution.stages import stages_of
from headwater.versions.correction.execution.tables import CorrectionError
from headwater.versions.correction.journal import Correction, CorrectionState, corrections_in
from headwater.versions.step_journal import StepJournal, StepKind, StepState
from tests.kit.lineage.scripted_producer import at
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store, own_database
from tests.kit.versions.corrections import ALL, RUNS, order_warehouse
from tests.kit.versions.memory_correction import KilledError, MemoryRunner, MemoryTable, MemoryTables

ORDERS, DETAILS, TOP10, REVENUE = (f"lake.db.{name}" for name in ("orders", "details", "top10", "revenue"))
COMMANDS = RerunCommands({name: RerunCommand(name, f"{name}.py") for name in ("details", "revenue", "top10")})


def details(mirrors: dict[str, MemoryTable]) -> None:
    """It adds what isn't there yet, in two commits."""
    known = set(mirrors[DETAILS].rows)
    for order in mirrors[ORDERS].rows:
        if order * 10 not in known:
            mirrors[DETAILS].add(order * 10)


def top10(mirrors: dict[str, MemoryTable]) -> None:
    mirrors[TOP10].add(sum(mirrors[DETAILS].rows))


@dataclass
class Warehouse:
    """Order 999 came with orders@4; details@1 has what was made of the right orders before."""

    store: Store
    story: StoryProducer
    tables: MemoryTables
    runner: MemoryRunner
    stored: int = 0
    mode: CorrectionMode = CorrectionMode.FULL

    def with_runner(self) -> Warehouse:
        runner = MemoryRunner(self.tables, {"details.py": details, "top10.py": top10})
        return replace(self, runner=runner)

    def tell(self) -> None:
        """Let the store know of what has happened."""
        with self.store.engine.begin() as connection:
            put(connection, self.story.events[self.stored :])
        self.stored = len(self.story.events)

    def plan(self, _: Correction | None = None, commands: RerunCommands = COMMANDS) -> CorrectionPlan:
        with self.store.engine.connect() as connection:
            until = at(self.story.minute)
            return plan_correction(connection, "orders@4", mode=self.mode, commands=commands, now=until)

    def begin(self) -> Corrector:
        return begin_correction(self.store, self.plan(), self.tables.opening)

    def resumed(self, corrector: Corrector) -> Corrector:
        return Corrector(self.store, corrector.load().name, self.tables.opening)

    def run(self, corrector: Corrector, *, most_rounds: int = 3) -> RunResult:
        return corrector.run(self.runner.run, self.plan, patience_seconds=0, most_rounds=most_rounds)

    def rows(self) -> dict[str, tuple[int, ...]]:
        return {name.rpartition(".branch_")[0]: table.rows for name, table in self.tables.mirrors.items()}

    def correct_orders(self) -> None:
        """The user's own UPDATE."""
        [mirror] = (table for name, table in self.tables.mirrors.items() if name.startswith(ORDERS))
        if 999 in mirror.rows:  # else it was corrected before the death, and jobs that are through needn't run again
            mirror.replace(*(5 if row == 999 else row for row in mirror.rows))


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with open_new_store(str(tmp_path / "store.db")) as store:
        yield new_warehouse(store)


def new_warehouse(store: Store) -> Warehouse:
    story = order_warehouse()
    story.commit("revenue@3", reads=["products@1"], replaced=ALL, job="revenue", run=RUNS["revenue"])
    tables = new_tables()
    found = Warehouse(store, story, tables, MemoryRunner(tables, {})).with_runner()
    found.tell()
    return found


def new_tables() -> MemoryTables:
    return MemoryTables(
        {
            ORDERS: MemoryTable({3: (1, 2), 4: (1, 2, 999), 5: (1, 2, 999, 7)}),
            DETAILS: MemoryTable({1: (10, 20), 2: (10, 20, 9990), 3: (10, 20, 9990, 70)}),
            TOP10: MemoryTable({1: (10_020,)}),
            REVENUE: MemoryTable({2: (10_020,)}),
        }
    )


TRUTH = {ORDERS: (1, 2, 5, 7), DETAILS: (10, 20, 50, 70), TOP10: (150,)}
"""By hand: orders 1, 2, 5 and 7, each times 10, and their sum."""


def test_the_whole_chain_is_made_again_on_mirrors(warehouse: Warehouse) -> None:
    before = {name: dict(table.states) for name, table in warehouse.tables.tables.items()}
    corrector = warehouse.begin()
    assert warehouse.rows() == {ORDERS: (1, 2, 999), DETAILS: (10, 20), TOP10: ()}
    warehouse.correct_orders()
    result = warehouse.run(corrector)
    assert warehouse.rows() == TRUTH
    assert (result.stages, result.taken_over, dict(result.behind)) == (("details", "top10"), 1, {})
    assert {name: dict(table.states) for name, table in warehouse.tables.tables.items()} == before
    expected = {step.subject: step.detail["expected"] for step in corrector.load().of(StepKind.MIRROR)}
    assert expected == {ORDERS: 5, DETAILS: 3, TOP10: 1}


def test_jobs_run_on_what_was_right_before(warehouse: Warehouse) -> None:
    """Incrementally mirrors begin at the last right snapshots, if there are any."""
    incremental = replace(warehouse, mode=CorrectionMode.INCREMENTAL)
    corrector = incremental.begin()
    assert warehouse.rows() == {ORDERS: (1, 2, 999), DETAILS: (10, 20), TOP10: ()}
    warehouse.correct_orders()
    incremental.run(corrector)
    assert warehouse.rows() == TRUTH


def test_nothing_runs_again_that_has_nothing_new(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.correct_orders()
    warehouse.run(corrector)
    assert warehouse.run(corrector).stages == ()
    assert warehouse.runner.ran == ["details.py", "top10.py"]


def test_a_preview_says_what_would_run_and_does_nothing(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    before = corrector.load()
    seen = warehouse.resumed(corrector).preview(warehouse.plan)
    assert (seen.stages, seen.to_take_over) == ((("details", True), ("top10", True)), 1)
    assert corrector.load() == before
    warehouse.run(corrector)
    again = corrector.preview(warehouse.plan)
    assert (again.stages, again.to_take_over) == ((("details", False), ("top10", False)), 0)


def test_what_production_makes_meanwhile_is_worked_off(warehouse: Warehouse) -> None:
    """It finds rows that are taken over twice, and a job that runs only once although its input has grown."""
    corrector = warehouse.begin()
    warehouse.correct_orders()
    warehouse.run(corrector)
    warehouse.tables.tables[ORDERS].add(8)
    warehouse.tables.tables[DETAILS].add(80)
    warehouse.story.commit("orders@6", job="ingest", run=RUNS["ingest"])
    warehouse.story.commit("details@4", reads=["orders@5..6"], job="details", run=RUNS["details"])
    warehouse.tell()
    result = warehouse.run(warehouse.resumed(corrector))
    assert (result.stages, result.taken_over) == (("details", "top10"), 1)
    assert warehouse.rows() == {ORDERS: (1, 2, 5, 7, 8), DETAILS: (10, 20, 50, 70, 80), TOP10: (230,)}


def test_a_later_change_of_the_rows_runs_the_jobs_again(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.run(corrector)
    assert warehouse.rows()[TOP10] == (10_090,)
    warehouse.correct_orders()
    assert warehouse.run(corrector).stages == ("details", "top10")
    assert warehouse.rows() == TRUTH


def test_a_round_has_an_end_and_says_what_is_left(warehouse: Warehouse) -> None:
    """Production goes on while the jobs run, so that there is always something new."""
    corrector = warehouse.begin()

    def busy(mirrors: dict[str, MemoryTable]) -> None:
        details(mirrors)
        warehouse.tables.tables[ORDERS].add(len(warehouse.runner.ran) + 100)

    warehouse.runner.scripts["details.py"] = busy
    result = warehouse.run(corrector, most_rounds=2)
    assert (result.stages, dict(result.behind)) == (("details", "top10") * 2, {ORDERS: 7})


def do_all(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.correct_orders()
    warehouse.run(corrector)


@pytest.mark.slow
def test_a_death_at_any_point_changes_nothing(warehouse: Warehouse) -> None:
    """All points are counted in a run without a death; then each run dies at another one of them, and goes on. It finds
    a step that is done twice, or is taken for done when it wasn't."""
    do_all(warehouse)
    points = warehouse.tables.kills.count
    assert points == 9 + 2 + 2 * 3
    for point in range(1, points + 1):
        dying = replace(warehouse, tables=new_tables()).with_runner()
        dying.tables.kills.at = point
        with pytest.raises(KilledError):
            do_all(dying)
        again = Corrector(dying.store, corrections_of(dying.store)[0], dying.tables.opening)
        if again.load().state is CorrectionState.BEGINNING:
            again.make_mirrors()
        dying.correct_orders()
        dying.run(again)
        assert dying.rows() == TRUTH, point


class LostConnections:
    """Ends the connection of one transaction of the journal, when all but its commit is done."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.at, self.count = 0, 0
        original = StepJournal._transaction

        @contextmanager
        def transaction(entry: StepJournal[Any, Any]) -> Generator[Connection]:
            with original(entry) as connection:
                yield connection
                self.count += 1
                if self.count == self.at:
                    backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                    with entry._store.engine.connect() as other:
                        other.exec_driver_sql(f"SELECT pg_terminate_backend({backend}, 5000)")

        patch.setattr(StepJournal, "_transaction", transaction)


@pytest.mark.slow
@pytest.mark.database
def test_a_connection_that_is_lost_in_any_write_of_the_journal_changes_nothing(
    postgres: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends it, as when it is restarted. It finds a write that is taken for done although it was rolled
    back, and a store that can't be used again."""
    lost = LostConnections(monkeypatch)
    with own_database(postgres) as url, open_store(url) as store:
        warehouse = new_warehouse(store)
        do_all(warehouse)
        for at_write in range(1, lost.count + 1):
            lost.at, lost.count, known = at_write, 0, corrections_of(store)
            dying = replace(warehouse, tables=new_tables()).with_runner()
            with pytest.raises(TransientError):
                do_all(dying)
            lost.at = 0
            new = [name for name in corrections_of(store) if name not in known]
            again = Corrector(store, new[0], dying.tables.opening) if new else dying.begin()
            if again.load().state is CorrectionState.BEGINNING:
                again.make_mirrors()
            dying.correct_orders()
            dying.run(again)
            assert dying.rows() == TRUTH, at_write


def test_a_death_while_it_is_aborted_leaves_nothing_behind(warehouse: Warehouse) -> None:
    for point in range(1, 7):
        dying = replace(warehouse, tables=new_tables()).with_runner()
        corrector = dying.begin()
        dying.tables.kills.at = dying.tables.kills.count + point
        with pytest.raises(KilledError):
            corrector.abort()
        again = dying.resumed(corrector)
        again.abort()
        assert (dying.tables.mirrors, again.load().state) == ({}, CorrectionState.ABORTED), point


def corrections_of(store: Store) -> list[str]:

    return [each.name for each in corrections_in(store)]


def test_a_job_that_fails_leaves_the_correction_where_it_can_go_on(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.correct_orders()
    kept = warehouse.runner.scripts.pop("top10.py")
    with pytest.raises(CorrectionError, match="the job top10 ended with exit code 1"):
        warehouse.run(corrector)
    assert [step.state for step in corrector.load().of(StepKind.RERUN)] == [StepState.DONE, StepState.FAILED]
    warehouse.runner.scripts["top10.py"] = kept
    assert warehouse.run(corrector).stages == ("top10",)
    assert warehouse.rows() == TRUTH


def test_rows_that_production_changed_in_the_source_are_refused(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.tables.tables[ORDERS].replace(1, 2)
    with pytest.raises(CorrectionError, match=r"lake\.db\.orders@6 \(overwrite\).*Abort it, and begin from"):
        warehouse.run(corrector)
    assert warehouse.runner.ran == []


def test_a_commit_that_the_store_doesnt_know_is_waited_for_and_then_refused(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.tables.tables[DETAILS].add(80)
    with pytest.raises(CorrectionError, match=r"doesn't know who made lake\.db\.details@4: wait until"):
        warehouse.run(corrector)


def test_a_table_that_is_made_from_what_is_wrong_since_is_named(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.story.commit("daily@1", reads=["details@3"], replaced=ALL, job="daily")
    warehouse.tell()
    with pytest.raises(CorrectionError, match=r"lake\.db\.daily is made from what is wrong, too, since then"):
        warehouse.run(corrector)


def test_who_aborts_ends_it_for_who_runs(warehouse: Warehouse) -> None:
    corrector = warehouse.begin()
    warehouse.resumed(corrector).abort()
    with pytest.raises(ConfigurationError, match="is ABORTED: its mirrors were removed"):
        warehouse.run(corrector)


def without_commands(plan: CorrectionPlan, kind: JobKind) -> CorrectionPlan:
    return replace(plan, jobs=tuple(replace(job, commands=(), kind=kind) for job in plan.jobs))


def of_kind(plan: CorrectionPlan, kind: JobKind) -> CorrectionPlan:
    return replace(plan, jobs=tuple(replace(job, kind=kind) for job in plan.jobs))


def streaming(plan: CorrectionPlan, **about: object) -> CorrectionPlan:
    """The same incrementally, where a stream makes the details."""
    jobs = tuple(replace(job, kind=JobKind.STREAM) if job.job == "details" else job for job in plan.jobs)
    tables = tuple(replace(table, **about) for table in plan.tables)  # type: ignore[arg-type]
    return replace(plan, mode=CorrectionMode.INCREMENTAL, jobs=jobs, tables=tables)


def writing(plan: CorrectionPlan, table: str) -> CorrectionPlan:
    return replace(plan, jobs=tuple(replace(job, writes=(*job.writes, table)) for job in plan.jobs))


def uncorrectable(plan: CorrectionPlan) -> CorrectionPlan:
    stuck: PlannedTable = replace(plan.tables[-1], problems=("it has no snapshots",))
    return replace(plan, tables=(*plan.tables[:-1], stuck))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (streaming, "no right batch is known of the stream details from which it could go on"),
        (lambda plan: streaming(plan, format="ICEBERG"), "a stream of Iceberg reads main and no branch"),
        (lambda plan: streaming(plan, format="PAIMON"), "a stream of Paimon begins elsewhere without a word"),
        (lambda plan: streaming(plan, format="ICEBERG"), "Iceberg looks on main for the batches that a stream has"),
        (lambda plan: streaming(plan, format="PAIMON"), "repeats after a kill is written twice"),
        (lambda plan: writing(streaming(plan), TOP10), "the stream details and top10 write one table"),
        (lambda plan: replace(plan, tables=()), "nothing is wrong any more"),
        (lambda plan: without_commands(plan, JobKind.BATCH), r'details has no command: add \[jobs."details"\]'),
        (lambda plan: without_commands(plan, JobKind.STREAM), "is a stream, and in full a batch script does its work"),
        (lambda plan: without_commands(plan, JobKind.ALIGNED), r'details has no command: add \[jobs."details"\]'),
        (lambda plan: of_kind(plan, JobKind.ALIGNED), "several groups have an aligned job details"),
        (lambda plan: writing(plan, ORDERS), r"details changed rows of lake\.db\.orders after the snapshot 4"),
        (uncorrectable, r"stays wrong \(it has no snapshots\): say --anyway"),
    ],
)
def test_what_cant_be_carried_out_is_said_before_anything_is_made(
    warehouse: Warehouse, change: object, message: str
) -> None:
    plan = change(warehouse.plan())  # type: ignore[operator]
    with pytest.raises(ConfigurationError, match=message):
        begin_correction(warehouse.store, plan, warehouse.tables.opening)
    assert (warehouse.tables.mirrors, corrections_of(warehouse.store)) == ({}, [])


def test_jobs_that_write_a_table_together_run_together(warehouse: Warehouse) -> None:
    plan = warehouse.plan()
    first, second = plan.needed_jobs
    also = replace(first, job="more", reads=(TOP10,))
    step = replace(second, job="step", writes=(REVENUE,))
    found = stages_of(replace(plan, jobs=(first, second, step)), [DETAILS, TOP10, REVENUE])
    assert [(len(stage.jobs), stage.commands) for stage in found] == [(1, ("details.py",)), (2, ("top10.py",))]
    # jobs that also write the source aren't one stage, and its mirror isn't set back
    apart = stages_of(writing(plan, ORDERS), [ORDERS, DETAILS, TOP10])
    assert [(stage.writes, stage.reads) for stage in apart] == [((DETAILS,), (ORDERS,)), ((TOP10,), (DETAILS,))]
    shared = replace(plan, jobs=(first, second, replace(also, reads=(ORDERS,))))
    assert [stage.name for stage in stages_of(shared, [ORDERS, DETAILS, TOP10])] == ["details, more", "top10"]
    with pytest.raises(ConfigurationError, match="there is no order in which each could run once"):
        stages_of(replace(plan, jobs=(first, second, also)), [ORDERS, DETAILS, TOP10])
