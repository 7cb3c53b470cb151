"""How many rows and bytes a write of files reports. The truth is what is in the directory: Spark wraps a plan with a
shuffle or a cache in an adaptive one, and that is where these counts were lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import Committed
from tests.kit.spark.driver import PLAIN, Driver, of, shared_driver_fixture, the

pytestmark = pytest.mark.xdist_group("spark-plain")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


driver = shared_driver_fixture(PLAIN)


def shuffled(spark: SparkSession) -> DataFrame:
    return spark.range(1000).selectExpr("id % 7 AS k", "id").groupBy("k").sum("id").toDF("k", "total")


def cached(spark: SparkSession) -> DataFrame:
    return spark.range(40).selectExpr("id AS k", "id AS total").cache()


QUERIES: dict[str, tuple[Callable[[SparkSession], DataFrame], int]] = {
    "a shuffle": (shuffled, 7),
    "a cache": (cached, 40),
    "both": (lambda spark: shuffled(spark).unionByName(cached(spark)), 47),
    "neither": (lambda spark: spark.range(5).selectExpr("id AS k", "id AS total"), 5),
    "a shuffle that is empty": (lambda spark: shuffled(spark).where("total < 0"), 0),
}


def append(frame: DataFrame, driver: Driver, name: str) -> Path:
    path = driver.warehouse / name
    frame.write.mode("append").json(str(path))
    return path


def overwrite_partitions(frame: DataFrame, driver: Driver, name: str) -> Path:
    path = driver.warehouse / name
    frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("k").parquet(str(path))
    return path


def save_table(frame: DataFrame, driver: Driver, name: str) -> Path:
    frame.write.format("parquet").saveAsTable(name)
    return driver.warehouse / "spark" / name


def insert(frame: DataFrame, driver: Driver, name: str) -> Path:
    frame.createOrReplaceTempView(f"{name}_view")
    driver.spark.sql(f"CREATE TABLE {name} (k BIGINT, total BIGINT) USING orc")
    driver.spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name}_view")
    return driver.warehouse / "spark" / name


WRITES = {each.__name__: each for each in (append, overwrite_partitions, save_table, insert)}


@pytest.mark.sample(6)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "query", [pytest.param(n, marks=pytest.mark.smoke) if n == "a shuffle" else n for n in QUERIES]
)
def test_rows_and_bytes_are_those_in_the_directory(driver: Driver, query: str, write: str) -> None:
    frame, rows = QUERIES[query]
    written: list[Path] = []
    name = driver.name()
    events = driver.events_of(lambda spark: written.append(WRITES[write](frame(spark), driver, name)))

    if rows == 0 and write == "append":
        assert of(Committed, events) == []
        return
    (output,) = the(Committed, events).outputs
    size = sum(each.stat().st_size for each in written[0].rglob("part-*"))
    assert (output.rows, output.bytes) == (rows, size)
