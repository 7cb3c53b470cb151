"""Structured Streaming from and to Paimon: ranges by snapshots, and what each micro-batch made.

Truth: the tables' own snapshots, and rows that name the batch which wrote them.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from headwater.events import Gap, JobStarted
from headwater.events.jobs import JobStatus, ReadMode, StartReason
from tests.kit.spark.driver import PAIMON, Driver, edges, of, shared_driver_fixture, the
from tests.kit.spark.streams import Case, Start, barriers, commits, ranges, run_fed, statuses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


pytestmark = [pytest.mark.xdist_group("spark-paimon"), pytest.mark.needs("paimon")]


driver = shared_driver_fixture(PAIMON)


@pytest.fixture
def case(driver: Driver) -> Generator[Case, None, None]:
    case = Case(driver, "pai")
    driver.run(
        f"CREATE TABLE pai.{case.db}.source (id BIGINT, v STRING)",
        f"CREATE TABLE pai.{case.db}.sink (id BIGINT, v STRING)",
        f"INSERT INTO pai.{case.db}.source VALUES (1, 'a')",  # snapshot 1
    )
    yield case
    for query in driver.spark.streams.active:
        query.stop()


def location(case: Case, table: str) -> str:
    return f"file:{case.driver.warehouse}/pai/{case.db}.db/{table}"


def stream(case: Case) -> DataFrame:
    return case.spark.readStream.format("paimon").load(location(case, "source"))


def copy(case: Case) -> Start:
    return lambda: case.writer(stream(case)).format("paimon").start(location(case, "sink"))


def feed(case: Case, number: int) -> None:
    case.driver.run(f"INSERT INTO pai.{case.db}.source VALUES ({number}, 'b')")


def rows_of(case: Case, snapshot: int) -> set[int]:
    """What a snapshot added."""
    frame = case.spark.read.format("paimon").option("incremental-between", f"{snapshot - 1},{snapshot}")
    return {row["id"] for row in frame.load(location(case, "sink")).collect()}


def test_three_batches_and_a_restart(case: Case) -> None:
    events = case.events_of_steps(lambda: run_fed(copy(case), *(partial(feed, case, number) for number in (2, 3))))
    found = commits(events)
    assert ranges(found) == [(None, 1), (1, 2), (2, 3)]
    assert [each.inputs[0].mode for each in found] == [ReadMode.STATE, ReadMode.CHANGES, ReadMode.CHANGES]
    assert [each.outputs[0].snapshot for each in found] == [1, 2, 3]
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1, 2])
    feed(case, 4)
    again = case.events_of(copy(case))
    started = the(JobStarted, again).starts_at[0]
    assert (started.snapshot, started.reason) == (3, StartReason.CHECKPOINT)
    assert ranges(commits(again)) == [(3, 4)]
    assert [each.outputs[0].snapshot for each in commits(again)] == [4]
    assert statuses(again) == [JobStatus.RUNNING, JobStatus.FINISHED]
    source = location(case, "source").removeprefix("file:")
    assert edges(case.driver.lineage(found[0])) == {f"id <- {source}.id", f"v <- {source}.v"}
    assert of(Gap, events) == of(Gap, again) == []


@pytest.mark.long
def test_others_commit_to_the_sink(case: Case) -> None:
    def both(number: int) -> None:
        case.driver.run(f"INSERT INTO pai.{case.db}.sink VALUES ({number * 100}, 'foreign')")
        feed(case, number)

    found = commits(
        case.events_of_steps(lambda: run_fed(copy(case), *(partial(both, number) for number in range(2, 5))))
    )
    assert ranges(found) == [(None, 1), (1, 2), (2, 3), (3, 4)]
    assert [rows_of(case, each.outputs[0].snapshot or 0) for each in found] == [{1}, {2}, {3}, {4}]


@pytest.mark.long
def test_a_function_that_writes_two_tables(case: Case) -> None:
    case.driver.run(f"CREATE TABLE pai.{case.db}.second (id BIGINT)")

    def both(frame: DataFrame, number: int) -> None:
        frame.write.format("paimon").mode("append").save(location(case, "sink"))
        frame.select("id").write.insertInto(f"pai.{case.db}.second")

    found = commits(case.events_of(lambda: case.writer(stream(case)).foreachBatch(both).start()))
    assert [(o.dataset and o.dataset.name.rpartition("/")[2], o.snapshot) for o in found[0].outputs] == [
        ("sink", 1),
        ("second", 1),
    ]
    assert ranges(found) == [(None, 1)]


@pytest.mark.long
def test_changes_from_the_first_snapshot_on_have_a_beginning(case: Case) -> None:
    """Behind snapshot 0 is everything: so whoever asks knows that nothing is missing before."""
    feed(case, 2)
    options = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
    source = case.spark.readStream.format("paimon").options(**options).load(location(case, "source"))
    begins = lambda: case.writer(source).format("paimon").start(location(case, "sink"))  # noqa: E731
    events = case.events_of_steps(lambda: run_fed(begins, partial(feed, case, 3)))
    found = commits(events)
    read = [each.inputs[0] for each in found]
    assert {each.mode for each in read} == {ReadMode.CHANGES}
    begun = [each.since.snapshot if each.since else None for each in read]
    assert begun == [0, *(each.snapshot for each in read[:-1])]
    assert read[-1].snapshot == 3
    sink = case.spark.read.format("paimon").load(location(case, "sink"))
    assert {row["id"] for row in sink.collect()} == {1, 2, 3}
