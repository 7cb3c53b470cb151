"""Structured Streaming over what has no versions: files, made-up rows, sinks that only show, a user's functions."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import (
    AlterTable,
    CommitKind,
    Format,
    Gap,
    GapReason,
    JobLineage,
    JobStarted,
    JobStatus,
    ReadMode,
    StartReason,
)
from tests.matrix.harness import PLAIN, Driver, driver_with, edges, of, the
from tests.matrix.streams import Case, barriers, commits, query_id, run, run_fed, run_so_far, running, statuses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pytest.fixture(scope="module")
def driver(java_home: Path) -> Iterator[Driver]:
    with driver_with(java_home, PLAIN, spark__sql__shuffle__partitions="2") as driver:
        yield driver


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
    case.spark.range(2).selectExpr("id", "'b' AS v").write.mode("append").parquet(case.path("in"))


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

    told = case.told_of(fed)
    found = commits(told)
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1, 2])
    assert {each.incarnation for each in found} == {query_id(case.checkpoint())}
    for each in found:
        assert names(each.inputs) == [case.path("in")]
        assert names(each.outputs) == [case.path("out")]
        assert (each.inputs[0].snapshot, each.inputs[0].version, each.inputs[0].mode) == (None, None, ReadMode.CHANGES)
        assert each.outputs[0].commit_kind is CommitKind.APPEND
    assert len(of(JobLineage, told)) == 1
    assert edges(case.driver.lineage(found[0])) == {f"id <- {case.path('in')}.id", f"v <- {case.path('in')}.v"}
    assert statuses(told) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert of(Gap, told) == []


def test_a_trigger_without_data_is_silent(case: Case) -> None:
    case.told(lambda: case.writer(stream(case)).format("parquet").start(case.path("out")))
    told = case.told(lambda: case.writer(stream(case)).format("parquet").start(case.path("out")))
    assert commits(told) == []
    assert statuses(told) == [JobStatus.RUNNING, JobStatus.FINISHED]


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
    found = commits(case.told_of(lambda: run_fed(start, partial(feed, case))))
    log = Path(case.path("out"), "_spark_metadata")
    wrote = {int(each.name) for each in log.iterdir() if each.name.isdigit() and len(each.read_text().splitlines()) > 1}
    assert wrote
    assert {each.batch_id for each in found} == wrote
    assert {each.batch_id for each in found if not each.inputs} == wrote - {0, 2}


def test_partitioned_files(case: Case) -> None:
    start = lambda: case.writer(stream(case)).partitionBy("v").format("json").start(case.path("out"))  # noqa: E731
    found = commits(case.told(start))
    sink = case.driver.lineage(found[0]).outputs[0]
    assert [each.columns for each in sink.partitioning] == [(("v",),)]
    assert sink.format is Format.JSON


def test_a_table_of_the_catalog(case: Case) -> None:
    case.driver.run(f"CREATE TABLE {case.db}.sink (id BIGINT, v STRING) USING parquet")
    told = case.told(lambda: case.writer(stream(case)).toTable(f"{case.db}.sink"))
    found = commits(told)
    table = found[0].outputs[0].table
    assert table is not None
    assert (table.database, table.table) == (case.db, "sink")
    assert of(AlterTable, told) == []


def test_rows_that_are_made_up(case: Case) -> None:
    frame = case.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "5").load()
    start = lambda: case.writer(frame).format("parquet").start(case.path("out"))  # noqa: E731
    found = commits(case.told_of(lambda: run_so_far(start, 3)))
    assert [each.batch_id for each in found[:3]] == [0, 1, 2]
    assert all(each.dataset is None and each.opaque for commit in found for each in commit.inputs)


@pytest.mark.parametrize("sink", ["memory", "console", "noop"])
def test_what_only_shows_is_silent(case: Case, sink: str) -> None:
    told = case.told(lambda: case.writer(stream(case)).format(sink).queryName(f"{case.db}_{sink}").start())
    assert commits(told) == []
    assert the(JobStarted, told).starts_at[0].reason is StartReason.EARLIEST
    assert of(Gap, told) == []


def test_each_row_to_a_function(case: Case) -> None:
    def row(each: object) -> None:
        assert each is not None

    found = commits(case.told(lambda: case.writer(stream(case)).foreach(row).start()))
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
    found = commits(case.told_of(lambda: run_fed(start, partial(feed, case))))
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
    import threading

    from pyspark import InheritableThread

    def both(frame: DataFrame, number: int) -> None:
        barrier = threading.Barrier(2)

        def write(name: str) -> None:
            barrier.wait(30)
            frame.write.mode("append").parquet(case.path(name))

        threads = [InheritableThread(target=write, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    found = commits(case.told(lambda: case.writer(stream(case)).foreachBatch(both).start()))
    assert sorted(str(each) for each in names(found[0].outputs)) == [case.path("one"), case.path("two")]
    assert [output.made_from for output in found[0].outputs] == [(0,), (0,)]


def test_a_function_that_writes_nothing_is_silent(case: Case) -> None:
    seen: list[int] = []
    told = case.told(
        lambda: case.writer(stream(case)).foreachBatch(lambda frame, _: seen.append(frame.count())).start()
    )
    assert seen == [3]
    assert commits(told) == []
    assert of(Gap, told) == []


def test_continuous_processing_is_told_as_a_limit(case: Case) -> None:
    frame = case.spark.readStream.format("rate").load()

    def continuous() -> None:
        query = case.writer(frame).format("noop").trigger(continuous="1 second").start()
        assert query.awaitTermination(2) is False
        query.stop()

    told = case.told_of(continuous)
    gap = the(Gap, told)
    assert (gap.reason, "continuous" in gap.detail) == (GapReason.NOT_SUPPORTED, True)


def test_a_memory_table_that_is_read_later(case: Case) -> None:
    run(lambda: case.writer(stream(case)).format("memory").queryName(f"kept_{case.db}").start())
    told = case.driver.told(f"CREATE TABLE {case.db}.made USING parquet AS SELECT id FROM kept_{case.db}")
    lineage = the(JobLineage, told)
    assert all(each.dataset is None for each in lineage.inputs)
