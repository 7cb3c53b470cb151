"""A correction is planned from what Spark's capture really reports: the snapshots that it calls wrong are those whose
own rows are, by time travel.

Each row carries whether it was made from a wrong one, so the truth is in the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from headwater.versions.correction import MirrorKind, TableVerdict, plan_correction
from tests.kit.lineage.scripted_producer import store
from tests.kit.spark.driver import ICEBERG, Driver, driver_fixture
from tests.kit.stores import memory_connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.needs("iceberg")]

driver = driver_fixture(ICEBERG)
JOIN = (
    "SELECT o.id, p.name, o.amount * p.price AS total, o.bad "
    "FROM {db}.orders o JOIN {db}.products p ON o.product = p.id"
)
DETAILS = f"MERGE INTO {{db}}.details d USING ({JOIN}) n ON d.id = n.id WHEN NOT MATCHED THEN INSERT *"
REVENUE = "INSERT OVERWRITE {db}.revenue SELECT sum(total), bool_or(bad) FROM {db}.details"
TOP10 = "INSERT OVERWRITE {db}.top10 SELECT name, sum(total), bool_or(bad) FROM {db}.details GROUP BY name"
BEFORE = [
    "INSERT INTO {db}.products VALUES (1, 'a', 5), (2, 'b', 7)",
    "INSERT INTO {db}.orders VALUES (1, 1, 3, false), (2, 2, 4, false)",
    DETAILS,
    REVENUE,
]
WRONG = "INSERT INTO {db}.orders VALUES (3, 1, 999, true)"
AFTER = [
    DETAILS,
    REVENUE,
    TOP10,
    "INSERT OVERWRITE {db}.report SELECT * FROM {db}.revenue",
    "INSERT INTO {db}.orders VALUES (4, 2, 1, false)",
    DETAILS,
    "INSERT OVERWRITE {db}.report SELECT sum(price), false FROM {db}.products",
    "INSERT INTO {db}.prices SELECT id, price, false FROM {db}.products",
]
TABLES = {
    "products": "id INT, name STRING, price INT",
    "orders": "id INT, product INT, amount INT, bad BOOLEAN",
    "details": "id INT, name STRING, total INT, bad BOOLEAN",
    "revenue": "total BIGINT, bad BOOLEAN",
    "top10": "name STRING, total BIGINT, bad BOOLEAN",
    "report": "total BIGINT, bad BOOLEAN",
    "prices": "id INT, price INT, bad BOOLEAN",
}


def snapshots_of(spark: SparkSession, table: str) -> list[int]:
    rows = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
    return [row.snapshot_id for row in rows]


def bad_snapshots(spark: SparkSession, tables: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return the snapshots of each table that have a row which is marked, found by time travel."""
    looks = [
        f"SELECT '{table}' AS name, {snapshot} AS id FROM {table} VERSION AS OF {snapshot} WHERE bad"
        for table, snapshots in tables.items()
        for snapshot in snapshots
    ]
    found: dict[str, list[int]] = {}
    for row in spark.sql(" UNION ".join(looks)).collect():
        found.setdefault(row.name.rpartition(".")[2], []).append(row.id)
    return found


def test_wrong_snapshots_are_those_with_wrong_rows(driver: Driver) -> None:
    db = f"ice.{driver.database('ice')}"
    spark = driver.spark
    created = [f"CREATE TABLE {db}.{table} ({columns}) USING iceberg" for table, columns in TABLES.items()]
    events = driver.events_of(*created, *(each.format(db=db) for each in [*BEFORE, WRONG]))
    source = snapshots_of(spark, f"{db}.orders")[-1]
    events += driver.events_of(*(each.format(db=db) for each in AFTER))
    with memory_connection() as connection:
        store(connection, events)
        plan = plan_correction(connection, f"{db}.orders@{source}")
    found = {table.table.rpartition(".")[2]: table for table in plan.tables}
    made = {f"{db}.{table}": snapshots_of(spark, f"{db}.{table}") for table in TABLES if table != "products"}
    truth = {name: sorted(ids) for name, ids in bad_snapshots(spark, made).items()}
    assert {name: sorted(table.snapshots) for name, table in found.items()} == truth
    assert {name for name, table in found.items() if table.verdict is TableVerdict.RIGHT} == {"report"}
    assert list(found)[:2] == ["orders", "details"]
    assert {table.mirror for table in plan.corrected} == {MirrorKind.BRANCH}
    assert found["details"].last_right == made[f"{db}.details"][0]
    assert found["orders"].starts_at == source
    assert (plan.uncorrectable, plan.written.rows > 0) == ((), True)
