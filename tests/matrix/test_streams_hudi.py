"""Structured Streaming from and to Hudi. Truth: the timelines of the tables."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from headwater.events import Gap
from headwater.events.jobs import ReadMode
from tests.kit.formats.hudi_place import hudi_driver_fixture, timeline_of
from tests.kit.spark.driver import Driver, edges, of
from tests.kit.spark.streams import Case, Start, barriers, commits, run_fed

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


def copy(case: Case) -> Start:
    frame = case.spark.readStream.format("hudi").load(case.path("source")).select("id", "ts")
    return lambda: case.writer(frame, **_WRITTEN).format("hudi").outputMode("append").start(case.path("sink"))


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
    assert {each.inputs[0].mode for each in found} == {ReadMode.CHANGES}
    assert [each.barrier for each in found] == barriers(case.checkpoint(), range(3))
    names = [(each.inputs[0].dataset, each.outputs[0].dataset) for each in found]
    assert {(a and a.name, b and b.name) for a, b in names} == {(case.path("source"), case.path("sink"))}
    assert {edge.rpartition(".")[2] for edge in edges(case.driver.lineage(found[0]))} == {"id", "ts"}
    assert of(Gap, events) == []
