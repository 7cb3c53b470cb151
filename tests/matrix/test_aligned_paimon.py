"""Aligned jobs on Paimon: increments of its tables, and sinks that are written once, found by the users of commits."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater import versions
from headwater.errors import ConfigurationError
from headwater.versions.aligned import (
    AlignedBatch,
    OverwrittenSourceError,
    UnalignableTableError,
    UncertainWriteError,
)
from headwater.versions.aligned.checkpoints import Checkpoint
from tests.kit.spark.driver import PAIMON, Driver, driver_fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.needs("paimon"), pytest.mark.xdist_group("aligned paimon")]


driver = driver_fixture(PAIMON)


class Shop:
    """A source of one snapshot and two sinks, and a job that appends what is new, and adds to a total by MERGE."""

    def __init__(self, driver: Driver, place: Path) -> None:
        self.spark: SparkSession = driver.spark
        self.place = place
        self.db = f"pai.{driver.database('pai')}"
        self.orders, self.rows, self.total = (f"{self.db}.{name}" for name in ("orders", "rows", "total"))
        self.sql(
            f"CREATE TABLE {self.orders} (id INT, v STRING)",
            f"CREATE TABLE {self.rows} (id INT, v STRING, number BIGINT)",
            f"CREATE TABLE {self.total} (k INT, c BIGINT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')",
            f"INSERT INTO {self.total} VALUES (0, 0)",
        )
        self.add(1)
        self.seen: list[list[int]] = []

    def sql(self, *statements: str) -> None:
        for each in statements:
            self.spark.sql(each)

    def add(self, *ids: int) -> None:
        for each in ids:
            self.sql(f"INSERT INTO {self.orders} VALUES ({each}, 'a')")

    def query(self, name: str = "job", **more: Any) -> versions.aligned.AlignedQuery:
        return versions.aligned_query(
            self.db,
            {"orders": self.orders},
            name=name,
            checkpoint=str(self.place / name),
            store=str(self.place / "store.db"),
            spark=self.spark,
            **more,
        )

    def step(self, batch: AlignedBatch) -> None:
        new = batch.changes("orders")
        self.seen.append(sorted(row.id for row in new.collect()))
        batch.write(self.rows, new.selectExpr("id", "v", f"{batch.number}L AS number").writeTo(self.rows).append)
        merge = (
            f"MERGE INTO {self.total} t USING (SELECT 0 AS k, {batch.state('orders').count()}L AS c) s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET c = t.c + s.c"
        )
        batch.write(self.total, partial(self.spark.sql, merge))

    def begin_again(self, name: str = "job") -> None:
        """Make the newest barrier one that wasn't committed, as a kill before the checkpoint leaves it."""
        checkpoint = Checkpoint(str(self.place / name))
        found = checkpoint.newest()
        assert found is not None
        checkpoint.write(type(found)(found.number, found.cut, found.before, is_committed=False, sinks=found.sinks))

    def results(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        rows, total = (self.spark.table(each).collect() for each in (self.rows, self.total))
        return sorted(tuple(row) for row in rows), [tuple(row) for row in total]


@pytest.fixture
def shop(driver: Driver, tmp_path: Path) -> Shop:
    return Shop(driver, tmp_path)


def test_a_barrier_that_runs_again_writes_paimon_once(shop: Shop) -> None:
    """It finds increments that repeat or leave out rows, and a mark that doesn't get into a commit: of an append, or of
    a MERGE into a table with a key."""
    assert shop.query().run(shop.step) == 1
    shop.add(2, 3)
    assert shop.query().run(shop.step) == 2
    assert shop.seen == [[1], [2], [3]]
    written = shop.results()
    assert written == ([(1, "a", 1), (2, "a", 2), (3, "a", 3)], [(0, 1 + 2 + 3)])
    shop.begin_again()
    assert shop.query().run(shop.step) == 1
    assert shop.results() == written
    assert shop.spark.conf.get("spark.paimon.commit.user-prefix", None) is None


def test_a_barrier_of_paimon_that_ended_halfway_makes_what_is_missing(shop: Shop) -> None:
    """It finds another writer's commit that passes for the barrier's, and a write that is made twice or not at all."""
    shop.query().run(shop.step)
    shop.sql(f"INSERT INTO {shop.rows} VALUES (9, 'other', 0)")
    shop.add(2)

    def end_halfway(batch: AlignedBatch) -> None:
        new = batch.changes("orders").selectExpr("id", "v", f"{batch.number}L AS number")
        batch.write(shop.rows, new.writeTo(shop.rows).append)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.query().run(end_halfway)
    shop.query().run(shop.step)
    assert shop.results() == ([(1, "a", 1), (2, "a", 2), (9, "other", 0)], [(0, 1 + 2)])


IN_PLACE = "'bucket' = '-1'"
BESIDE = "'deletion-vectors.enabled' = 'true', 'bucket' = '1', 'bucket-key' = 'id'"


@pytest.mark.parametrize(("policy", "changes"), [("full", [2, 3]), ("ignore", [3])])
@pytest.mark.parametrize("properties", [IN_PLACE, BESIDE], ids=["in place", "beside"])
def test_rows_of_paimon_that_were_deleted_follow_the_policy(
    shop: Shop, properties: str, policy: str, changes: list[int]
) -> None:
    """It finds a DELETE that passes as an addition, or as a compaction: Paimon calls it so, by how a table keeps it."""
    table = f"{shop.db}.marked"
    shop.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ({properties})")
    shop.sql(f"INSERT INTO {table} VALUES (1), (2)")
    seen: list[list[int]] = []

    def step(batch: AlignedBatch) -> None:
        seen.append(sorted(row.id for row in batch.changes("t").collect()))

    def query(**more: Any) -> versions.aligned.AlignedQuery:
        checkpoint, store = str(shop.place / "marked"), str(shop.place / "store.db")
        given = {"name": "job", "checkpoint": checkpoint, "store": store, "spark": shop.spark, **more}
        return versions.aligned_query(table, {"t": table}, **given)

    query().run(step)
    shop.sql(f"DELETE FROM {table} WHERE id = 1", f"INSERT INTO {table} VALUES (3)")
    with pytest.raises(OverwrittenSourceError, match="changed or removed rows"):
        query(snapshots_per_barrier=2).run(step)
    query(overwrites=policy).run(step)
    assert seen == [[1, 2], changes]


@pytest.mark.parametrize("how", ["rolled back", "made again"])
def test_a_table_of_paimon_that_went_back_stops_the_job(shop: Shop, how: str) -> None:
    """It finds a snapshot that is taken for another one with its number, between two barriers and within one."""
    shop.add(2)

    def step(batch: AlignedBatch) -> None:
        shop.seen.append(sorted(row.id for row in batch.changes("orders").collect()))
        if batch.number == 2:
            if how == "rolled back":
                shop.sql(f"CALL pai.sys.rollback(table => '{shop.orders.removeprefix('pai.')}', version => '1')")
            else:
                shop.sql(f"DROP TABLE {shop.orders}", f"CREATE TABLE {shop.orders} (id INT, v STRING)")
                shop.add(1)
            shop.add(7, 8, 9)
        else:
            shop.add(3)

    with pytest.raises(UnalignableTableError, match="in a group of another name"):
        shop.query().run(step, trigger="continuous", poll_seconds=0.05)
    assert shop.seen == [[1, 2], [3]]


def test_a_write_of_paimon_that_cant_be_looked_for_stops_the_job(shop: Shop) -> None:
    """It finds a barrier that is written again because its snapshot has expired."""
    shop.query().run(shop.step)
    shop.sql(f"INSERT INTO {shop.rows} VALUES (9, 'other', 0)")
    shop.sql(f"CALL pai.sys.expire_snapshots(table => '{shop.rows.removeprefix('pai.')}', retain_max => 1)")
    shop.begin_again()
    with pytest.raises(UncertainWriteError, match="have expired"):
        shop.query().run(shop.step)


def test_a_sink_of_paimon_whose_changes_are_two_commits_is_refused(shop: Shop) -> None:
    sink = f"{shop.db}.beside"
    shop.sql(f"CREATE TABLE {sink} (id INT) TBLPROPERTIES ({BESIDE})")
    with pytest.raises(ConfigurationError, match="deletion vectors"):
        shop.query().run(lambda batch: batch.write(sink, lambda: None))


def test_a_source_that_is_a_branch_is_read_there(shop: Shop) -> None:
    """It finds a branch that is looked at on main. Truth: the rows that were written to it."""
    shop.sql(f"CALL pai.sys.create_branch(table => '{shop.orders.removeprefix('pai.')}', branch => 'test')")
    main, branch = shop.orders, f"{shop.db}.`orders$branch_test`"
    shop.orders = branch
    shop.add(2)
    seen: list[tuple[list[int], list[int]]] = []

    def look(batch: AlignedBatch) -> None:
        rows = (batch.changes("orders"), batch.state("orders"))
        changes, state = (sorted(row.id for row in each.collect()) for each in rows)
        seen.append((changes, state))

    shop.query().run(look)
    shop.orders = main
    shop.add(100)
    shop.orders = branch
    shop.add(3)
    shop.query().run(look)
    assert seen == [([2], [2]), ([3], [2, 3])]


def test_a_lookup_of_paimon_reads_the_snapshot_of_its_barrier(shop: Shop) -> None:
    """It finds a lookup of a table with a primary key that misses what replaced a row, or sees what came later."""
    prices = f"{shop.db}.prices"
    shop.sql(
        f"CREATE TABLE {prices} (id INT, price INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')",
        f"INSERT INTO {prices} VALUES (1, 10), (2, 20)",
        f"INSERT INTO {prices} VALUES (1, 11)",
    )
    seen: list[list[tuple[Any, ...]]] = []

    def step(batch: AlignedBatch) -> None:
        shop.sql(f"INSERT INTO {prices} VALUES (1, 99)")
        rows = batch.lookup("prices", batch.changes("orders"), on="id", how="left").select("id", "price")
        seen.append(sorted(tuple(row) for row in rows.collect()))
        job.stop()

    for _ in range(2):
        job = versions.aligned_query(
            f"{shop.db} prices",
            {"orders": shop.orders, "prices": prices},
            name="priced",
            checkpoint=str(shop.place / "priced"),
            store=str(shop.place / "store.db"),
            spark=shop.spark,
        )
        assert job.run(step) == 1
        shop.begin_again("priced")
    assert seen == [[(1, 11)], [(1, 11)]]
