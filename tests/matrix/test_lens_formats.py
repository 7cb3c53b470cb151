"""A lens over Paimon and Delta, each in its own way of time travel. Version n of a table holds the ids from 1 to n."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.lens import lens
from tests.kit.cases.lens import READS, fill, ids, refuses_frames_of_another_pin
from tests.kit.spark.driver import DELTA, PAIMON, shared_driver

pytestmark = [pytest.mark.long]
QUICK = {"spark__databricks__delta__snapshotPartitions": "2"}


@pytest.mark.needs("paimon")
@pytest.mark.xdist_group("spark-paimon")
def test_paimon(java_home: Path) -> None:
    """Fails if a pinned Paimon table is read as it is now, or refused although it is pinned; and if a snapshot that it
    doesn't have is found only when the plan is run, by an error without the table's name."""
    driver = shared_driver(java_home, PAIMON)
    db, scratch = driver.database("pai"), driver.database("pai")
    table = f"pai.{db}.t"
    fill(driver, table, "paimon")
    for each in (db, scratch):
        driver.run(f"CREATE TABLE pai.{each}.out (id INT) USING paimon")
    spark = driver.spark
    with lens(spark, pins={table: 2}, redirects={f"pai.{db}.out": f"pai.{scratch}.out"}):
        for way in ("sql", "spark.table", "IN", "CTE"):
            assert ids(READS[way](spark, table)) == [1, 2], way
        spark.sql(f"INSERT INTO pai.{db}.out SELECT * FROM {table}")
        with pytest.raises(Exception, match="as it is now"):
            spark.read.format("paimon").load(str(driver.warehouse / "pai" / f"{db}.db" / "t"))
        with pytest.raises(Exception, match="doesn't redirect"):
            spark.sql(f"DELETE FROM {table} WHERE id = 1")
    with (
        lens(spark, pins={table: 99}),
        pytest.raises(Exception, match=f"{table} at 99; it has the snapshots from 1 to 3"),
    ):
        spark.table(table)
    with lens(spark, pins={table: "a_tag"}), pytest.raises(Exception, match=rf"{table} at a_tag \(.* from 1 to 3"):
        spark.table(table)
    refuses_frames_of_another_pin(spark, table, 1, 2)
    assert ids(spark.table(f"pai.{db}.out")) == []
    assert ids(spark.table(f"pai.{scratch}.out")) == [1, 2]
    assert ids(spark.table(table)) == [1, 2, 3]


@pytest.mark.needs("delta")
@pytest.mark.xdist_group("spark-delta")
def test_delta(java_home: Path) -> None:
    """Fails if a pinned Delta table is read as it is now, if what Delta reads to run its own commands is refused, or if
    a version that isn't there is an error without the table's name."""
    driver = shared_driver(java_home, DELTA, **QUICK)
    db = driver.database()
    table, target = f"spark_catalog.{db}.t", f"spark_catalog.{db}.o"
    fill(driver, table, "delta")
    driver.run(f"CREATE TABLE {target} USING delta AS SELECT 1 AS id")
    spark = driver.spark
    path = str(spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["location"])
    with lens(spark, pins={table: 2, path: 1}, redirects={}):
        assert ids(spark.sql(f"SELECT * FROM {db}.t")) == [1, 2]
        assert ids(spark.table(table)) == [1, 2]
        assert ids(spark.read.format("delta").load(path)) == [1]
        assert ids(spark.sql(f"SELECT * FROM delta.`{path}`")) == [1]
        spark.sql(f"MERGE INTO {target} a USING {table} b ON a.id = b.id WHEN NOT MATCHED THEN INSERT *")
        spark.sql(f"UPDATE {target} SET id = 5 WHERE id = 1")
    assert ids(spark.table(target)) == [2, 5]
    refuses_frames_of_another_pin(spark, table, 1, 2)
    with lens(spark, pins={table: 99, path: 98}):
        with pytest.raises(Exception, match=rf"{table} at 99 \(.* Available versions: \[0, 3\]\)"):
            spark.table(table)
        with pytest.raises(Exception, match=r"/t at 98 \(.* Available versions: \[0, 3\]\)"):
            spark.read.format("delta").load(path)
    with lens(spark, pins={table: 2}, redirects={f"spark_catalog.{db}.x": target}):
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET id = 9", f"INSERT INTO {table} VALUES (9)"):
            with pytest.raises(Exception, match="doesn't redirect"):
                spark.sql(statement)
    assert ids(spark.table(table)) == [1, 2, 3]
