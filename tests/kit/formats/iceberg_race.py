"""Writers that race into the same Iceberg tables, and what their own rows say of each snapshot."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.events import Committed, Event
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import ICEBERG, Driver, of
from tests.kit.spark.session import spark_session
from tests.kit.threads import in_threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = 2
RETRIES = "'commit.retry.num-retries'='100','commit.retry.min-wait-ms'='10','commit.retry.max-wait-ms'='200'"


def tables_of(driver: Driver) -> str:
    """A database with tables that several write, w0 …, and one that is read, r."""
    db = driver.database("ice")
    for number in range(TABLES):
        driver.run(f"CREATE TABLE ice.{db}.w{number} (writer STRING, n INT) USING iceberg TBLPROPERTIES ({RETRIES})")
    driver.run(f"CREATE TABLE ice.{db}.r (n INT) USING iceberg TBLPROPERTIES ({RETRIES})")
    return db


def write(spark: SparkSession, db: str, writer: str, commits: int) -> None:
    """Each row says who wrote it, and how much of r there was then: so each snapshot has its own truth."""
    for n in range(commits):
        spark.sql(f"INSERT INTO ice.{db}.r VALUES ({n})")
        counted = f"SELECT '{writer}-{n}', cast(count(n) AS INT) FROM ice.{db}.r WHERE n >= 0"
        spark.sql(f"INSERT INTO ice.{db}.w{n % TABLES} {counted}")


def race(driver: Driver, threads: int, commits: int) -> tuple[str, list[Event]]:
    """One session, several threads."""
    db = tables_of(driver)

    def work(spark: SparkSession) -> None:
        in_threads(threads, lambda number: write(spark, db, f"t{number}", commits))

    return db, driver.events_of(work)


def rows_of(driver: Driver, table: str) -> dict[int, tuple[str, int]]:
    """By snapshot: the one row that it added, as Iceberg's own changes tell it."""
    return {row["_commit_snapshot_id"]: (row.writer, row.n) for row in driver.rows(f"SELECT * FROM {table}.changes")}


def check(driver: Driver, db: str, events: list[Event], commits: int) -> None:
    """Wrong: none. Missing: none. Every statement's snapshot has the row that this statement wrote, made of as many
    rows of r as there were in the snapshot reported as read."""
    home = driver.warehouse / "ice" / db
    truth = {f"w{n}": metadata_at(home / f"w{n}") for n in range(TABLES)} | {"r": metadata_at(home / "r")}
    counts = {key: int(each["summary"]["total-records"]) for key, each in truth["r"].snapshots.items()}
    added = {f"w{n}": rows_of(driver, f"ice.{db}.w{n}") for n in range(TABLES)}
    seen: set[int] = set()
    for committed in of(Committed, events):
        output = committed.outputs[0]
        assert output.table is not None
        assert output.snapshot is not None
        metadata = truth[output.table.table]
        assert output.parent == metadata.snapshots[output.snapshot].get("parent-snapshot-id")
        seen.add(output.snapshot)
        if output.table.table != "r":
            (read,) = committed.inputs
            assert read.snapshot is not None
            assert counts[read.snapshot] == added[output.table.table][output.snapshot][1]
    assert len(seen) == len(of(Committed, events)) == commits


def made_in(driver: Driver, db: str) -> int:
    """How many snapshots its tables have."""
    home = driver.warehouse / "ice" / db
    return sum(len(metadata_at(home / table).ids) for table in ("r", *(f"w{n}" for n in range(TABLES))))


def main(warehouse: str, db: str, commits: str) -> None:
    """The other application."""
    conf = {key: value.replace("{warehouse}", warehouse) for key, value in ICEBERG.conf.items()}
    conf["spark.jars.packages"] = ",".join(ICEBERG.packages)
    with spark_session(Path(os.environ["JAVA_HOME"]), **conf) as spark:
        print("ready", flush=True)
        write(spark, db, "other", int(commits))


if __name__ == "__main__":
    main(*sys.argv[1:])
