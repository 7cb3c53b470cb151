"""Structured Streaming from and to Hudi. Truth: the timelines of the tables."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from headwater.events import Gap, JobStarted
from headwater.events.jobs import ReadMode, StartReason
from headwater.versions import check
from tests.kit.formats.hudi_place import hudi_driver_fixture, timeline_of
from tests.kit.spark.driver import Driver, edges, of
from tests.kit.spark.streams import Case, Start, barriers, commits, ranges, run, run_fed, stored

pytestmark = [pytest.mark.needs("hudi"), pytest.mark.long]
_WRITTEN = {
    "hoodie.table.name": "sink",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


driver = hudi_driver_fixture


@pytest.fixture
def case(driver: Driver) -> Generator[Case, None, None]:
    case = Case(driver)
    driver.run(
        f"CREATE TABLE {case.db}.source (id INT, ts LONG) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{case.path('source')}'",
        f"INSERT INTO {case.db}.source VALUES (1, 1)",
    )
    yield case
    for query in driver.spark.streams.active:
        query.stop()


def copy(case: Case, sink: str = "sink", **asked: str) -> Start:
    frame = case.spark.readStream.format("hudi").options(**asked).load(case.path("source")).select("id", "ts")
    writer = case.writer(frame, f"checkpoint of {sink}", **_WRITTEN | {"hoodie.table.name": sink})
    return lambda: writer.format("hudi").outputMode("append").start(case.path(sink))


def test_three_batches(case: Case) -> None:
    more = [f"INSERT INTO {case.db}.source VALUES ({number}, 1)" for number in (2, 3)]
    events = case.events_of_steps(lambda: run_fed(copy(case), *(partial(case.driver.run, each) for each in more)))
    found = commits(events)
    line = [done for done in timeline_of(Path(case.path("source"))) if "commit" in done.action]
    completed = [str(done.completed) for done in line]
    made = [done.number for done in timeline_of(Path(case.path("sink"))) if "commit" in done.action]
    assert [each.outputs[0].snapshot for each in found] == made
    assert [each.inputs[0].snapshot for each in found] == [done.number for done in line]
    assert [each.inputs[0].version for each in found] == completed
    assert [each.inputs[0].since.version if each.inputs[0].since else None for each in found] == [None, *completed[:2]]
    assert [from_ for from_, _ in ranges(found)] == [-1, *(done.number for done in line[:2])]
    assert {each.inputs[0].mode for each in found} == {ReadMode.CHANGES}
    assert [each.barrier for each in found] == barriers(case.checkpoint("checkpoint of sink"), range(3))
    names = [(each.inputs[0].dataset, each.outputs[0].dataset) for each in found]
    assert {(a and a.name, b and b.name) for a, b in names} == {(case.path("source"), case.path("sink"))}
    assert {edge.rpartition(".")[2] for edge in edges(case.driver.lineage(found[0]))} == {"id", "ts"}
    assert of(Gap, events) == []


def test_where_a_stream_begins(case: Case) -> None:
    """It finds a first batch of which isn't known where it began, so that two jobs on one table never go together; one
    that passes for all changes though it began at the latest offset; and an offset that the options no longer say."""
    add = partial(case.driver.run, f"INSERT INTO {case.db}.source VALUES (2, 1)")
    latest = {"hoodie.datasource.streaming.startOffset": "latest"}
    steps = [
        lambda: run_fed(copy(case, "late", **latest), add),
        lambda: run(copy(case, "whole")),
        lambda: run(copy(case, "other")),
    ]
    case.events_of_steps(*steps)
    events = case.driver.bus.events
    found = {
        Path(place.name).name: each
        for each in commits(events)
        if (place := each.outputs[0].dataset) is not None and place.name.startswith(str(case.root))
    }
    line = [done.number for done in timeline_of(Path(case.path("source"))) if "commit" in done.action]
    assert ranges([found[each] for each in ("late", "whole", "other")]) == [
        (line[0], line[1]),
        (-1, line[1]),
        (-1, line[1]),
    ]
    reasons = [start.reason for each in of(JobStarted, events) for start in each.starts_at][-3:]
    assert reasons == [StartReason.LATEST, StartReason.EARLIEST, StartReason.EARLIEST]
    with stored(case.root, events) as connection:
        answer = check(connection, [case.path("whole"), case.path("other")])
        assert answer.is_consistent is True, answer.limits
        assert [each.snapshot for each in answer.cut] == [line[1]]
