"""A lens, and consistent reads, over Hudi's tables, which are read at an instant of their timeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lens import lens
from tests.kit.cases.consistent import Tables, explained, reading
from tests.kit.cases.lens import ids, refuses_frames_of_another_pin
from tests.kit.formats.hudi_place import hudi_driver_fixture
from tests.kit.spark.driver import Driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.needs("hudi"), pytest.mark.long]


driver = hudi_driver_fixture


def instants(driver: Driver, table: str) -> list[int]:
    """Those at which its rows were written, by Hudi's own column."""
    found = driver.rows(f"SELECT DISTINCT _hoodie_commit_time FROM {table}")
    return sorted(int(row[0]) for row in found)


def test_a_table_is_pinned_by_its_instant_and_written_elsewhere(driver: Driver) -> None:
    """Fails if a pinned table is read as it is now, or a write goes to the table that is redirected."""
    db, scratch = driver.database(), driver.database()
    table, out, other = f"spark_catalog.{db}.t", f"spark_catalog.{db}.out", f"spark_catalog.{scratch}.out"
    rest = f"spark_catalog.{db}.rest"
    driver.run(*(f"CREATE TABLE {each} (id INT) USING hudi" for each in (table, out, other, rest)))
    driver.run(*(f"INSERT INTO {table} VALUES ({number})" for number in (1, 2, 3)))
    first, second, _ = instants(driver, table)
    spark = driver.spark
    with lens(spark, pins={table: second}, redirects={out: other}):
        assert ids(spark.sql(f"SELECT id FROM {table}")) == [1, 2]
        assert ids(spark.table(table).select("id")) == [1, 2]
        assert ids(spark.sql(f"SELECT id FROM range(9) r WHERE id IN (SELECT id FROM {table})")) == [1, 2]
        assert ids(spark.sql(f"WITH c AS (SELECT * FROM {table}) SELECT id FROM c")) == [1, 2]
        spark.sql(f"INSERT INTO {out} SELECT id FROM {table}")
        spark.sql(f"UPDATE {out} SET id = 7 WHERE id = 1")
        assert ids(spark.sql(f"SELECT id FROM {table} TIMESTAMP AS OF '{first}'")) == [1], "as it is written"
        with pytest.raises(Exception, match=f"says nothing of {rest}"):
            spark.table(rest)
        for statement in (f"DELETE FROM {table} WHERE id = 1", f"INSERT INTO {table} VALUES (9)"):
            with pytest.raises(Exception, match="doesn't redirect"):
                spark.sql(statement)
        place = spark.catalog.getDatabase(db).locationUri
        with pytest.raises(Exception, match="as it is now"):
            spark.read.format("hudi").load(f"{place}/t")
    refuses_frames_of_another_pin(spark, table, first, second)
    assert ids(spark.sql(f"SELECT id FROM {table}")) == [1, 2, 3]
    assert ids(spark.sql(f"SELECT id FROM {out}")) == []
    assert ids(spark.sql(f"SELECT id FROM {other}")) == [2, 7]


def is_of_cache(frame: DataFrame) -> bool:
    inside: Any = frame
    return "InMemoryRelation" in str(inside._jdf.queryExecution().withCachedData())


def test_data_cached_of_one_instant_isnt_taken_for_another(driver: Driver) -> None:
    """Fails if Spark finds the cached newest rows for a pinned read, or pinned rows once the lens has ended."""
    table = f"spark_catalog.{driver.database()}.t"
    driver.run(f"CREATE TABLE {table} (id INT) USING hudi")
    driver.run(*(f"INSERT INTO {table} VALUES ({number})" for number in (1, 2)))
    first, _ = instants(driver, table)
    spark = driver.spark
    try:
        spark.sql(f"CACHE TABLE {table}")
        assert spark.table(table).select("id").cache().count() == 2
        assert is_of_cache(spark.table(table))
        with lens(spark, pins={table: first}):
            assert not is_of_cache(spark.table(table))
            assert ids(spark.table(table).select("id")) == [1]
            assert ids(spark.sql(f"SELECT id FROM {table} WHERE id > 0")) == [1]
            assert spark.table(table).select("id").cache().count() == 1
            assert spark.table(table).cache().count() == 1
        assert ids(spark.table(table).select("id")) == [1, 2]
    finally:
        spark.catalog.clearCache()
    with lens(spark, pins={table: first}):
        spark.sql(f"CACHE TABLE {table}")
        assert ids(spark.table(table).select("id")) == [1]
    assert ids(spark.table(table).select("id")) == [1, 2], "CACHE TABLE of a pinned read"
    spark.catalog.clearCache()


def test_a_session_reads_what_belongs_together(driver: Driver, tmp_path: Path) -> None:
    """Fails if nothing is pinned, or to an instant that isn't that of the rows."""
    tables = Tables(driver, "hudi", tmp_path / "store.db")
    first = instants(driver, tables.c)[0]
    with reading(driver.spark, tables.store) as spark:
        assert tables.alone(driver.spark) == [2]
        assert tables.alone(spark) == []
        shown = explained(spark, f"SELECT b.id FROM {tables.b} b JOIN {tables.c} c USING (id)")
        assert f"{tables.c} VERSION AS OF {first} (newest)" in shown
        tables.copy(tables.c)
        assert tables.alone(spark) == []
        assert ids(spark.sql(f"SELECT b.id FROM {tables.b} b JOIN {tables.c} c USING (id)")) == [1, 2]
