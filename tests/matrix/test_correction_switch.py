"""Mirrors of real tables take their tables' places: rows, commits, and what the store says they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store
from headwater.versions import align, check, contained
from headwater.versions.branches import BranchManager, MainMovedError
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState
from headwater.versions.correction.moved_jobs import SwitchRefusedError
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import Switcher
from headwater.versions.step_journal import StepKind, StepState
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS
from tests.kit.versions.corrections import planned_chain

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)
JOIN = "SELECT o.id, p.name FROM {orders} o JOIN {products} p ON o.product = p.id"


class Chain:
    """Orders and products make details; order 2 names the wrong product, and a correction's mirrors have it right."""

    def __init__(self, driver: Driver, form: str, store: Store) -> None:
        self.driver, self.store, self.format = driver, store, form
        self.database = driver.database(CATALOGS[form])
        self.stored = len(driver.bus.events)
        using = "" if form == "paimon" else f" USING {form}"
        for table, columns in (("orders", "id INT, product INT"), ("products", "id INT, name STRING")):
            driver.run(f"CREATE TABLE {self.name(table)} ({columns}){using}")
        driver.run(
            f"CREATE TABLE {self.name('details')} (id INT, name STRING){using}",
            f"INSERT INTO {self.name('products')} VALUES (1, 'tea'), (2, 'coffee')",
            f"INSERT INTO {self.name('orders')} VALUES (1, 1)",
            f"INSERT INTO {self.name('orders')} VALUES (2, 9)",
        )
        self.make_details(self.name("orders"), self.name("details"))
        self.branches: dict[str, str] = {}

    def name(self, table: str) -> str:
        return f"{CATALOGS[self.format]}.{self.database}.{table}"

    def make_details(self, orders: str, details: str) -> None:
        join = JOIN.format(orders=orders, products=self.name("products"))
        self.driver.run(f"INSERT OVERWRITE {details} {join}")

    def head(self, table: str) -> int:
        found = branches_of(self.driver.spark, self.name(table)).main_head()
        assert found is not None
        return found

    def mirror(self, table: str) -> str:
        """Make a mirror by the format's own means, and return its name."""
        manager = BranchManager(self.driver.spark, self.name(table))
        tag, head = "made", self.head(table)
        if self.format == "iceberg":
            self.driver.run(f"ALTER TABLE {self.name(table)} CREATE TAG {tag}")
        elif self.format == "paimon":
            place = f"{self.database}.{table}"
            self.driver.run(f"CALL pai.sys.create_tag(table => '{place}', tag => '{tag}', snapshot => {head})")
        else:
            tag = str(head)
        manager.create("correction_1", tag)
        self.branches[self.name(table)] = "correction_1"
        return manager.name_of("correction_1")

    def correct(self) -> CorrectionJournal:
        """Correct the order on mirrors, and note it as a corrector does."""
        tables = ["orders", "details"]
        expected = {table: self.head(table) for table in tables}
        orders, details = (self.mirror(table) for table in tables)
        right = "SELECT id, IF(id = 2, 2, product) AS product FROM"
        self.driver.run(f"INSERT OVERWRITE {orders} {right} {orders}")
        self.make_details(orders, details)
        plan = planned_chain([self.name(table) for table in tables])
        journal = CorrectionJournal.create(
            self.store, plan, [(StepKind.MIRROR, self.name(table), {}) for table in tables]
        )
        epoch = journal.take_over()
        for table, step in zip(tables, journal.load().steps, strict=True):
            running = journal.move_step(epoch, step, StepState.RUNNING)
            detail = {"branch": "correction_1", "expected": expected[table]}
            journal.move_step(epoch, running, StepState.DONE, detail)
        head = BranchManager(self.driver.spark, self.name("orders")).list()[0].head
        detail = {"writes": [self.name("details")], "target": {"reads": {self.name("orders"): head}}, "seconds": 600}
        [step] = journal.add(epoch, [(StepKind.RERUN, "details", detail)])
        journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)
        journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.OPEN)
        return journal

    def report(self) -> None:
        """Let the store have what was captured."""
        self.driver.events_of()
        for event in self.driver.bus.events[self.stored :]:
            self.store.merge(map_event(event))
        self.stored = len(self.driver.bus.events)

    def rows(self, table: str) -> list[Any]:
        return sorted(tuple(row) for row in self.driver.rows(f"SELECT * FROM {self.name(table)}"))

    def switcher(self, journal: CorrectionJournal, tables: SparkSwitchTables | None = None) -> Switcher:
        opened = tables or SparkSwitchTables(self.driver.spark, self.store, self.branches)
        return Switcher(self.store, journal.name, lambda: nullcontext(opened))


SAMPLE = [pytest.param(form, marks=[] if form == "iceberg" else [pytest.mark.long]) for form in FORMATS]


@pytest.fixture(params=SAMPLE)
def chain(request: pytest.FixtureRequest, driver: Driver, tmp_path: Path) -> Iterator[Chain]:
    with open_new_store(str(tmp_path / "store.db")) as store:
        yield Chain(driver, request.param, store)


class HalfWay(SparkSwitchTables):
    """The first table is switched, and then somebody looks."""

    def report(self, switch: Any, switched: Any) -> None:
        super().report(switch, switched)
        if not switched:
            raise MainMovedError("somebody looks")


@pytest.mark.long
def test_a_switch_that_is_taken_back_half_way_leaves_the_rows_of_before(chain: Chain) -> None:
    """In between, what belongs together is the old set: readers of it see no mixture."""
    journal = chain.correct()
    chain.report()
    wrong, before = chain.rows("details"), {table: chain.head(table) for table in ("orders", "details")}
    assert wrong == [(1, "tea")]
    names = [chain.name(table) for table in ("orders", "details")]
    tables = HalfWay(chain.driver.spark, chain.store, chain.branches)
    with pytest.raises(MainMovedError, match="somebody looks"):
        chain.switcher(journal, tables).switch()
    with chain.store.engine.connect() as connection:
        cut = align(connection, names)
    assert {each.table.label for each in cut.rows} == {f"{name}@{before[name.rpartition('.')[2]]}" for name in names}
    assert [each.table for each in chain.switcher(journal).go_back()] == [names[0]]
    assert (chain.rows("orders"), chain.rows("details")) == ([(1, 1), (2, 9)], wrong)
    if chain.format != "iceberg":  # there going back is a new snapshot, which the mirror takes no account of
        with pytest.raises(SwitchRefusedError, match="production has gone on"):
            chain.switcher(journal).switch()
        return
    done = {each.table: each.snapshot for each in chain.switcher(journal).switch()}
    assert done == {name: chain.head(name.rpartition(".")[2]) for name in names}


def test_a_switch_is_one_commit_for_each_table_made_from_the_corrected_ones(chain: Chain) -> None:
    journal = chain.correct()
    chain.report()
    before = {table: chain.head(table) for table in ("orders", "details")}
    done = {each.table.rpartition(".")[2]: each.snapshot for each in chain.switcher(journal).switch()}
    assert chain.rows("orders") == [(1, 1), (2, 2)]
    assert chain.rows("details") == [(1, "tea"), (2, "coffee")]
    assert done == {table: chain.head(table) for table in done}
    if chain.format != "iceberg":
        assert done == {table: number + 1 for table, number in before.items()}
    assert all(BranchManager(chain.driver.spark, chain.name(table)).list() == () for table in done)
    with chain.store.engine.connect() as connection:
        orders, details, products = (chain.name(table) for table in ("orders", "details", "products"))
        made = {each.table.label for each in contained(connection, f"{details}@{done['details']}").rows}
        assert {f"{orders}@{done['orders']}", f"{products}@{chain.head('products')}"} <= made
        assert not [label for label in made if "correction_1" in label]
        assert check(connection, [f"{orders}@{done['orders']}", f"{details}@{done['details']}"]).is_consistent is True
        mixed = check(connection, [f"{orders}@{done['orders']}", f"{details}@{before['details']}"])
        assert mixed.is_consistent is False
