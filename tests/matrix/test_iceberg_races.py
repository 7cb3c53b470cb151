"""Many writers at once into the same Iceberg tables: every snapshot told is looked for in the metadata files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import Committed, Gap
from headwater.listeners.capture.pipeline import EventPipeline
from headwater.listeners.capture.records import Record, StatementRecord
from tests.kit.faults.capture import compiled
from tests.kit.formats import iceberg_race
from tests.kit.formats.iceberg_race import check, made_in, race, tables_of, write
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import ICEBERG, Driver, of, shared_driver_fixture
from tests.kit.threads import in_threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-iceberg"), pytest.mark.needs("iceberg"), pytest.mark.long]


driver = shared_driver_fixture(ICEBERG)


def test_threads_of_one_session(driver: Driver) -> None:
    db, captured = race(driver, threads=4, commits=5)
    check(driver, db, captured, 4 * 5 * 2)
    assert not of(Gap, captured)
    assert made_in(driver, db) == 4 * 5 * 2


BETWEEN = """
package headwatertest;

public class Between implements org.apache.iceberg.events.Listener {
    private org.apache.iceberg.Table table;
    private boolean done;

    public void of(Object session, String name) throws Exception {
        table = org.apache.iceberg.spark.Spark3Util.loadIcebergTable((org.apache.spark.sql.SparkSession) session, name);
        org.apache.iceberg.events.Listeners.register(this, org.apache.iceberg.events.ScanEvent.class);
    }

    /** Somebody commits: the same file once more. */
    public void notify(Object event) {
        if (done || !((org.apache.iceberg.events.ScanEvent) event).tableName().equals(table.name())) return;
        done = true;
        Object file = table.currentSnapshot().addedDataFiles(table.io()).iterator().next();
        table.newAppend().appendFile((org.apache.iceberg.DataFile) file).commit();
    }
}
"""


def test_somebody_commits_while_a_scan_is_planned(driver: Driver) -> None:
    """Iceberg asks for the table's snapshot to report it, and again to read it."""
    db = tables_of(driver)
    driver.run(f"INSERT INTO ice.{db}.r VALUES (1)")

    def work(spark: SparkSession) -> None:
        session: Any = spark
        compiled(spark, BETWEEN).of(session._jsparkSession, f"ice.{db}.r")
        spark.sql(f"INSERT INTO ice.{db}.w0 SELECT 'me', cast(count(n) AS INT) FROM ice.{db}.r WHERE n >= 0")

    captured = driver.events_of(work)
    truth = metadata_at(driver.warehouse / "ice" / db / "r")
    (committed,) = of(Committed, captured)
    (row,) = driver.rows(f"SELECT n FROM ice.{db}.w0")
    assert row.n in (1, 2), "newer releases read what they asked for first, older ones what was committed in between"
    assert [each.snapshot for each in committed.inputs] == [truth.ids[row.n - 1]]


@pytest.mark.timeout(1200)
def test_many_commits_and_another_application(driver: Driver, java_home: Path) -> None:
    """Some hundreds of commits, while another application commits to the same tables."""
    db = tables_of(driver)
    command = [sys.executable, "-m", iceberg_race.__name__, str(driver.warehouse), db, "100"]
    environment = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}

    def work(spark: SparkSession) -> None:
        in_threads(4, lambda number: write(spark, db, f"t{number}", 50))

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert any("ready" in line for line in other.stdout)
            captured = driver.events_of(work)
            assert other.wait(timeout=600) == 0
        finally:
            other.kill()
    check(driver, db, captured, 4 * 50 * 2)
    assert not of(Gap, captured)
    assert made_in(driver, db) == (4 * 50 + 100) * 2


class Records:
    """What the tap said of statements that wrote, as it came."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.all: list[StatementRecord] = []
        process = EventPipeline.process

        def keep(pipeline: EventPipeline, record: Record) -> None:
            if isinstance(record, StatementRecord):
                self.all.append(record)
            process(pipeline, record)

        monkeypatch.setattr(EventPipeline, "process", keep)


def test_both_ways_to_see_a_read_agree(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan's own report, and the event of its planning."""
    records = Records(monkeypatch)
    race(driver, threads=2, commits=3)
    compared = 0
    for record in records.all:
        reports = {each["read"] for each in record.facts.reads if "read" in each}
        events = {each["snapshot"] for each in record.facts.hook_facts if each.get("action") == "scanned"}
        assert reports <= events
        compared += len(reports)
    assert compared == 2 * 3
