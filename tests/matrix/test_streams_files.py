"""Structured Streaming over what has no versions: files, made-up rows, sinks that only show, a user's functions."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import TYPE_CHECKING

import pytest
from pyspark import InheritableThread

from headwater.events import AlterTable, Committed, CreateTable, Format, Gap, JobLineage, JobStarted
from headwater.events.health import GapReason
from headwater.events.jobs import CommitKind, JobStatus, ReadMode, StartReason
from tests.kit.spark.driver import PLAIN, Driver, edges, of, shared_driver_fixture, the
from tests.kit.spark.streams import Case, barriers, commits, query_id, run, run_fed, run_so_far, running, statuses
from tests.kit.waiting import PATIENCE

pytestmark = pytest.mark.xdist_group("spark-plain")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


driver = shared_driver_fixture(PLAIN)


@pytest.fixture
def case(driver: Driver) -> Generator[Case, None, None]:
    case = Case(driver)
    driver.spark.range(3).selectExpr("id", "'a' AS v").write.parquet(case.path("in"))
    yield case
    for query in driver.spark.streams.active:
        query.stop()


def stream(case: Case) -> DataFrame:
    return case.spark.readStream.schema("id BIGINT, v STRING").parquet(case.path("in"))


def feed(case: Case) -> None:
    # One file, for two of them come to be one after the other: a trigger between them makes two batches of one feed.
    case.spark.range(2).coalesce(1).selectExpr("id", "'b' AS v").write.mode("append").parquet(case.path("in"))


def names(places: object) -> list[str | None]:
    return [each.dataset.name if each.dataset else each.opaque for each in places]  # type: ignore[attr-defined]


@pytest.mark.smoke
def test_files_to_files(case: Case) -> None:
    def fed() -> None:
        with running(lambda: case.writer(stream(case)).format("parquet").start(case.path("out"))) as query:
            query.processAllAvailable()
            feed(case)
            query.processAllAvailable()
            feed(case)
            query.processAllAvailable()

    events = case.events_of_steps(fed)
    found = commits(events)
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1, 2])
    assert {each.incarnation for each in found} == {query_id(case.checkpoint())}
    for each in found:
        assert names(each.inputs) == [case.path("in")]
        assert names(each.outputs) == [case.path("out")]
        assert (each.inputs[0].snapshot, each.inputs[0].version, each.inputs[0].mode) == (None, None, ReadMode.CHANGES)
        assert each.outputs[0].commit_kind is CommitKind.APPEND
    assert len(of(JobLineage, events)) == 1
    assert edges(case.driver.lineage(found[0])) == {f"id <- {case.path('in')}.id", f"v <- {case.path('in')}.v"}
    assert statuses(events) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert of(Gap, events) == []


def test_a_trigger_without_data_is_silent(case: Case) -> None:
    case.events_of(lambda: case.writer(stream(case)).format("parquet").start(case.path("out")))
    events = case.events_of(lambda: case.writer(stream(case)).format("parquet").start(case.path("out")))
    assert commits(events) == []
    assert statuses(events) == [JobStatus.RUNNING, JobStatus.FINISHED]


@pytest.mark.long
def test_batches_without_data(case: Case) -> None:
    """Of those that only the watermark's move makes, one writes what is complete by then, and one nothing."""
    frame = (
        stream(case)
        .selectExpr("CAST(id * 1000 AS TIMESTAMP) AS at")
        .withWatermark("at", "1 second")
        .groupBy("at")
        .count()
        .selectExpr("at")
    )

    start = lambda: case.writer(frame).format("parquet").start(case.path("out"))  # noqa: E731
    found = commits(case.events_of_steps(lambda: run_fed(start, partial(feed, case))))
    log = Path(case.path("out"), "_spark_metadata")
    wrote = {int(each.name) for each in log.iterdir() if each.name.isdigit() and len(each.read_text().splitlines()) > 1}
    assert wrote
    assert {each.batch_id for each in found} == wrote
    assert {each.batch_id for each in found if not each.inputs} == wrote - {0, 2}


@pytest.mark.long
def test_partitioned_files(case: Case) -> None:
    start = lambda: case.writer(stream(case)).partitionBy("v").format("json").start(case.path("out"))  # noqa: E731
    found = commits(case.events_of(start))
    sink = case.driver.lineage(found[0]).outputs[0]
    assert [each.columns for each in sink.partitioning] == [(("v",),)]
    assert sink.format is Format.JSON


@pytest.mark.long
def test_a_table_of_the_catalog(case: Case) -> None:
    case.driver.run(f"CREATE TABLE {case.db}.sink (id BIGINT, v STRING) USING parquet")
    events = case.events_of(lambda: case.writer(stream(case)).toTable(f"{case.db}.sink"))
    found = commits(events)
    table = found[0].outputs[0].table
    assert table is not None
    assert (table.database, table.table) == (case.db, "sink")
    assert of(AlterTable, events) == []


@pytest.mark.long
def test_rows_that_are_made_up(case: Case) -> None:
    frame = case.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "5").load()
    start = lambda: case.writer(frame).format("parquet").start(case.path("out"))  # noqa: E731
    found = commits(case.events_of_steps(lambda: run_so_far(start, 3)))
    assert [each.batch_id for each in found[:3]] == [0, 1, 2]
    assert all(each.dataset is None and each.opaque for commit in found for each in commit.inputs)


@pytest.mark.sample(1)
@pytest.mark.parametrize("sink", ["memory", "console", "noop"])
def test_what_only_shows_is_silent(case: Case, sink: str) -> None:
    events = case.events_of(lambda: case.writer(stream(case)).format(sink).queryName(f"{case.db}_{sink}").start())
    assert commits(events) == []
    assert the(JobStarted, events).starts_at[0].reason is StartReason.EARLIEST
    assert of(Gap, events) == []


def test_each_row_to_a_function(case: Case) -> None:
    def row(each: object) -> None:
        assert each is not None

    found = commits(case.events_of(lambda: case.writer(stream(case)).foreach(row).start()))
    assert names(found[0].outputs) == ["foreach"]
    assert names(found[0].inputs) == [case.path("in")]


@pytest.mark.smoke
def test_a_function_with_two_sinks_and_ddl(case: Case) -> None:
    def both(frame: DataFrame, number: int) -> None:
        session = frame.sparkSession
        session.sql(f"CREATE TABLE IF NOT EXISTS {case.db}.log (n BIGINT) USING parquet")
        frame.write.mode("append").parquet(case.path("one"))
        session.sql(f"INSERT INTO {case.db}.log VALUES ({number})")
        frame.where("id > 0").write.mode("append").json(case.path("two"))

    start = lambda: case.writer(stream(case)).foreachBatch(both).start()  # noqa: E731
    found = commits(case.events_of_steps(lambda: run_fed(start, partial(feed, case))))
    assert [each.batch_id for each in found] == [0, 1]
    for each in found:
        table = each.outputs[1].table
        assert (names([each.outputs[0], each.outputs[2]]), table and table.table) == (
            [case.path("one"), case.path("two")],
            "log",
        )
        assert [output.made_from for output in each.outputs] == [(0,), (), (0,)]


def test_a_function_that_writes_from_threads(case: Case) -> None:
    """Both run at once, and neither is part of the other."""

    def both(frame: DataFrame, number: int) -> None:
        barrier = Barrier(2)

        def write(name: str) -> None:
            barrier.wait(PATIENCE)
            frame.write.mode("append").parquet(case.path(name))

        threads = [InheritableThread(target=write, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

    found = commits(case.events_of(lambda: case.writer(stream(case)).foreachBatch(both).start()))
    assert sorted(str(each) for each in names(found[0].outputs)) == [case.path("one"), case.path("two")]
    assert [output.made_from for output in found[0].outputs] == [(0,), (0,)]


@pytest.mark.smoke
def test_a_function_that_writes_from_threads_of_its_own(case: Case) -> None:
    """Spark doesn't know that these are within the batch: only the rows say so."""

    def both(frame: DataFrame, number: int) -> None:
        def write(name: str) -> None:
            frame.selectExpr("id", "upper(v) AS v").write.mode("append").parquet(case.path(name))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, ("one", "two")))

    start = lambda: case.writer(stream(case)).foreachBatch(both).start()  # noqa: E731
    events = case.events_of_steps(lambda: run_fed(start, partial(feed, case)))
    found = commits(events)
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1])
    for each in found:
        assert names(each.inputs) == [case.path("in")]
        assert sorted(str(name) for name in names(each.outputs)) == [case.path("one"), case.path("two")]
        assert [output.made_from for output in each.outputs] == [(0,), (0,)]
    assert edges(case.driver.lineage(found[0])) == {
        f"id <- {case.path('in')}.id",
        f"v <- TRANSFORMATION {case.path('in')}.v",
    }
    assert [each for each in of(Committed, events) if each.incarnation is None and each.inputs] == []


@pytest.mark.smoke
def test_a_thread_that_outlives_the_batch_it_was_born_in(case: Case) -> None:
    """For Spark all that it does is within that batch, for ever. Its statements are its own."""
    go, threads = Event(), list[Thread]()

    def function(frame: DataFrame, number: int) -> None:
        def later() -> None:
            assert go.wait(60)
            session = frame.sparkSession
            session.sql(f"CREATE TABLE {case.db}.log (n BIGINT) USING parquet")
            session.sql(f"INSERT INTO {case.db}.log VALUES (1)")
            session.sql(f"CREATE TABLE {case.db}.copy USING parquet AS SELECT n FROM {case.db}.log")
            frame.write.parquet(case.path("late"))

        if number == 0:
            threads.append(InheritableThread(target=later))
            threads[0].start()

    with running(lambda: case.writer(stream(case)).foreachBatch(function).start()) as query:
        query.processAllAvailable()
        feed(case)
        query.processAllAvailable()
        case.driver.events_of()
        go.set()
        events = case.events_of_steps(lambda: threads[0].join(60))
    found = of(Committed, events)
    home = f"{case.driver.warehouse}/spark/{case.db}.db"
    made = {name: names(each.inputs) for each in found for name in names(each.outputs)}
    assert made == {
        f"{home}/log": [],
        f"{home}/copy": [f"{home}/log"],
        case.path("late"): [case.path("in")],
    }
    assert {each.incarnation for each in found} == {None}
    assert [each.identifier.table for each in of(CreateTable, events)] == ["log", "copy"]


@pytest.mark.long
def test_a_function_that_writes_nothing_is_silent(case: Case) -> None:
    seen: list[int] = []
    events = case.events_of(
        lambda: case.writer(stream(case)).foreachBatch(lambda frame, _: seen.append(frame.count())).start()
    )
    assert seen == [3]
    assert commits(events) == []
    assert of(Gap, events) == []


@pytest.mark.long
def test_continuous_processing_is_reported_as_a_limit(case: Case) -> None:
    frame = case.spark.readStream.format("rate").load()

    def continuous() -> None:
        query = case.writer(frame).format("noop").trigger(continuous="1 second").start()
        assert query.awaitTermination(2) is False
        query.stop()

    events = case.events_of_steps(continuous)
    gap = the(Gap, events)
    assert (gap.reason, "continuous" in gap.detail) == (GapReason.NOT_SUPPORTED, True)


@pytest.mark.long
def test_a_memory_table_that_is_read_later(case: Case) -> None:
    run(lambda: case.writer(stream(case)).format("memory").queryName(f"kept_{case.db}").start())
    events = case.driver.events_of(f"CREATE TABLE {case.db}.made USING parquet AS SELECT id FROM kept_{case.db}")
    lineage = the(JobLineage, events)
    assert [each.dataset for each in lineage.inputs] == [None]
