"""An order shop is corrected, and read under `spark.headwater.read.consistent` at each point of the switch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.events import JobName
from headwater.events.names import VALIDATION_JOB_NAMESPACE
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.correction import CorrectionPlan, RerunCommands, plan_correction
from headwater.versions.correction.execution import Mirror, begin_correction, correction
from headwater.versions.correction.execution.job_driver import set_back
from headwater.versions.correction.execution.redirects import open_mirrors
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.journal import Correction, CorrectionJournal
from headwater.versions.correction.rerun_commands import RerunCommand
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import Switcher, TableSwitch
from tests.kit.cases.consistent import reading
from tests.kit.cases.corrections import TABLES
from tests.kit.cases.order_shop import ANEW, CHAIN, WRONG_COMMIT, OrderBook
from tests.kit.cases.shop_reader import aligned_session, ask, judge
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
]

driver = shared_driver_fixture(EXTENSIONS)
BOOK: Final = OrderBook(commit_rows=10)
ASKED: Final = (CHAIN, ("orders", "revenue"), ("details", "top10"))


class SessionShop:
    """The shop in one session: its jobs are statements."""

    def __init__(self, driver: Driver, store: Store, form: str) -> None:
        self.driver, self.spark, self.store = driver, driver.spark, store
        self.database = f"{CATALOGS[form]}.{driver.name()}"
        self.commits = 0
        self._run(*BOOK.opening(self.database, form))
        jobs = {f"app.{self.database}.{table}": table for table in ANEW}
        self._commands = RerunCommands({job: RerunCommand(job, table) for job, table in jobs.items()})

    def go_on(self) -> None:
        """Get orders, and make all from them."""
        self.commits += 1
        made = [statement.format(db=self.database) for statement in ANEW.values()]
        self._run(BOOK.insert(self.database, self.commits), *made)

    def _run(self, *statements: str, namespace: str | None = None) -> None:
        """Let the store have what is captured of statements, and of nothing else that a session does."""
        for event in self.driver.events_of(*statements):
            job = getattr(event, "job", None)
            if namespace and job is not None:
                event = event.model_copy(update={"job": JobName(namespace=namespace, name=job.name)})  # noqa: PLW2901
            self.store.merge(map_event(event))

    def _run_on_mirrors(self, name: str, statement: str) -> None:
        with correction(self.spark, self.store, name):
            self._run(statement, namespace=VALIDATION_JOB_NAMESPACE)

    def plan(self, correction: Correction | None = None) -> CorrectionPlan:
        """Return the plan of a correction that was begun, or of one from the newest orders on."""
        orders = f"{self.database}.orders"
        head = branches_of(self.spark, orders).main_head()
        source = f"{orders}@{head if correction is None else correction.plan.snapshot}"
        with self.store.engine.connect() as connection:
            return plan_correction(connection, source, commands=self._commands)

    def rows(self, table: str) -> list[Any]:
        return sorted(tuple(row) for row in self.driver.rows(f"SELECT * FROM {self.database}.{table}"))

    def correct(self) -> str:
        """Correct the newest orders on mirrors while production goes on, and return the correction's name."""
        corrector = begin_correction(self.store, self.plan(), lambda: nullcontext(SparkCorrectionTables(self.spark)))
        name = corrector.load().name
        # Beside Iceberg's extension other formats have no UPDATE.
        self._run_on_mirrors(name, BOOK.repair(self.database, "paimon"))
        self.go_on()
        ran = corrector.run(self._run_job, self.plan)
        assert (len(ran.stages), ran.taken_over, ran.behind) == (3, 1, {})
        return name

    def _run_job(
        self,
        name: str,
        _: str,
        table: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        *,
        checkpoints: Mapping[str, str],
        should_continue: Callable[[], bool],
    ) -> None:
        assert checkpoints == {}, "nothing of the shop is a stream"
        assert should_continue()
        for mirror in mirrors:
            if mirror.table in resets:
                set_back(self.spark, mirror)
        self._run_on_mirrors(name, ANEW[table].format(db=self.database))


class WatchedTables(SparkSwitchTables):
    """Somebody looks behind each commit, before the store knows of it and then."""

    look: Callable[[], None]

    def report(self, switch: TableSwitch, switched: Mapping[str, int]) -> None:
        self.look()
        super().report(switch, switched)
        self.look()


SAMPLE: Final = [pytest.param(form, marks=[] if form == "iceberg" else [pytest.mark.long]) for form in FORMATS]


@pytest.mark.parametrize("form", SAMPLE)
def test_a_reader_sees_the_old_tables_or_the_new_ones_at_each_point_of_a_switch(
    driver: Driver, tmp_path: Path, form: str
) -> None:
    """What it finds besides: rows that a job on mirrors loses or counts twice, and a switch of which a consistent read
    learns too early. The truth is worked out without Spark."""
    answers = list[str]()
    with open_new_store(str(tmp_path / "store.db")) as store, reading(driver.spark, tmp_path / "store.db"):
        shop = SessionShop(driver, store, form)

        def look() -> None:
            asked = [ask(aligned_session(driver.spark), shop.database, tables) for tables in ASKED]
            answers.extend(json.dumps(each) for each in asked)

        for _ in range(WRONG_COMMIT):
            shop.go_on()
        name = shop.correct()
        look()
        branches = {
            mirror.table: mirror.branch for mirror in open_mirrors(CorrectionJournal(store, name).load()).values()
        }
        tables = WatchedTables(driver.spark, store, branches)
        tables.look = look
        switched = Switcher(store, name, lambda: nullcontext(tables)).switch()
        assert [each.table.rpartition(".")[2] for each in switched] == [*CHAIN]
        look()
        shop.go_on()
        look()
        assert {table: shop.rows(table) for table in TABLES} == BOOK.rows(shop.commits, right=True)
    seen = judge(answers, BOOK, shop.commits)
    assert (seen.mixtures, seen.backward, dict(seen.errors)) == ([], [], {})
    assert seen.queries == len(ASKED) * (len(CHAIN) * 2 + 3)
    assert min(seen.worlds["with it"], seen.worlds["without it"]) >= len(ASKED)
