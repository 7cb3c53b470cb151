"""Structured Streaming from and to Delta: ranges by the versions that were committed, and what each batch made."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from headwater.events import JobStarted, JobStatus, ReadMode, Since, StartReason
from tests.matrix.harness import DELTA, Driver, driver_with, edges, the
from tests.matrix.streams import Case, Start, barriers, commits, query_id, running, statuses

CHEAP = {"spark__databricks__delta__snapshotPartitions": "2", "spark__sql__shuffle__partitions": "2"}


@pytest.fixture(scope="module")
def driver(java_home: Path) -> Iterator[Driver]:
    with driver_with(java_home, DELTA, **CHEAP) as driver:
        yield driver


@pytest.fixture
def case(driver: Driver) -> Generator[Case, None, None]:
    case = Case(driver)
    driver.run(
        f"CREATE TABLE {case.db}.source (id BIGINT, v STRING) USING delta",  # version 0
        f"CREATE TABLE {case.db}.sink (id BIGINT, v STRING) USING delta",
        f"INSERT INTO {case.db}.source VALUES (1, 'a')",  # version 1
    )
    yield case
    for query in driver.spark.streams.active:
        query.stop()


def copy(case: Case, checkpoint: str = "checkpoint", **options: str) -> Start:
    frame = case.spark.readStream.options(**options).table(f"{case.db}.source")
    return lambda: case.writer(frame, checkpoint).format("delta").toTable(f"{case.db}.sink")


def test_three_batches_and_a_restart(case: Case) -> None:
    def feed() -> None:
        with running(copy(case)) as query:
            query.processAllAvailable()
            for number in (2, 3):
                case.driver.run(f"INSERT INTO {case.db}.source VALUES ({number}, 'b')")
                query.processAllAvailable()

    told = case.told_of(feed)
    found = commits(told)
    checkpoint = case.checkpoint()
    assert [each.batch_id for each in found] == [0, 1, 2]
    assert [each.barrier for each in found] == barriers(checkpoint, [0, 1, 2])
    assert {each.incarnation for each in found} == {query_id(checkpoint)}
    reads = [(each.inputs[0].since, each.inputs[0].snapshot, each.inputs[0].mode) for each in found]
    assert [(since and since.snapshot, at) for since, at, _ in reads] == [(None, 1), (1, 2), (2, 3)]
    assert [mode for *_, mode in reads] == [ReadMode.STATE, ReadMode.CHANGES, ReadMode.CHANGES]
    assert [(each.outputs[0].snapshot, each.outputs[0].parent) for each in found] == [(1, 0), (2, 1), (3, 2)]
    assert all(each.outputs[0].made_from == (0,) for each in found)
    assert len({each.fingerprint for each in found}) == 1
    started = the(JobStarted, told)
    assert started.stream is not None
    assert (started.starts_at[0].reason, started.stream.query) == (StartReason.EARLIEST, query_id(checkpoint))
    assert statuses(told) == [JobStatus.RUNNING, JobStatus.FINISHED]

    case.driver.run(f"INSERT INTO {case.db}.source VALUES (4, 'c')")
    again = case.told(copy(case))
    restarted = the(JobStarted, again)
    assert restarted.run != started.run
    assert (restarted.starts_at[0].snapshot, restarted.starts_at[0].reason) == (3, StartReason.CHECKPOINT)
    assert [(each.batch_id, each.barrier) for each in commits(again)] == [(3, barriers(checkpoint, [3])[0])]
    assert commits(again)[0].inputs[0].since == Since(snapshot=3)
    assert edges(case.driver.lineage(commits(again)[0])) == {"id <- source.id", "v <- source.v"}
