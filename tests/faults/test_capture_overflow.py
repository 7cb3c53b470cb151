"""Where Spark's own queue has no room: it is reported how much was lost, and nothing is made of the half that came."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.listeners.capture.early_events import QUEUE
from tests.kit.faults.capture import (
    BLOCKING_LISTENER,
    KEEPING_LISTENER,
    ScriptedTap,
    await_blocked,
    compiled,
    driver,
    open_gate,
    public,
    tapped,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ROOM = "40"


@pytest.fixture(scope="module")
def spark(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[SparkSession, None, None]:
    conf = {"spark.scheduler.listenerbus.eventqueue.headwater.capacity": ROOM}
    with driver(java_home, tmp_path_factory.mktemp("overflow"), **conf) as session:
        yield session


def test_what_sparks_own_queue_drops(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    bus = context._jsc.sc().listenerBus()
    blocker = compiled(spark, BLOCKING_LISTENER)
    with tapped(spark, {}) as tap:
        bus.addToQueue(blocker, QUEUE)
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")
        await_blocked(spark, blocker)
        for n in range(10):
            spark.sql(f"CREATE TABLE lost_{n} USING parquet AS SELECT * FROM a")
        open_gate(blocker)
        records = tap.records()
        lost = int(bus.metrics().metricRegistry().counter("queue.headwater.numDroppedEvents").getCount())
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")
        after = tap.records()
        bus.removeListener(blocker)
    assert lost > 0
    assert sum(each["count"] for each in records if each["kind"] == "lost") == lost
    plans = {digest: plan for each in records for digest, plan in each.get("plans", {}).items()}
    written = [plans[each["planDigest"]] for each in records if each["kind"] == "statement"]
    assert written
    assert not any("InsertIntoHadoopFsRelationCommand" in str(each) for each in written[1:]), "the CTAS's own write"
    assert [each["kind"] for each in after] == ["statement"]


def test_what_ends_without_a_start_is_reported_as_one_that_was_missed(spark: SparkSession) -> None:
    """It began before headwater was there, say: whose it is, and what it is part of, nobody knows."""
    context: Any = spark.sparkContext
    bus = context._jsc.sc().listenerBus()
    keeper = compiled(spark, KEEPING_LISTENER)
    context._jsc.sc().addSparkListener(keeper)
    spark.sql("INSERT OVERWRITE b SELECT * FROM a")
    bus.waitUntilEmpty()
    bus.removeListener(keeper)
    with tapped(spark, {}) as tap:
        tap.inside.onOtherEvent(public(keeper, "end"))
        records = tap.records()
    assert [each["kind"] for each in records] == ["unreadable"]
    assert "start" in records[0]["why"]


def test_what_failed_in_planning_has_no_start_and_is_reported(spark: SparkSession) -> None:
    with tapped(spark, {}) as tap:
        with pytest.raises(Exception, match=r"UNSUPPORTED|not support"):
            spark.sql("UPDATE a SET id = 2")
        records = tap.records()
    assert [(each["kind"], "failure" in each) for each in records] == [("statement", True)]
    assert tap.open() == 0


def test_a_plan_that_is_not_there_any_more_is_reported_again(spark: SparkSession) -> None:
    """Python keeps plans within bounds: one that it gave up comes again with the next statement that needs it."""
    with tapped(spark, {}) as tap:
        brought = [set(each["plans"]) for each in _inserted(spark, tap)]
        assert [len(each) for each in brought] == [1]
        assert not any("plans" in each for each in _inserted(spark, tap))
        spark.sql("INSERT OVERWRITE b SELECT * FROM a")  # it may wait already when the plan is given up
        assert tap.settle("before", 60)
        (waiting, _) = map(json.loads, tap.take(10, 10, [*brought[0]]))
        assert waiting["plans"].keys() == brought[0]
        assert waiting["planDigest"] in brought[0]
        assert tap.settle("lost", 60)
        tap.take(10, 10, ["*"])
        (again,) = _inserted(spark, tap)
        # by another digest: after a loss catalogs have new numbers, and a plan says by which its names are understood
        assert again["plans"].keys() == {again["planDigest"]}


def _inserted(spark: SparkSession, tap: ScriptedTap) -> list[dict[str, Any]]:
    spark.sql("INSERT OVERWRITE b SELECT * FROM a")
    return tap.records()
