"""What is captured of an aligned job: the changes that a barrier has read, and not the whole tables that it is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from headwater.events import Committed
from headwater.events.jobs import ReadMode
from headwater.versions.aligned import AlignedBatch, aligned_query
from tests.kit.spark.driver import DELTA, Driver, driver_fixture, of

pytestmark = [pytest.mark.long, pytest.mark.needs("delta")]


driver = driver_fixture(DELTA)


def test_changes_of_delta_are_captured_as_changes(driver: Driver, tmp_path: Path) -> None:
    """It finds a read of some added files that is told as one of the table, of its newest version, or of plain files:
    the job reads two commits while the table has a third."""
    db = driver.database()
    source, sink = f"{db}.source", f"{db}.sink"
    driver.run(*(f"CREATE TABLE {each} (id INT) USING delta" for each in (source, sink)))
    driver.run(*(f"INSERT INTO {source} VALUES ({number})" for number in (1, 2)))
    query = partial(
        aligned_query,
        "shop",
        {"s": source},
        name="copy",
        checkpoint=str(tmp_path / "checkpoint"),
        store=str(tmp_path / "store.db"),
        spark=driver.spark,
    )

    def step(batch: AlignedBatch) -> None:
        batch.write(sink, batch.changes("s").writeTo(sink).append)

    query().run(step)
    driver.run(*(f"INSERT INTO {source} VALUES ({number})" for number in (3, 4, 5)))
    job = query(snapshots_per_barrier=2)

    def one(batch: AlignedBatch) -> None:
        step(batch)
        job.stop()

    events = driver.events_of(lambda _: job.run(one))
    [committed] = of(Committed, events)
    [read] = committed.inputs
    assert (read.mode, read.snapshot, read.since and read.since.snapshot) == (ReadMode.CHANGES, 4, 2)
    assert read.dataset is not None
    assert read.dataset.name.endswith("/source")
    assert sorted(row.id for row in driver.spark.table(sink).collect()) == [1, 2, 3, 4]
