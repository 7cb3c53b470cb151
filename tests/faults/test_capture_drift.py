"""A part that fits neither the driver's Spark nor its formats: it alone is missing, and its lack is reported.

Each part is broken in turn, as a renamed class would break it. All else stays exact, and nothing that is reported is
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import Committed, Event, Format, Gap
from headwater.listeners.capture import jvm
from tests.matrix.harness import DELTA, ICEBERG, Driver, driver_with, of, together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
DRIFT = b"\nfinal class %sDrift { static int version() { return Nowhere.VERSION; } }\n"
PARTS = {
    "StreamRuns": {"stream"},
    "DeltaHook": {"delta"},
    "DeltaExtractor": {"delta"},
    "IcebergHook": {"iceberg"},
    "IcebergExtractor": {"iceberg"},
}
"""By part what may be less than exact without it."""


@pytest.fixture(params=[pytest.param(part, marks=[] if part.startswith("S") else pytest.mark.long) for part in PARTS])
def part(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    sources = jvm.read_sources()
    sources[f"{name}.java"] += DRIFT % name.encode()
    monkeypatch.setattr(jvm, "read_sources", lambda: sources)
    return name


@pytest.fixture
def driver(java_home: Path, part: str) -> Iterator[Driver]:
    extensions = together(ICEBERG, DELTA)
    with driver_with(java_home, extensions) as driver:
        yield driver


def test_a_part_that_does_not_fit_takes_nothing_else_along(driver: Driver, part: str) -> None:
    assert [each.detail for each in of(Gap, driver.bus.events) if each.detail.startswith(f"{part} isn't there")]
    db = driver.database("spark_catalog", "ice")
    driver.run(
        f"CREATE TABLE {db}.files (id BIGINT) USING parquet",
        f"CREATE TABLE {db}.delta (id BIGINT) USING delta",
        f"CREATE TABLE ice.{db}.iceberg (id BIGINT) USING iceberg",
        f"INSERT INTO {db}.delta VALUES (1)",
        f"INSERT INTO ice.{db}.iceberg VALUES (1)",
    )
    captured = {
        "files": driver.events_of(f"INSERT INTO {db}.files VALUES (1)"),
        "delta": driver.events_of(f"INSERT INTO {db}.files SELECT id FROM {db}.delta"),
        "iceberg": driver.events_of(f"INSERT INTO {db}.files SELECT id FROM ice.{db}.iceberg"),
        "stream": driver.events_of(lambda spark: stream(spark, driver.warehouse, db)),
    }
    snapshots = driver.rows(f"SELECT snapshot_id FROM ice.{db}.iceberg.snapshots")
    truth = {"delta": 1, "iceberg": snapshots[0][0]}
    for name, events in captured.items():
        if name not in PARTS[part]:
            assert of(Gap, events) == [], name
            (committed,) = of(Committed, events)
            assert [output.table.table for output in committed.outputs if output.table] == ["files"] * (
                name != "stream"
            )
            assert versions(events) == {truth.get(name)} - {None}
    for name in PARTS[part]:
        assert of(Gap, captured[name]) or versions(captured[name]) == {truth.get(name)}, "neither exact nor a gap"
        assert versions(captured[name]) <= {truth.get(name)}
        formats = {each.format for committed in of(Committed, captured[name]) for each in committed.inputs}
        assert Format.PARQUET not in formats


def versions(events: list[Event]) -> set[int | str | None]:
    """What the statements' inputs say that they read."""
    inputs = [each for committed in of(Committed, events) for each in committed.inputs]
    return {each.snapshot if each.snapshot is not None else each.version for each in inputs} - {None}


def stream(spark: SparkSession, folder: Path, database: str) -> None:
    """One micro-batch from files to files."""
    rows = spark.readStream.schema("id BIGINT").parquet(str(folder / "spark" / f"{database}.db" / "files"))
    query = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query.format("parquet").option("path", str(folder / "streamed")).start().awaitTermination()
