"""A chain of tables goes back on the real formats, and goes on from there as if what was lost had never been.

Orders and products make details by an aligned job, and details make revenue by a statement. What each table has to have
is worked out by hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import ConfigurationError
from headwater.lineage.store import Store
from headwater.versions import check
from headwater.versions.aligned import AlignedBatch, GroupClaims, aligned_query
from headwater.versions.answers import text_of_contents
from headwater.versions.rollback import (
    RollbackJournal,
    RollbackPlan,
    RollbackRefusedError,
    RollbackRun,
    RollbackState,
    begin_rollback,
    plan_rollback,
    rollbacks_in,
)
from headwater.versions.rollback.session_tables import SessionTables
from tests.kit.lineage.scripted_producer import store as put
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.branches import CATALOGS, EXTENSIONS, FORMATS, expire_everything

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)
SAMPLE = "iceberg"
GONE = {"iceberg": "the table's metadata doesn't have it", "delta": "VACUUM has deleted", "paimon": "it has expired"}
ROOT = Path(__file__).parents[2]
_SECONDS = 600
"""How long a command may take that starts a session of its own."""


class Warehouse:
    """Orders and products, details that an aligned job makes of them, and their revenue."""

    def __init__(self, driver: Driver, table_format: str, place: Path, store: Store) -> None:
        self.driver, self.store, self._place = driver, store, place
        self.format = table_format
        self._tables = SessionTables(driver.spark, store)
        catalog = CATALOGS[table_format]
        self.db = f"{catalog}.{driver.database(catalog)}"
        using = "" if table_format == "paimon" else f" USING {table_format}"
        self._events = driver.events_of(
            f"CREATE TABLE {self.db}.products (id INT, price INT){using}",
            f"CREATE TABLE {self.db}.orders (id INT, product INT, amount INT){using}",
            f"CREATE TABLE {self.db}.details (id INT, total INT){using}",
            f"CREATE TABLE {self.db}.revenue (total BIGINT){using}",
            f"INSERT INTO {self.db}.products VALUES (1, 5), (2, 7)",
        )

    def run(self, *statements: str) -> None:
        self._events += self.driver.events_of(*(each.format(db=self.db) for each in statements))
        self._tell()

    def order(self, number: int, product: int, amount: int) -> None:
        """Insert an order, and let the jobs run."""
        self.run(f"INSERT INTO {{db}}.orders VALUES ({number}, {product}, {amount})")
        self.make_details()
        self.run("INSERT OVERWRITE {db}.revenue SELECT sum(total) FROM {db}.details")

    def make_details(self) -> None:
        query = aligned_query(
            self.group,
            {"orders": f"{self.db}.orders", "products": f"{self.db}.products"},
            name=f"details of {self.db}",
            checkpoint=str(self._place / "checkpoint"),
            store=str(self._place / "store.db"),
            spark=self.driver.spark,
        )

        def step(batch: AlignedBatch) -> None:
            orders, products = batch.changes("orders"), batch.state("products").withColumnRenamed("id", "product")
            rows = orders.join(products, "product").selectExpr("id", "amount * price AS total")
            batch.write(f"{self.db}.details", rows.writeTo(f"{self.db}.details").append)

        self._events += self.driver.events_of(lambda _: query.run(step))
        self._tell()

    def _tell(self) -> None:
        with self.store.engine.begin() as connection:
            put(connection, self._events)

    @property
    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        names = ("orders", "details", "revenue")
        return {name: sorted(map(tuple, self.driver.rows(f"SELECT * FROM {self.db}.{name}"))) for name in names}

    @property
    def heads(self) -> dict[str, int]:
        return {
            name: self._tables.open(f"{self.db}.{name}").main_head() or 0 for name in ("orders", "details", "revenue")
        }

    @property
    def group(self) -> str:
        return f"shop of {self.db}"

    def versions(self) -> list[int]:
        """The numbers of the group's data versions, and the last one that the job has done."""
        claims = GroupClaims(self.store, self.group)
        return [*sorted(each.number for each in claims.versions(10)), claims.jobs()[0].done or 0]

    def plan_version(self, number: int) -> RollbackPlan:
        version = GroupClaims(self.store, self.group).version(number)
        assert version is not None
        with self.store.engine.connect() as connection:
            return plan_rollback(connection, (self.group, version), problem=self._tables.problem)

    def plan(self, snapshot: int, *, looks: bool = False) -> RollbackPlan:
        with self.store.engine.connect() as connection:
            problem = self._tables.problem if looks else None
            return plan_rollback(connection, f"{self.db}.orders@{snapshot}", is_chain=True, problem=problem)

    def expire(self, *names: str) -> None:
        for name in names:
            expire_everything(self.driver, self.format, f"{self.db}.{name}")

    def roll_back(self, plan: RollbackPlan) -> str:
        """Carry a plan out, in a session of which nothing is captured, as the command's."""
        name = begin_rollback(self.store, self._tables, plan).name
        self.driver.events_of(lambda _: RollbackRun(self.store, self._tables, name).resume())
        assert RollbackJournal(self.store, name).load().state is RollbackState.ROLLED_BACK
        return name

    def undo(self, name: str) -> None:
        self.driver.events_of(lambda _: RollbackRun(self.store, self._tables, name).undo())

    def command(self, kill_after: int, *words: str) -> int:
        """Run `headwater rollback` in a process of its own, and return how it ended."""
        conf = dict(self.driver.spark.sparkContext.getConf().getAll())
        kept = {key: value for key, value in conf.items() if key.startswith(("spark.jars", "spark.sql."))}
        properties = self._place / "spark.conf"
        properties.write_text("".join(f"{key} {value}\n" for key, value in kept.items()))
        flags = ("--store", str(self._place / "store.db"), "--properties-file", str(properties))
        command = [sys.executable, "-m", "tests.kit.versions.rollback_victim", str(kill_after), *words, *flags]
        environment = {**os.environ, "SPARK_LOCAL_DIRS": str(self._place)}
        found = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, timeout=_SECONDS, start_new_session=True
        )
        for name in ("orders", "details", "revenue"):
            self.driver.run(f"REFRESH TABLE {self.db}.{name}")
        return found.returncode

    def differences(self) -> tuple[bool | None, list[str]]:
        """Return whether the newest versions of all tables belong together, and what differs or isn't known."""
        with self.store.engine.connect() as connection:
            found = check(connection, [f"{self.db}.{name}" for name in ("orders", "details", "revenue")])
        return found.is_consistent, [
            *(text_of_contents(row) for row in found.rows if not row.is_same),
            *map(str, found.limits),
        ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture(params=[each if each == SAMPLE else pytest.param(each, marks=pytest.mark.long) for each in FORMATS])
def warehouse(request: pytest.FixtureRequest, driver: Driver, tmp_path: Path, store: Store) -> Warehouse:
    found = Warehouse(driver, request.param, tmp_path, store)
    found.order(1, 1, 3)
    return found


def test_a_chain_goes_back_and_goes_on_as_if_what_was_lost_had_never_been(warehouse: Warehouse) -> None:
    """The wrong order 2 is in all tables, and order 3 came after it. Nothing else plays a roll-back on real tables."""
    right, before = warehouse.content, warehouse.heads
    assert right == {"orders": [(1, 1, 3)], "details": [(1, 15)], "revenue": [(15,)]}
    warehouse.order(2, 1, 999)
    warehouse.order(3, 2, 1)
    wrong = warehouse.content
    assert wrong["revenue"] == [(15 + 999 * 5 + 7,)]
    plan = warehouse.plan(before["orders"])
    assert {table.table.rpartition(".")[2]: table.target for table in plan.going_back} == before
    assert (plan.is_whole, plan.belong_together) == (True, True)
    assert [(job.keeps, job.moves) for job in plan.jobs if job.group] == [(1, True)]
    name = warehouse.roll_back(plan)
    assert (warehouse.content, warehouse.differences()) == (right, (True, []))
    warehouse.undo(name)
    assert warehouse.content == wrong
    name = warehouse.roll_back(warehouse.plan(before["orders"]))
    warehouse.order(3, 2, 1)
    assert warehouse.content == {"orders": [(1, 1, 3), (3, 2, 1)], "details": [(1, 15), (3, 7)], "revenue": [(22,)]}
    assert warehouse.differences() == (True, [])
    with pytest.raises(RollbackRefusedError, match="what has come since would be lost"):
        warehouse.undo(name)


@pytest.mark.parametrize("warehouse", FORMATS, indirect=True)
@pytest.mark.long
def test_a_data_version_goes_back_and_its_job_goes_on_behind_it(warehouse: Warehouse) -> None:
    """By the name of a group, with a job that runs: what it read and wrote in versions 3 and 4 is lost, and it makes
    version 3 anew of what comes then. Nothing else rolls a data version back on real tables."""
    warehouse.order(2, 2, 1)
    right = warehouse.content
    warehouse.order(3, 1, 999)
    warehouse.order(4, 1, 1)
    wrong = warehouse.content
    assert warehouse.versions() == [1, 2, 3, 4, 4]
    plan = warehouse.plan_version(2)
    assert (plan.is_whole, plan.belong_together, [(job.keeps, job.moves) for job in plan.jobs if job.group]) == (
        True,
        True,
        [(2, True)],
    )
    name = warehouse.roll_back(plan)
    assert (warehouse.content, warehouse.versions()) == (right, [1, 2, 2])
    warehouse.undo(name)
    assert (warehouse.content, warehouse.versions()) == (wrong, [1, 2, 3, 4, 4])
    warehouse.roll_back(warehouse.plan_version(2))
    warehouse.order(4, 1, 1)
    assert warehouse.versions() == [1, 2, 3, 3]
    assert warehouse.content["details"] == [(1, 15), (2, 7), (4, 5)]
    assert (warehouse.content["revenue"], warehouse.differences()) == ([(27,)], (True, []))


@pytest.mark.parametrize("warehouse", FORMATS, indirect=True)
@pytest.mark.long
def test_snapshots_that_have_expired_are_found_before_anything_is_done(warehouse: Warehouse) -> None:
    """By the formats' own expiry: of a table of the chain, and of the one that the user named. Delta's VACUUM leaves
    a version that the log knows, and that can't be given back."""
    before = warehouse.heads
    warehouse.order(2, 1, 999)
    wrong = warehouse.content
    warehouse.expire("revenue")
    unaware, plan = warehouse.plan(before["orders"]), warehouse.plan(before["orders"], looks=True)
    assert [table.table.rpartition(".")[2] for table in plan.stuck] == ["revenue"]
    assert f"can't go back to that: {GONE[warehouse.format]}" in plan.stuck[0].problems[0]
    with pytest.raises(RollbackRefusedError, match=f"revenue can't go back to .*{GONE[warehouse.format]}"):
        warehouse.roll_back(unaware)
    warehouse.run("INSERT OVERWRITE {db}.orders SELECT * FROM {db}.orders")
    warehouse.expire("orders")
    with pytest.raises(ConfigurationError, match=r"orders can't go back .*so nothing was done"):
        warehouse.plan(before["orders"], looks=True)
    assert (warehouse.content, rollbacks_in(warehouse.store)) == (wrong, [])


@pytest.mark.parametrize("warehouse", FORMATS, indirect=True)
@pytest.mark.long
def test_what_went_back_stays_readable_when_snapshots_expire_and_isnt_undone_then(warehouse: Warehouse) -> None:
    """The formats' own expiry, of all that may go: Paimon's deletes files that the overwrite of revenue removed, though
    the roll-back has them again. Undoing is refused for each table whose former snapshot has gone, and none changes."""
    right, before = warehouse.content, warehouse.heads
    warehouse.order(2, 1, 999)
    name = warehouse.roll_back(warehouse.plan(before["orders"], looks=True))
    warehouse.expire("orders", "details", "revenue")
    assert warehouse.content == right
    with pytest.raises(RollbackRefusedError) as refused:
        warehouse.undo(name)
    assert all(f"{table} can't go to" in str(refused.value) for table in ("orders", "details", "revenue"))
    assert RollbackJournal(warehouse.store, name).load().state is RollbackState.ROLLED_BACK
    warehouse.run("INSERT INTO {db}.revenue VALUES (7)")
    warehouse.expire("revenue")
    assert warehouse.content == {**right, "revenue": [(7,), *right["revenue"]]}


@pytest.mark.long
def test_a_command_that_is_killed_goes_on_where_it_was(driver: Driver, tmp_path: Path, store: Store) -> None:
    """The whole command, in a session of its own: killed by signal 9 when the second table has gone back and nobody was
    told of that, gone on with, and undone."""
    warehouse = Warehouse(driver, "iceberg", tmp_path, store)
    warehouse.order(1, 1, 3)
    right, before = warehouse.content, warehouse.heads["orders"]
    warehouse.order(2, 1, 999)
    wrong = warehouse.content
    words = ("to", f"{warehouse.db}.orders@{before}", "--chain", "--yes")
    assert warehouse.command(2, *words) == -signal.SIGKILL
    assert warehouse.content == {**right, "revenue": wrong["revenue"]}
    [status] = rollbacks_in(store)
    assert status.state is RollbackState.ROLLING_BACK
    assert warehouse.command(0, "resume", status.name) == 0
    assert (warehouse.content, warehouse.differences()) == (right, (True, []))
    assert warehouse.command(0, "undo", status.name, "--yes") == 0
    assert warehouse.content == wrong
