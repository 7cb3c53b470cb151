"""Spark sessions with lakes of each format, for tests of the lake store. Iceberg's catalog is a SQLite file, which
pyiceberg reads too."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.consumers.spark.pipeline.lake import LakeTables
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.rows import KINDS, Row, RowDigest, RowKind
from headwater.lineage.sql.tables import column_names
from tests.kit.spark.driver import DELTA, ICEBERG
from tests.kit.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "lake"
CATALOGS = {"iceberg": CATALOG, "delta": "spark_catalog"}


@dataclass(frozen=True)
class Lakes:
    """A session, and where its catalog is."""

    spark: SparkSession
    place: Path
    format: str = "iceberg"

    def address(self) -> LakeAddress:
        """A lake of a test's own."""
        return LakeAddress(CATALOGS[self.format], (f"lineage_{uuid4().hex[:12]}",), self.format)

    def properties(self) -> dict[str, str]:
        """The same catalog for pyiceberg."""
        return pyiceberg_properties(self.place)


def pyiceberg_properties(place: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/files"}


def spark_conf(place: Path, table_format: str = "iceberg") -> dict[str, str]:
    """The settings by which Spark knows the catalog."""
    if table_format != "iceberg":
        conf = {name: value.format(warehouse=place) for name, value in DELTA.conf.items()}
        return {**conf, "spark.sql.warehouse.dir": f"{place}/warehouse"}
    prefix = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.sql.extensions": ICEBERG.conf["spark.sql.extensions"],
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{place}/catalog.db",
        f"{prefix}.warehouse": f"file://{place}/files",
    }


def packages(table_format: str = "iceberg") -> str:
    import pyspark

    if table_format != "iceberg":
        return ",".join(DELTA.packages)
    return ",".join([*ICEBERG.packages, "org.xerial:sqlite-jdbc:3.50.3.0", kafka_package(str(pyspark.__version__))])


def lake_of(session: Lakes, *kinds: RowKind) -> LakeTables:
    """A lake that has the tables of these kinds alone: to make all of them takes long."""
    address = session.address()
    session.spark.sql(f"CREATE NAMESPACE {address.quoted_namespace}")
    for kind in kinds:
        session.spark.sql(lake_tables()[kind.name].create_text(address))
    return LakeTables(session.spark, address, 60)


@contextmanager
def lakes(java_home: Path, place: Path, table_format: str = "iceberg") -> Generator[Lakes]:
    with spark_session(
        java_home,
        **spark_conf(place, table_format),
        **{
            "spark.jars.packages": packages(table_format),
            "spark.ui.showConsoleProgress": "false",
            # few rows: compiling a plan takes longer than running it
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            # Delta reads a table's log by 50 tasks, and there are 34 tables
            "spark.databricks.delta.snapshotPartitions": "1",
            # MERGE makes more code than the default of a JVM with one compiler holds
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m",
        },
    ) as spark:
        yield Lakes(spark, place, table_format)


def merge(lake: LakeTables, rows: Iterable[Row]) -> None:
    """Merge rows of any keys, as the driver does."""
    from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
    from headwater.lineage.bulk import WriteBatch

    LakeBulkMeta(lake).merge(WriteBatch(tuple(rows)))


def digest_by_spark(lake: LakeTables) -> str:
    """The digest of all rows as Spark reads them."""
    digest = RowDigest()
    for kind in KINDS:
        for row in lake.rows(kind.name):
            digest.add(Row(kind, tuple(values_of(row, column_names(kind)))))
    return digest.text


def values_of(row: Any, names: Sequence[str]) -> list[Any]:
    return [bytes(value) if isinstance(value, bytearray) else value for value in (row[name] for name in names)]
