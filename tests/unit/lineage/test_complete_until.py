"""Up to when a store that is filled from a bus is complete: never further than what a writer has read of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest

from headwater.consumers.reconcile.comparison import reconciled_event
from headwater.consumers.reconcile.model import LogCommit, TableLog
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.events import Closed, DatasetId, Event, JobName, JobStarted
from headwater.events.avro import Codec
from headwater.events.clock import micros_of
from headwater.events.jobs import JobType
from headwater.events.scalars import Format
from headwater.lineage.bulk import BusPartition
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.store import Store
from tests.kit.stores import open_new_store

BEGAN = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
ONE, TWO = BusPartition("cluster", "topic", 0), BusPartition("cluster", "topic", 1)


def at(minutes: float) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def event(number: int, minute: float) -> Event:
    job = JobName(name="etl")
    reported: Event = (
        JobStarted(job=job, run=UUID(int=number), job_type=JobType.BATCH) if number % 2 else Closed(complete=True)
    )
    place = {"producer": UUID(int=1 + (number - 1) // 2), "sequence": 2 - number % 2, "family_sequence": 2 - number % 2}
    return reported.model_copy(update={**place, "time": at(minute)})


class Written:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "events")
        self._offset = 0

    def __call__(self, *reported: tuple[BusPartition, int, float], ends: dict[BusPartition, int] | None = None) -> None:
        """Events, by partition, number and minute."""
        self.add(*((partition, event(number, minute), minute) for partition, number, minute in reported), ends=ends)

    def add(self, *events: tuple[BusPartition, Event, float], ends: dict[BusPartition, int] | None = None) -> None:
        """Events, by partition and the minute at which they came to the bus."""
        records = []
        for partition, each, minute in events:
            data = Codec().encode(each)
            records.append(BusRecord(data, partition, self._offset, micros_of(at(minute))))
            self._offset += 1
        following = {each.partition: each.offset + 1 for each in records}
        self._pipeline.store(self._pipeline.prepare(SourceBatch(tuple(records), following, (), ends or {})))

    def until(self, now: float) -> datetime | None:
        with self._store.engine.connect() as connection:
            return complete_until(connection, at(now))


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    with open_new_store(f"sqlite:///{tmp_path}/store.db") as store:
        yield Written(store)


def test_a_partition_that_is_far_behind_holds_it_back(written: Written) -> None:
    written((ONE, 1, 0), (TWO, 3, 0))
    written((ONE, 2, 60))
    assert written.until(120) == at(0), "what the other one has of that hour isn't read yet"
    written((TWO, 4, 30))
    assert written.until(120) == at(30)


def test_one_of_which_nothing_is_known_yet_says_that_nothing_is(written: Written) -> None:
    written(ends={ONE: 0, TWO: 0})
    written((ONE, 1, 0), (ONE, 2, 1))
    assert written.until(5) is None


def test_one_that_was_read_to_its_end_holds_nothing_back(written: Written) -> None:
    written(ends={ONE: 0, TWO: 0})
    written((ONE, 1, 0), (ONE, 2, 60))
    written(ends={TWO: micros_of(at(59))})
    assert written.until(120) == at(59)
    written(ends={TWO: micros_of(at(100))})
    assert written.until(120) == at(60), "no further than what was heard"


def test_an_end_that_was_seen_goes_no_further_back_than_what_came(written: Written) -> None:
    written((ONE, 1, 0), (ONE, 2, 60), ends={ONE: micros_of(at(30))})
    assert written.until(120) == at(60)


def test_a_topic_that_was_made_anew_takes_the_place_of_the_one_before(written: Written) -> None:
    written((ONE, 1, 0))
    written((BusPartition("cluster", "another", 0), 2, 60))
    assert written.until(120) == at(60)


def reconciled(snapshot: int, minute: float) -> Event:
    table = DatasetId(namespace="s3://lake", name="sales/daily")
    return reconciled_event(table, TableLog(Format.ICEBERG, UUID(int=7)), LogCommit(snapshot, micros_of(at(minute))))


def test_what_a_table_s_log_has_says_nothing_of_what_drivers_have_sent(written: Written) -> None:
    """Drivers can't reach the bus from minute 10 on: their spools have the commits of that time. A reconciled one of
    minute 30 doesn't make the others known, by whichever way it is mapped."""
    written((ONE, 1, 0), (ONE, 2, 10))
    written.add(*((ONE, reconciled(number, 30 + number), 70) for number in range(3)))
    assert written.until(120) == at(10)
    written((ONE, 3, 80))
    assert written.until(120) == at(80)


def test_of_reconciled_commits_alone_nothing_is_known(written: Written) -> None:
    written.add((ONE, reconciled(1, 30), 70))
    assert written.until(120) is None
