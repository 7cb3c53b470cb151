"""A continuous aligned job, woken by a real store: how soon a commit that it learns of starts the next barrier."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path

import pytest

from headwater.events import Event
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store, open_store
from headwater.versions.aligned import AlignedBatch, aligned_query
from tests.kit.spark.driver import DELTA, Driver, driver_fixture

pytestmark = [pytest.mark.long, pytest.mark.needs("delta")]
POLL_SECONDS = 600
BOUND = 60
"""Seconds, for a busy machine. On an idle one it takes 0.1 to 0.4, and the next look at the tables ten minutes."""


driver = driver_fixture(DELTA)


class ContinuousJob:
    """A job of two tables that runs in a thread, and says when each of its barriers begins."""

    def __init__(
        self,
        driver: Driver,
        store: Store,
        checkpoint: Path,
    ) -> None:
        self.driver = driver
        self.store = store
        db = driver.database()
        self.table, self.other = f"{db}.orders", f"{db}.products"
        self.begins: queue.Queue[float] = queue.Queue()
        self.cuts: list[tuple[int, ...]] = []
        for each in (self.table, self.other):
            self._commit(f"CREATE TABLE {each} (id INT) USING delta")
            self.append(0, each)
        self.query = aligned_query(
            "shop",
            {"t": self.table, "u": self.other},
            name="job",
            checkpoint=str(checkpoint),
            store=store,
            spark=driver.spark,
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> ContinuousJob:  # noqa: PYI034 - Self isn't in Python 3.10
        self._thread.start()
        self.begins.get(timeout=120)
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()
        self._thread.join(60)
        assert not self._thread.is_alive(), "it can't be stopped while it waits"

    def append(self, number: int, table: str | None = None) -> float:
        """Commit a row, and return when the store learned of it."""
        return self._commit(f"INSERT INTO {table or self.table} VALUES ({number})")

    def _commit(self, statement: str) -> float:
        return self.report(self.driver.events_of(statement))

    def report(self, events: list[Event]) -> float:
        before = time.monotonic()
        for event in events:
            self.store.merge(map_event(event))
        return before

    def _run(self) -> None:
        def step(batch: AlignedBatch) -> None:
            self.cuts.append(tuple(batch.state(each).count() for each in ("t", "u")))
            self.begins.put(time.monotonic())

        self.query.run(step, trigger="continuous", poll_seconds=POLL_SECONDS)


def test_a_snapshot_that_the_store_hasnt_heard_of_is_waited_for(driver: Driver, place: str, tmp_path: Path) -> None:
    """It finds a job that ends with an error because it sees a commit before the store does. It goes on with the other
    table meanwhile, and with that commit when its driver has reported it."""
    with open_store(place) as store, ContinuousJob(driver, store, tmp_path / "checkpoint") as job:
        late = driver.events_of(f"INSERT INTO {job.table} VALUES (1)")
        job.append(1, job.other)
        job.begins.get(timeout=BOUND)
        job.report(late)
        job.begins.get(timeout=BOUND)
    assert job.cuts == [(1, 1), (1, 2), (2, 2)]


def test_a_commit_that_the_store_learns_of_starts_a_barrier(driver: Driver, place: str, tmp_path: Path) -> None:
    """It finds a job that waits for its next look at the tables, which is ten minutes away, and one whose thread has no
    active session of Spark."""
    with open_store(place) as store, ContinuousJob(driver, store, tmp_path / "checkpoint") as job:
        job.append(1)
        job.begins.get(timeout=BOUND)  # it may have been found by the look that follows the first answer
        took = []
        for number in range(2, 6):
            learned = job.append(number)
            took.append(job.begins.get(timeout=BOUND) - learned)
        print(f"a barrier began {min(took):.2f} to {max(took):.2f} s after the store learned of the commit")
    assert len(took) == 4
