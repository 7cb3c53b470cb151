"""A continuous aligned job, woken by a real store: how soon a commit that it learns of starts the next barrier."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store, open_store
from headwater.local import Service
from headwater.versions.aligned import AlignedBatch, aligned_query
from tests.faults.tcp_proxy import CLEAR, REFUSED, Proxy
from tests.matrix.harness import DELTA, Driver, driver_with
from tests.stores import own_database

pytestmark = [pytest.mark.long, pytest.mark.needs("delta")]
POLL_SECONDS = 600
BOUND = 5.0
"""It takes 0.1 to 0.4 s on an idle machine, and tests may run on a busy one."""


@pytest.fixture(scope="module")
def driver(java_home: Path) -> Generator[Driver, None, None]:
    with driver_with(java_home, DELTA) as driver:
        yield driver


class ContinuousJob:
    """A job that runs in a thread, and says when each of its barriers begins."""

    def __init__(
        self,
        driver: Driver,
        store: Store,
        checkpoint: Path,
        own_store: Store | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.driver = driver
        self.store = store
        self.table = f"{driver.database()}.orders"
        self.begins: queue.Queue[float] = queue.Queue()
        self._commit(f"CREATE TABLE {self.table} (id INT) USING delta")
        self.append(0)
        self.poll_seconds = poll_seconds
        self.query = aligned_query(
            "shop",
            {"t": self.table},
            name="job",
            checkpoint=str(checkpoint),
            store=own_store or store,
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

    def append(self, number: int) -> float:
        """Commit a row, and return when the store learned of it."""
        return self._commit(f"INSERT INTO {self.table} VALUES ({number})")

    def _commit(self, statement: str) -> float:
        events = self.driver.events_of(statement)
        before = time.monotonic()
        for event in events:
            self.store.merge(map_event(event))
        return before

    def _run(self) -> None:
        def step(_: AlignedBatch) -> None:
            self.begins.put(time.monotonic())

        self.query.run(step, trigger="continuous", poll_seconds=self.poll_seconds)


def test_a_commit_that_the_store_learns_of_starts_a_barrier(driver: Driver, place: str, tmp_path: Path) -> None:
    """It finds a job that waits for its next look at the tables, which is ten minutes away. A commit of which the store
    doesn't know starts nothing, so it is the store that starts it."""
    with open_store(place) as store, ContinuousJob(driver, store, tmp_path / "checkpoint") as job:
        job.append(1)
        job.begins.get(timeout=60)  # it may have been found by the look that follows the first answer
        took = []
        for number in range(2, 6):
            learned = job.append(number)
            took.append(job.begins.get(timeout=60) - learned)
        print(f"a barrier began {min(took):.2f} to {max(took):.2f} s after the store learned of the commit")
        assert max(took) < BOUND
        driver.run(f"INSERT INTO {job.table} VALUES (6)")
        with pytest.raises(queue.Empty):
            job.begins.get(timeout=2)


@pytest.mark.database
def test_a_store_that_is_away_for_a_while_ends_no_continuous_job(
    driver: Driver, postgres: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It finds a job that ends because it can't ask, and one that never asks again: what came meanwhile is read when
    the store is back."""
    with own_database(postgres) as url, Proxy() as proxy:
        address = make_url(url)
        proxy.target = (str(address.host), int(address.port or 0))
        through = address.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        with (
            open_store(url) as store,
            open_store(through) as unsteady,
            ContinuousJob(driver, store, tmp_path / "checkpoint", unsteady, poll_seconds=0.2) as job,
        ):
            proxy.turn(REFUSED)
            proxy.cut()
            job.append(1)
            with pytest.raises(queue.Empty):
                job.begins.get(timeout=2)
            assert [each.message for each in caplog.records if "the job job waits" in each.message]
            proxy.turn(CLEAR)
            job.begins.get(timeout=60)
