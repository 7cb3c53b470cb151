"""What fits neither the driver's Spark nor its formats: it alone is missing, and its lack is reported.

Each part is broken in turn, as a renamed class would break it, and so is what is read by reflection, as a renamed field
would break that. All else stays exact, and nothing that is reported is wrong. One JVM serves all: each time our classes
are compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from headwater.events import Committed, Event, Format, Gap
from headwater.listeners.capture import jvm, self_test
from headwater.listeners.capture.self_test import ReflectionTable, read_reflection
from tests.kit.spark.driver import (
    DELTA,
    HUDI,
    ICEBERG,
    KAFKA,
    PAIMON,
    Driver,
    Extensions,
    attached,
    driver_with,
    of,
    together,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
DRIFT: Final = b"\nfinal class %sDrift { static int version() { return Nowhere.VERSION; } }\n"
# Paimon's and Hudi's own extensions stay away: with Iceberg's and Delta's they don't work, and paths need none.
_SQL: Final = together(ICEBERG, DELTA)
EXTENSIONS: Final = Extensions(
    (*_SQL.packages, *PAIMON.packages, *HUDI.packages, *KAFKA.packages),
    {
        **_SQL.conf,
        **{key: value for key, value in PAIMON.conf.items() if key.startswith("spark.sql.catalog.")},
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    },
)
PARTS: Final = {
    "StreamRuns": {"stream"},
    "DeltaHook": {"delta"},
    "DeltaExtractor": {"delta"},
    "IcebergHook": {"iceberg"},
    "IcebergExtractor": {"iceberg"},
    "PaimonHook": {"paimon"},
    "PaimonExtractor": {"paimon"},
    "HudiHook": {"hudi"},
    "HudiExtractor": {"hudi"},
    "JdbcExtractor": {"jdbc"},
    "KafkaExtractor": set[str](),
}
"""By part what may be less than exact without it."""
MEMBERS: Final = {
    ("CatalogHook", "sharedState"): set[str](),
    ("FilePaths", "cachedLeafFiles"): {"paths"},
    ("StreamRun", "resolvedCheckpointRoot"): {"stream"},
    ("StreamWriter", "fileLog"): {"stream"},
    ("IcebergScans", "scanReportSupplier"): {"iceberg"},
    ("PaimonReads", "table"): {"paimon"},
    ("HudiExtractor", "specifiedQueryInstant"): {"hudi"},
    ("JdbcExtractor", "parameters"): {"jdbc"},
}
"""By source and field which statements have a Gap without it."""


@dataclass(frozen=True)
class Tables:
    """What is read in each case, and the version that it has."""

    driver: Driver
    database: str
    versions: Mapping[str, int | str]

    @property
    def folder(self) -> Path:
        return self.driver.warehouse

    def statements(self) -> Mapping[str, str | Callable[[SparkSession], object]]:
        into = f"{self.database}.files"
        hudi, jdbc = str(self.folder / "hudi"), self.driver.warehouse.name
        return {
            "files": f"INSERT INTO {into} VALUES (1)",
            "paths": f"INSERT INTO {into} SELECT id FROM {self.database}.more",
            "delta": f"INSERT INTO {into} SELECT id FROM {self.database}.delta",
            "iceberg": f"INSERT INTO {into} SELECT id FROM ice.{self.database}.iceberg",
            "paimon": f"INSERT INTO {into} SELECT id FROM pai.{self.database}.paimon",
            "hudi": lambda spark: spark.read.format("hudi").load(hudi).select("id").write.insertInto(into),
            "jdbc": lambda spark: spark.read.jdbc(url_of(jdbc), "T").write.insertInto(into),
            "stream": lambda spark: stream(spark, self.folder, self.database),
        }


@pytest.fixture(scope="module")
def tables(java_home: Path) -> Iterator[Tables]:
    """A table of each format; nothing is captured yet."""
    with driver_with(java_home, EXTENSIONS) as driver:
        driver.capture.close(120)
        spark, db = driver.spark, driver.database("spark_catalog", "ice", "pai")
        driver.run(
            f"CREATE TABLE {db}.files (id BIGINT) USING parquet",
            f"CREATE TABLE {db}.more USING parquet AS SELECT 1L AS id",
            f"CREATE TABLE {db}.delta (id BIGINT) USING delta",
            f"CREATE TABLE ice.{db}.iceberg (id BIGINT) USING iceberg",
            f"CREATE TABLE pai.{db}.paimon (id BIGINT)",
            f"INSERT INTO {db}.delta VALUES (1)",
            f"INSERT INTO ice.{db}.iceberg VALUES (1)",
            f"INSERT INTO pai.{db}.paimon VALUES (1L)",
        )
        of_hudi = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
        spark.range(1).write.format("hudi").options(**of_hudi).save(str(driver.warehouse / "hudi"))
        spark.range(1).write.jdbc(url_of(driver.warehouse.name), "T")
        instants = spark.read.format("hudi").load(str(driver.warehouse / "hudi")).select("_hoodie_commit_time")
        versions = {
            "delta": 1,
            "iceberg": driver.rows(f"SELECT snapshot_id FROM ice.{db}.iceberg.snapshots")[0][0],
            "paimon": driver.rows(f"SELECT snapshot_id FROM pai.{db}.`paimon$snapshots`")[0][0],
            "hudi": int(instants.collect()[0][0]),
        }
        yield Tables(driver, db, versions)


def captured_anew(tables: Tables) -> tuple[Mapping[str, list[Event]], list[Gap]]:
    """What classes that are compiled anew capture: each statement's events, and the Gaps of no statement.

    In a thread of its own, because py4j knows a thread's classes by their names.
    """
    context: Any = tables.driver.spark.sparkContext
    properties = context._jvm.java.lang.System.getProperties()
    for name in ("headwater.capture.loader", "headwater.capture.state"):
        properties.remove(name)

    def capture() -> tuple[Mapping[str, list[Event]], list[Gap]]:
        with attached(tables.driver.spark) as (capture, bus):
            driver = Driver(tables.driver.spark, capture, bus, tables.driver.warehouse)
            found = {name: driver.events_of(statement) for name, statement in tables.statements().items()}
            return found, [each for each in of(Gap, bus.events) if each.statement is None]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(capture).result()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_does_not_fit_takes_nothing_else_along(
    tables: Tables, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = jvm.read_sources()
    sources[f"{part}.java"] += DRIFT % part.encode()
    monkeypatch.setattr(jvm, "read_sources", lambda: sources)
    captured, gaps = captured_anew(tables)
    assert [each for each in gaps if each.detail.startswith(f"{part} isn't there")]
    check_exact(captured, tables, PARTS[part])
    for name in PARTS[part]:
        assert of(Gap, captured[name]) or versions(captured[name]) == {tables.versions.get(name)}


@pytest.mark.parametrize("member", MEMBERS, ids="-".join)
def test_a_field_with_another_name_costs_what_is_read_from_it_only(
    tables: Tables, member: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that isn't there doesn't pass for one without a value: no other test would see that silent loss."""
    rename(monkeypatch, *member)
    captured, gaps = captured_anew(tables)
    (said,) = [each.detail for each in gaps if each.detail.startswith(f"{member[0]} doesn't find all that it reads: ")]
    assert f".{member[1]}Renamed" in said
    assert f"(Spark {tables.driver.spark.version})" in said
    check_exact(captured, tables, MEMBERS[member])
    for name in MEMBERS[member]:
        assert of(Gap, captured[name]), name


def rename(monkeypatch: pytest.MonkeyPatch, source: str, member: str) -> None:
    """Our source and its declaration name a field that Spark doesn't have, as after Spark's renaming."""
    sources, table = jvm.read_sources(), read_reflection()
    text = sources[f"{source}.java"]
    assert f'"{member}"'.encode() in text
    sources[f"{source}.java"] = text.replace(f'"{member}"'.encode(), f'"{member}Renamed"'.encode())
    members = tuple(
        replace(each, names=tuple(f"{name}Renamed" if name == member else name for name in each.names))
        if each.source == source
        else each
        for each in table.members
    )
    monkeypatch.setattr(jvm, "read_sources", lambda: sources)
    monkeypatch.setattr(self_test, "read_reflection", lambda: ReflectionTable(members, table.undeclared))


def check_exact(captured: Mapping[str, list[Event]], tables: Tables, touched: set[str]) -> None:
    """All but what is touched is exact, and nothing of that is wrong."""
    for name, events in captured.items():
        truth = {tables.versions.get(name)} - {None}
        assert versions(events) <= truth, name
        formats = {each.format for committed in of(Committed, events) for each in committed.inputs}
        assert name in ("paths", "stream") or Format.PARQUET not in formats, name
        if name not in touched:
            assert of(Gap, events) == [], name
            (committed,) = of(Committed, events)
            assert [output.table.table for output in committed.outputs if output.table] == ["files"] * (
                name != "stream"
            )
            assert versions(events) == truth, name
            assert len(committed.inputs) == (name != "files"), name


def versions(events: list[Event]) -> set[int | str | None]:
    """What the statements' inputs say that they read."""
    inputs = [each for committed in of(Committed, events) for each in committed.inputs]
    return {each.snapshot if each.snapshot is not None else each.version for each in inputs} - {None}


def url_of(name: str) -> str:
    return f"jdbc:derby:memory:{name};create=true"


def stream(spark: SparkSession, folder: Path, database: str) -> None:
    """One micro-batch from files to files, each time with a checkpoint of its own."""
    place = folder / f"streamed-{len(list(folder.glob('streamed-*')))}"
    rows = spark.readStream.schema("id BIGINT").parquet(str(folder / "spark" / f"{database}.db" / "files"))
    query = rows.writeStream.option("checkpointLocation", f"{place}-checkpoint").trigger(availableNow=True)
    query.format("parquet").option("path", str(place)).start().awaitTermination()
