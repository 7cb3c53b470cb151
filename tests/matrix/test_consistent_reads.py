"""A block that reads tables at versions which belong together. Each table has the rows of the version that it was made
from, so what was read shows in the rows.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.lineage.client import Lineage
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from headwater.versions import NoAlignmentError, reading
from tests.kit.cases import consistent as consistent_cases
from tests.kit.cases.lens import ids
from tests.kit.spark.driver import DELTA, ICEBERG, Driver, shared_driver_fixture, together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-iceberg-delta"), pytest.mark.needs("iceberg", "delta"), pytest.mark.long]


driver = shared_driver_fixture(together(ICEBERG, DELTA), spark__databricks__delta__snapshotPartitions="1")


class Tables:
    """`b` and `c` are made from `a`; `b` once more after `a` has grown. `d` is made from it then, and has no version of
    before."""

    def __init__(self, driver: Driver, store: str) -> None:
        db = f"ice.{driver.database('ice')}"
        self.a, self.b, self.c, self.d = (f"{db}.{name}" for name in "abcd")
        events = driver.events_of(
            f"CREATE TABLE {self.a} (id INT) USING iceberg",
            f"INSERT INTO {self.a} VALUES (1)",
            f"CREATE TABLE {self.b} USING iceberg AS SELECT * FROM {self.a}",
            f"CREATE TABLE {self.c} USING iceberg AS SELECT * FROM {self.a}",
            f"INSERT INTO {self.a} VALUES (2)",
            f"INSERT OVERWRITE {self.b} SELECT * FROM {self.a}",
            f"CREATE TABLE {self.d} USING iceberg AS SELECT * FROM {self.a}",
        )
        with open_store(store) as opened:
            for event in events:
                opened.merge(map_event(event))


@pytest.fixture
def tables(driver: Driver, tmp_path: Path) -> Tables:
    return Tables(driver, str(tmp_path / "store.db"))


@pytest.fixture
def lineage(tables: Tables, tmp_path: Path) -> Generator[Lineage, None, None]:
    with Lineage.open(str(tmp_path / "store.db")) as opened:
        yield opened


def joined(spark: SparkSession, one: str, other: str) -> list[int]:
    """The ids that only one of them has."""
    return ids(spark.sql(f"SELECT id FROM {one} a FULL JOIN {other} b USING (id) WHERE a.id IS NULL OR b.id IS NULL"))


def test_a_block_reads_what_belongs_together(driver: Driver, tables: Tables, lineage: Lineage) -> None:
    """It finds pins that go to the wrong table, and versions that are chosen anew within the block."""
    spark = driver.spark
    assert joined(spark, tables.b, tables.c) == [2]
    with reading(spark, lineage, [tables.b, tables.c]) as found:
        assert joined(spark, tables.b, tables.c) == []
        assert [each.steps_behind for each in found.rows] == [1, 0]
        spark.sql(f"INSERT INTO {tables.c} VALUES (3)")
        assert ids(spark.table(tables.b)) == ids(spark.table(tables.c)) == [1]
        with pytest.raises(Exception, match=rf"says nothing of {tables.d}"):
            spark.table(tables.d).collect()
    assert ids(spark.table(tables.c)) == [1, 3]
    with reading(spark, lineage, [tables.d, tables.b], allowed=[tables.a]) as found:
        assert joined(spark, tables.b, tables.d) == []
        assert ids(spark.table(tables.b)) == ids(spark.table(tables.a)) == [1, 2]


def test_rows_of_another_block_are_refused(driver: Driver, tables: Tables, lineage: Lineage) -> None:
    """It finds a DataFrame of one block that is read in another, at another cut."""
    spark = driver.spark
    with reading(spark, lineage, [tables.b, tables.c]):
        frame = spark.table(tables.b)
    with (
        reading(spark, lineage, [tables.b, tables.d]),
        pytest.raises(Exception, match=rf"{tables.b} is read at .*DataFrame"),
    ):
        frame.join(spark.table(tables.d), "id")


def test_a_table_that_was_made_anew_is_refused(driver: Driver, tmp_path: Path) -> None:
    """It finds versions of a table that is gone which are read of the one that has its place now: Delta counts them
    from 0 again. Nobody watches who makes it."""
    made = consistent_cases.Tables(driver, "delta", tmp_path / "delta.db")
    spark = driver.spark
    with Lineage.open(str(tmp_path / "delta.db")) as lineage:
        with reading(spark, lineage, [made.b, made.c]):
            assert ids(spark.table(made.c)) == [1]
        driver.run(f"DROP TABLE {made.c}", f"CREATE TABLE {made.c} (id INT) USING delta")
        driver.run(*(f"INSERT INTO {made.c} VALUES ({number})" for number in (70, 71, 72)))
        with (
            reading(spark, lineage, [made.b, made.c]),
            pytest.raises(Exception, match=rf"can.t pin {made.c}: it is another table"),
        ):
            spark.table(made.c).collect()


def test_nothing_is_read_if_nothing_belongs_together(driver: Driver, tables: Tables, lineage: Lineage) -> None:
    with pytest.raises(NoAlignmentError, match="belong together"), reading(driver.spark, lineage, [tables.c, tables.d]):
        raise AssertionError("the block began")
    assert ids(driver.spark.table(tables.d)) == [1, 2]
