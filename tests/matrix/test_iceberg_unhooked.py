"""Iceberg with spark.headwater.capture.hooks=off: what isn't sure isn't reported, and a Gap says so.

A commit is found by the id that a write gives its files: the second way, which has to agree with the metadata as the
hook does.
"""

from __future__ import annotations

import pytest

from headwater.events import Committed, Gap
from headwater.events.health import GapReason
from tests.kit.formats.iceberg_race import check, made_in, race, tables_of, write
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import ICEBERG, Driver, driver_fixture, of, the
from tests.kit.threads import in_threads

pytestmark = [pytest.mark.long, pytest.mark.needs("iceberg")]


driver = driver_fixture(ICEBERG, spark__headwater__capture__hooks="off")


def test_commits_are_found_by_their_files(driver: Driver) -> None:
    """Threads of one session race: each finds its own."""
    db, events = race(driver, threads=3, commits=3)
    check(driver, db, events, 3 * 3 * 2)
    assert not of(Gap, events)
    assert made_in(driver, db) == 3 * 3 * 2


def test_a_table_that_is_made_is_found(driver: Driver) -> None:
    db = driver.database("ice")
    events = driver.events_of(f"CREATE TABLE ice.{db}.c USING iceberg AS SELECT 1 AS id")
    assert the(Committed, events).outputs[0].snapshot == metadata_at(driver.warehouse / "ice" / db / "c").current


def test_rows_changed_on_read_are_found(driver: Driver) -> None:
    db = driver.database("ice")
    driver.run(
        f"CREATE TABLE ice.{db}.c USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read') "
        "AS SELECT id FROM range(4)"
    )
    events = driver.events_of(f"DELETE FROM ice.{db}.c WHERE id = 1", f"DELETE FROM ice.{db}.c WHERE id >= 0")
    truth = metadata_at(driver.warehouse / "ice" / db / "c")
    assert [each.outputs[0].snapshot for each in of(Committed, events)] == truth.ids[1:]


def test_deletes_that_race_are_candidates(driver: Driver) -> None:
    """A delete by metadata leaves no file of its own: what can't be distinguished is reported as that."""
    db = driver.database("ice")
    driver.run(
        f"CREATE TABLE ice.{db}.c USING iceberg PARTITIONED BY (id) "
        "TBLPROPERTIES ('commit.retry.num-retries' = '100') AS SELECT id FROM range(40)"
    )

    def delete(first: int) -> None:
        for n in range(first, first + 10):
            driver.spark.sql(f"DELETE FROM ice.{db}.c WHERE id = {n}")

    events = driver.events_of(lambda _: in_threads(3, lambda number: delete(10 * number)))
    truth = metadata_at(driver.warehouse / "ice" / db / "c").ids[1:]
    exact, open_ = set(), 0
    for committed in of(Committed, events):
        output = committed.outputs[0]
        if output.snapshot is None:
            open_ += 1
            assert set(output.candidates) <= set(truth)
            assert len(output.candidates) > 1
        else:
            assert output.snapshot not in exact
            exact.add(output.snapshot)
    assert exact <= set(truth)
    assert len(exact) + open_ == 30
    assert len(of(Gap, events)) == open_
    assert all(gap.reason is GapReason.NOT_EXACT for gap in of(Gap, events))


def test_an_answer_from_metadata_has_no_snapshot(driver: Driver) -> None:
    db = tables_of(driver)
    write(driver.spark, db, "x", 1)
    events = driver.events_of(f"INSERT INTO ice.{db}.r SELECT cast(count(*) AS INT) FROM ice.{db}.r")
    (read,) = the(Committed, events).inputs
    if read.snapshot is None:
        assert the(Gap, events).reason is GapReason.NOT_EXACT
    else:  # newer releases leave the snapshot in the plan
        assert read.snapshot == metadata_at(driver.warehouse / "ice" / db / "r").ids[0]
