"""A stateful query on Iceberg goes on from a fork of its checkpoint, from a table that was made of a right snapshot.

What Delta's cases don't have: offsets that count files, a file in `sources/0` that says where the stream began, and a
sink whose history was rolled back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.versions.forks import ForkError, SourceMove, plan_fork, write_fork
from tests.kit.spark.driver import ICEBERG, Driver, driver_fixture
from tests.kit.spark.streams import Case, run_fed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.long, pytest.mark.needs("iceberg")]

driver = driver_fixture(
    ICEBERG, spark__sql__shuffle__partitions="2", **{"spark__sql__catalog__ice__cache-enabled": "false"}
)


class Totals:
    """Sums of orders by item, as a query keeps them in a table."""

    def __init__(self, driver: Driver) -> None:
        self.case = Case(driver, "ice")
        self.db = f"ice.{self.case.db}"
        driver.run(
            f"CREATE TABLE {self.db}.orders (item STRING, price INT) USING iceberg",
            f"CREATE TABLE {self.db}.totals (item STRING, total BIGINT) USING iceberg",
        )

    def feed(self, *rows: str, table: str = "orders") -> None:
        for each in rows:
            self.case.driver.run(f"INSERT INTO {self.db}.{table} VALUES {each}")

    def run(self, checkpoint: str, *feeds: Callable[[], object], table: str = "orders") -> None:
        frame = self.case.spark.readStream.table(f"{self.db}.{table}")
        frame = frame.groupBy("item").agg({"price": "sum"}).toDF("item", "total")
        writer = self.case.writer(frame, checkpoint).format("iceberg").outputMode("complete")
        run_fed(lambda: writer.toTable(f"{self.db}.totals"), *feeds)

    def rows(self) -> list[tuple[str, int]]:
        return sorted(tuple(row) for row in self.case.driver.rows(f"SELECT item, total FROM {self.db}.totals"))

    def snapshots(self, table: str) -> list[int]:
        rows = self.case.driver.rows(f"SELECT snapshot_id FROM {self.db}.{table}.snapshots ORDER BY committed_at")
        return [row[0] for row in rows]

    def directory(self, table: str) -> str:
        return str(self.case.driver.warehouse / "ice" / self.case.db / table)

    def batch_at(self, snapshot: int) -> int:
        """The newest batch behind which the query had read that snapshot, by the checkpoint."""
        found = self.case.checkpoint() / "offsets"
        for path in sorted(found.glob("[0-9]*"), key=lambda path: -int(path.name)):
            if json.loads(path.read_text().splitlines()[2])["snapshot_id"] == snapshot:
                return int(path.name)
        raise AssertionError("no batch ended with it")

    def fork(self, batch: int, *moves: SourceMove) -> Path:
        target = self.case.checkpoint("fork")
        write_fork(plan_fork(str(self.case.checkpoint()), batch, str(target), moves))
        return target


def test_a_fork_goes_on_from_a_copy_of_a_right_snapshot(driver: Driver) -> None:
    totals = Totals(driver)
    totals.feed("('a', 10), ('b', 20)")
    totals.run(
        "checkpoint",
        lambda: totals.feed("('a', 30)"),
        lambda: totals.feed("('b', 4000)"),
        lambda: totals.feed("('a', 50)"),
    )
    assert totals.rows() == [("a", 90), ("b", 4020)]
    right = totals.snapshots("orders")[1]
    driver.run(
        f"CREATE TABLE {totals.db}.mended USING iceberg AS SELECT * FROM {totals.db}.orders VERSION AS OF {right}"
    )
    begin = totals.snapshots("mended")[0]
    totals.feed("('b', 40)", "('a', 50)", table="mended")
    move = SourceMove(totals.directory("orders"), totals.directory("mended"), begin)

    fork = totals.fork(totals.batch_at(right), move)
    totals.run("fork", table="mended")

    assert json.loads((fork / "sources" / "0" / "offsets" / "0").read_text())["snapshot_id"] == begin
    assert totals.rows() == [("a", 90), ("b", 60)]


def test_a_fork_goes_on_in_its_own_table(driver: Driver) -> None:
    """Where the job was wrong and not the orders: the same table, and a sink that was rolled back."""
    totals = Totals(driver)
    totals.feed("('a', 10)")
    totals.run("checkpoint", lambda: totals.feed("('a', 30)"), lambda: totals.feed("('a', 50)"))
    batch = totals.batch_at(totals.snapshots("orders")[1])
    back = totals.snapshots("totals")[1]
    driver.run(f"CALL ice.system.rollback_to_snapshot('{totals.case.db}.totals', {back})")
    assert totals.rows() == [("a", 40)]

    totals.fork(batch)
    totals.run("fork")

    assert totals.rows() == [("a", 90)]


def test_snapshots_that_a_stream_cant_begin_behind(driver: Driver) -> None:
    totals = Totals(driver)
    totals.feed("('a', 10)")
    totals.run("checkpoint")
    driver.run(f"CREATE TABLE {totals.db}.mended USING iceberg AS SELECT * FROM {totals.db}.orders")
    begin = totals.snapshots("mended")[0]
    driver.run(f"DELETE FROM {totals.db}.mended WHERE item = 'a'")
    deleted = totals.snapshots("mended")[1]
    old, new = totals.directory("orders"), totals.directory("mended")

    for move, words in (
        (SourceMove(old, new), "say which snapshot"),
        (SourceMove(old, new, deleted), "of the kind delete"),
        (SourceMove(old, new, totals.snapshots("orders")[0]), "has no snapshot"),
        (SourceMove("0", new, begin), "name the directory"),
        (SourceMove(new, new, begin), "no source of the query reads"),
    ):
        with pytest.raises(ForkError, match=words):
            totals.fork(0, move)
