"""Tables of Iceberg and Delta in one Spark session, and a job on both, for tests of aligned jobs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headwater.versions.aligned import AlignedBatch, aligned_query
from tests.kit.spark.session import spark_session
from tests.kit.spark.versions import packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.versions.aligned import AlignedQuery

GROUP: Final = "shop"
ORDERS: Final = "ice.db.orders"
PRODUCTS: Final = "default.products"
SOURCES: Final = {"orders": ORDERS, "products": PRODUCTS}


def warehouse_conf(place: Path) -> dict[str, str]:
    return {
        "spark.jars.packages": ",".join([*packages("iceberg"), *packages("delta")]),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
        "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(place / "ice"),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(place / "delta"),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
    }


@contextmanager
def warehouse_session(java_home: Path, place: Path) -> Generator[SparkSession]:
    """A session that knows all tables of the place: Spark's own catalog forgets those of Delta when it ends."""
    with spark_session(java_home, **warehouse_conf(place)) as spark:
        for each in sorted((place / "delta").glob("*/_delta_log")):
            spark.sql(f"CREATE TABLE IF NOT EXISTS default.{each.parent.name} USING delta LOCATION '{each.parent}'")
        yield spark


def create_sources(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    spark.sql(f"CREATE TABLE {ORDERS} (id INT, v STRING) USING iceberg")
    spark.sql(f"CREATE TABLE {PRODUCTS} (id INT, v STRING) USING delta PARTITIONED BY (v)")
    add_snapshots(spark, 0)


def add_snapshots(spark: SparkSession, number: int) -> None:
    """A snapshot of each source, with rows that no other has."""
    spark.sql(f"INSERT INTO {ORDERS} VALUES ({2 * number}, 'a'), ({2 * number + 1}, 'b')")
    spark.sql(f"INSERT INTO {PRODUCTS} VALUES ({number}, 'p {number % 3}%')")


def create_sinks(spark: SparkSession, job: str) -> None:
    for name, form in ((f"ice.db.{job}", "iceberg"), (f"default.{job}", "delta")):
        spark.sql(f"CREATE TABLE {name}_rows (id INT, v STRING, number BIGINT) USING {form}")
        spark.sql(f"CREATE TABLE {name}_total (k INT, c BIGINT) USING {form}")
        spark.sql(f"INSERT INTO {name}_total VALUES (0, 0)")


def step_of(job: str) -> Callable[[AlignedBatch], None]:
    """A function that appends what is new, and adds to a total: a barrier that counts twice shows in both."""

    def step(batch: AlignedBatch) -> None:
        for source, name in (("orders", f"ice.db.{job}"), ("products", f"default.{job}")):
            rows = batch.changes(source).selectExpr("id", "v", f"{batch.number}L AS number")
            batch.write(f"{name}_rows", rows.writeTo(f"{name}_rows").append)
            count = batch.state(source).count()
            merge = (
                f"MERGE INTO {name}_total t USING (SELECT 0 AS k, {count}L AS c) s ON t.k = s.k "
                "WHEN MATCHED THEN UPDATE SET c = t.c + s.c"
            )
            batch.write(f"{name}_total", partial(batch.spark.sql, merge))

    return step


def query_of(spark: SparkSession, job: str, place: Path, start: str | int = "newest") -> AlignedQuery:
    return aligned_query(
        GROUP,
        SOURCES,
        name=job,
        checkpoint=str(place / "checkpoints" / job),
        store=str(place / "store.db"),
        start=start,
        spark=spark,
    )


def results_of(spark: SparkSession, job: str) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a job's sinks."""
    found = {}
    for name in (f"ice.db.{job}", f"default.{job}"):
        for table in ("rows", "total"):
            sink = f"{name}_{table}"
            found[sink.replace(job, "job")] = sorted(tuple(row) for row in spark.table(sink).collect())
    return found
