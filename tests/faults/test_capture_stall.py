"""Whoever stops looking at what a driver shows harms nobody: memory is bounded, what was dropped is reported
exactly."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.listeners.capture import driver_listener as tap_module
from tests.kit.faults.capture import (
    BLOCKING_EYE,
    READS,
    await_blocked,
    compiled,
    driver,
    open_gate,
    tapped,
    used_heap,
)
from tests.kit.threads import in_threads
from tests.kit.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
THREADS = 4
MB = 1 << 20
TEXTS = 64 * MB
"""The default of `capture.queue.bytes`."""


@pytest.fixture(scope="module")
def spark(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[SparkSession, None, None]:
    with driver(java_home, tmp_path_factory.mktemp("stall")) as session:
        for thread in range(THREADS):
            session.sql(f"CREATE TABLE into_{thread} (id INT, s STRING) USING parquet")
        yield session


def select(spark: SparkSession, count: int, *, salt: str = "") -> float:
    """So many different SELECTs, by several threads."""

    def work(thread: int) -> None:
        for n in range(count // THREADS):
            found = spark.sql(f"SELECT id, s, {n} AS n, '{salt}{thread}' AS t FROM a WHERE id > 0").collect()
            assert [(row.id, row.n) for row in found] == [(1, n)]

    return in_threads(THREADS, work)


def insert(spark: SparkSession, count: int) -> float:
    def work(thread: int) -> None:
        for _ in range(count // THREADS):
            spark.sql(f"INSERT OVERWRITE into_{thread} SELECT * FROM a")

    return in_threads(THREADS, work)


def counted(records: list[dict[str, Any]]) -> tuple[int, int]:
    """How many statements were reported, each once, and how many are reported as dropped."""
    ids = [each["id"] for each in records if each["kind"] == "statement"]
    assert len(ids) == len(set(ids))
    assert {each["kind"] for each in records} <= {"statement", "dropped"}
    return len(ids), sum(each["count"] for each in records if each["kind"] == "dropped")


def assert_a_stall_harms_nobody(
    spark: SparkSession, work: Any, count: int, conf: dict[str, str], most_texts: int
) -> None:
    work(spark, count // 5)  # until the JVM has compiled what matters
    bare = work(spark, count)
    before = used_heap(spark)
    with tapped(spark, conf) as tap:
        stalled = work(spark, count)
        assert used_heap(spark) - before < TEXTS + 32 * MB
        emitted, dropped = counted(tap.records())
        assert (emitted + dropped, emitted) == (count, min(count, most_texts))
        work(spark, THREADS)
        assert counted(tap.records()) == (THREADS, 0)
    # A machine that does other things too may take twice as long; who waits for a reader waits in each statement.
    assert stalled < 2 * bare + 20


def test_a_drain_that_stalls(spark: SparkSession) -> None:
    assert_a_stall_harms_nobody(spark, select, 120, READS | {"spark.headwater.capture.queue.count": "50"}, 50)


def test_texts_are_bounded_by_their_length_too(spark: SparkSession) -> None:
    with tapped(spark, READS | {"spark.headwater.capture.queue.bytes": "16k"}) as tap:
        select(spark, 60, salt="long" * 50)
        emitted, dropped = counted(tap.records())
        assert emitted + dropped == 60
        assert 0 < emitted < 40


@pytest.mark.timeout(900)
def test_a_drain_that_stalls_for_5000_selects(spark: SparkSession) -> None:
    assert_a_stall_harms_nobody(spark, select, 5_000, READS, 5_000)


@pytest.mark.timeout(900)
def test_a_drain_that_stalls_for_1000_inserts(spark: SparkSession) -> None:
    assert_a_stall_harms_nobody(spark, insert, 1_000, {"spark.headwater.capture.queue.count": "300"}, 300)


def test_a_reader_that_is_blocked_holds_so_many_plans(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tap_module, "_MAX_WAITING_PLANS", 20)
    eye = compiled(spark, BLOCKING_EYE)
    with tapped(spark, READS, [eye]) as tap:
        select(spark, 4)
        await_blocked(spark, eye)
        select(spark, 96)
        assert tap.waiting()[0] <= 20
        open_gate(eye)
        emitted, dropped = counted(tap.records())
        assert emitted + dropped == 100
        assert 20 <= emitted <= 21
        assert tap.waiting() == (0, 0)
        assert tap.open() == 0


def test_plans_are_bounded_by_what_they_weigh_too(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand plans may be a thousand tables of rows that stand in the plan, or were broadcast."""
    monkeypatch.setattr(tap_module, "_MAX_PLAN_BYTES", 32 * MB)
    eye = compiled(spark, BLOCKING_EYE)
    before = used_heap(spark)
    with tapped(spark, READS, [eye]) as tap:
        select(spark, 4)
        await_blocked(spark, eye)
        for n in range(30):  # each broadcasts some 4 MB
            numbers = f"(SELECT id, id + {n} AS v FROM range(100000))"
            query = f"SELECT count(*) FROM range(100001) x JOIN {numbers} y ON x.id = y.id"
            assert spark.sql(query).collect()[0][0] == 100_000
        waiting, weight = tap.waiting()
        assert 4 < waiting < 34
        assert weight <= 32 * MB
        try:
            until(lambda: used_heap(spark) - before < 96 * MB, "letting go of what was dropped", 180.0)
        finally:
            open_gate(eye)
        emitted, dropped = counted(tap.records())
        assert (emitted + dropped, dropped > 0) == (34, True)


def test_a_statement_of_which_a_part_found_no_room_is_dropped_whole(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write nested in a CTAS would be another statement by itself, and without it the CTAS wrote nothing."""
    monkeypatch.setattr(tap_module, "_MAX_WAITING_PLANS", 1)
    eye = compiled(spark, BLOCKING_EYE)
    with tapped(spark, {}, [eye]) as tap:
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")
        await_blocked(spark, eye)
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")  # waits
        spark.sql("CREATE TABLE made USING parquet AS SELECT * FROM a")
        spark.sql("DROP TABLE made")
        open_gate(eye)
        records = tap.records()
    assert counted(records) == (2, 2)
    assert "CreateDataSourceTableAsSelectCommand" not in str(records)
