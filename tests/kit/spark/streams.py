"""Streaming queries of cases: run until nothing is left to read, one micro-batch at a time where that matters."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.events import Committed, Event, JobStarted, JobStatusChanged
from headwater.events.barriers import stream_barrier
from headwater.events.jobs import JobStatus
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from tests.kit.spark.driver import Driver, of
from tests.kit.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from sqlalchemy import Connection

Start = Callable[[], "StreamingQuery"]


class Case:
    """A database, checkpoints and paths of one case's own."""

    def __init__(self, driver: Driver, *catalogs: str) -> None:
        self.driver = driver
        self.spark = driver.spark
        self.db = driver.database(*catalogs)
        self.root = driver.warehouse / self.db
        self.root.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def checkpoint(self, name: str = "checkpoint") -> Path:
        return self.root / name

    def writer(self, frame: DataFrame, checkpoint: str = "checkpoint", **options: str) -> DataStreamWriter:
        return frame.writeStream.option("checkpointLocation", str(self.checkpoint(checkpoint))).options(**options)

    def events_of(self, start: Start) -> list[Event]:
        """What is recorded of a query that runs until nothing is left to read, and is then stopped."""
        return self.driver.events_of(lambda _: run(start))

    def events_of_steps(self, *steps: Callable[[], object]) -> list[Event]:
        return self.driver.events_of(lambda _: [step() for step in steps])


def run(start: Start) -> None:
    query = start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def run_so_far(start: Start, batches: int, seconds: float = 60) -> None:
    """A query that never comes to an end of what there is to read."""
    with running(start) as query:
        until(
            lambda: (last := query.lastProgress) is not None and last["batchId"] >= batches,
            "so many batches of the query",
            seconds,
            0.05,
        )


@contextmanager
def running(start: Start) -> Generator[StreamingQuery, None, None]:
    """A query that is fed while it runs."""
    query = start()
    try:
        yield query
    finally:
        query.stop()


def run_fed(start: Start, *feeds: Callable[[], object]) -> None:
    """A query that reads what is there, and then what each of these adds, one after the other."""
    with running(start) as query:
        query.processAllAvailable()
        for feed in feeds:
            feed()
            query.processAllAvailable()


def ranges(found: Iterable[Committed]) -> list[tuple[int | None, int | None]]:
    """Of the first input of each: behind which version, up to which."""
    read = [each.inputs[0] for each in found]
    return [(each.since.snapshot if each.since else None, each.snapshot) for each in read]


@contextmanager
def stored(root: Path, events: Iterable[Event]) -> Generator[Connection, None, None]:
    """A store that these events were written to."""
    with open_store(str(root / "lineage.db"), create=True) as store:
        for each in events:
            store.merge(map_event(each))
        with store.engine.connect() as connection:
            yield connection


def query_id(checkpoint: Path) -> UUID:
    """As the checkpoint has it."""
    return UUID(json.loads((checkpoint / "metadata").read_text())["id"])


def barriers(checkpoint: Path, batches: Iterable[int]) -> list[int]:
    """What the barriers of these micro-batches have to be."""
    began = int((checkpoint / "metadata").stat().st_mtime * 1000)
    return [stream_barrier(began, batch) for batch in batches]


def commits(events: Iterable[Event]) -> list[Committed]:
    """Those of micro-batches."""
    return [each for each in of(Committed, events) if each.incarnation is not None]


def statuses(events: Iterable[Event]) -> list[JobStatus]:
    """Of the run that these events tell from its start."""
    events = list(events)
    runs = {each.run for each in of(JobStarted, events)}
    assert len(runs) == 1, f"one run should be told: {runs}"
    return [each.status for each in of(JobStatusChanged, events) if each.run in runs]
