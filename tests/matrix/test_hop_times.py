"""What a real driver captures of a commit's times and files, and what `headwater table late` makes of it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import Committed
from headwater.lineage.mapping import map_event
from headwater.lineage.questions.lateness import lateness
from tests.kit.spark.driver import DELTA, ICEBERG, Driver, shared_driver_fixture, the, together
from tests.kit.stores import open_new_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.xdist_group("spark-iceberg-delta"), pytest.mark.needs("iceberg", "delta")]

driver = shared_driver_fixture(together(ICEBERG, DELTA), spark__databricks__delta__snapshotPartitions="1")
MILLISECOND = timedelta(milliseconds=1)


@pytest.mark.parametrize("table_format", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
def test_times_and_files_of_a_commit_are_those_of_spark_and_of_the_format(
    driver: Driver, table_format: str, tmp_path: Path
) -> None:
    """It finds times of another statement, or of the report; files that were counted twice or not at all; and a hop
    that is measured from something else than the end of the commit that was read."""
    catalog = "ice" if table_format == "iceberg" else "spark_catalog"
    db = f"{catalog}.{driver.database(catalog)}"
    source, sink = f"{db}.source", f"{db}.sink"
    driver.run(*(f"CREATE TABLE {each} (id BIGINT) USING {table_format}" for each in (source, sink)))
    before = datetime.now(timezone.utc)
    first = driver.events_of(f"INSERT INTO {source} SELECT /*+ REPARTITION(3) */ id FROM range(30)")
    between = datetime.now(timezone.utc)
    second = driver.events_of(f"INSERT INTO {sink} SELECT /*+ REPARTITION(2) */ id FROM {source}")
    after = datetime.now(timezone.utc)
    wrote, read = the(Committed, first), the(Committed, second)
    assert wrote.started is not None
    assert wrote.ended is not None
    assert read.started is not None
    assert read.ended is not None
    assert before - MILLISECOND <= wrote.started <= wrote.ended <= between
    assert between - MILLISECOND <= read.started <= read.ended <= after
    (output,) = read.outputs
    assert (wrote.outputs[0].files, output.files) == (3, 2)
    assert (output.snapshot, output.snapshot_time) == _newest(driver, table_format, sink)
    assert output.snapshot_time is not None
    assert read.started <= output.snapshot_time <= read.ended
    with open_new_store(str(tmp_path / "store.db")) as store:
        store.merge(row for event in (*first, *second) for row in map_event(event))
        with store.engine.connect() as connection:
            name = str(read.outputs[0].table)
            hop, fed = lateness(connection, name)
    assert hop.times.trigger == read.started - wrote.ended
    assert hop.times.statement == read.ended - read.started
    assert fed.times.statement == wrote.ended - wrote.started
    assert hop.times.run is not None
    assert hop.times.commit is not None
    assert hop.times.run + hop.times.commit == hop.times.statement


def _newest(driver: Driver, table_format: str, table: str) -> tuple[int, datetime]:
    """Return a table's newest snapshot and its time, by the format's own metadata."""
    if table_format == "iceberg":
        (made,) = driver.rows(f"SELECT committed_at, snapshot_id FROM {table}.snapshots")
        return made.snapshot_id, made.committed_at.astimezone(timezone.utc)
    place = Path(driver.rows(f"DESCRIBE DETAIL {table}")[0]["location"].removeprefix("file:"))
    log = max((place / "_delta_log").glob("*.json"))
    info = next(action["commitInfo"] for action in map(json.loads, log.open()) if "commitInfo" in action)
    return int(log.stem), datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=info["timestamp"])


@pytest.mark.long
@pytest.mark.parametrize("is_function", [False, True], ids=["a sink", "a function"])
def test_times_of_a_micro_batch_are_those_of_its_write(driver: Driver, is_function: bool, tmp_path: Path) -> None:
    """It finds times of the query, of its plan, or of the second of two statements that a function runs."""
    db = f"ice.{driver.database('ice')}"
    source, sink = f"{db}.source", f"{db}.sink"
    driver.run(*(f"CREATE TABLE {each} (id BIGINT) USING iceberg" for each in (source, sink)))
    driver.run(f"INSERT INTO {source} SELECT id FROM range(3)")

    def write(rows: DataFrame, _: int) -> None:
        for each in (rows.where("id < 2"), rows.where("id >= 2")):
            each.writeTo(sink).append()

    def play(spark: SparkSession) -> None:
        writer = spark.readStream.table(source).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.foreachBatch(write).start() if is_function else writer.toTable(sink)
        query.awaitTermination()

    before = datetime.now(timezone.utc)
    committed = the(Committed, driver.events_of(play))
    assert committed.batch_id == 0
    assert committed.started is not None
    assert committed.ended is not None
    assert before < committed.started <= committed.ended <= datetime.now(timezone.utc)
    driver.run(f"REFRESH TABLE {sink}")
    made = [row.committed_at.astimezone(timezone.utc) for row in driver.rows(f"SELECT * FROM {sink}.snapshots")]
    assert len(made) == len(committed.outputs) == 1 + is_function
    assert sorted(each.snapshot_time for each in committed.outputs if each.snapshot_time) == sorted(made)
    assert committed.started <= min(made) <= max(made) <= committed.ended
    assert [each.files for each in committed.outputs] == [1] * len(made)
