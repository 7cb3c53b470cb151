"""How long the column lineage of large plans takes, and all that is done to a plan that is too large for it.

    python -m tests.benchmarks.columns

The driver's JVM writes a union of 500 tables with 400 columns each without its columns: what is left, from its text to
the bytes of its events, has to take less than a second of the interpreter; so has the largest union that is followed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from headwater.events import JobLineage, JobName
from headwater.events.fingerprints import fingerprint_of
from headwater.events.identity import Environment
from headwater.events.jobs import SinkSchema
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor
from headwater.listeners.capture.batch.write_lineage import lineage_of_write
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Plan
from tests.benchmarks.harness import Aims
from tests.kit.plan.big import BIG
from tests.kit.plan.building import Building

ROUNDS: Final = 5
MOST: Final = 300.0
"""Milliseconds of the processor, for each."""


def milliseconds(plan: Plan) -> float:
    def once() -> float:
        started = time.process_time()
        lineage_of(plan, plan.root)
        return time.process_time() - started

    return min(once() for _ in range(ROUNDS)) * 1e3


def milliseconds_of_union(content: Mapping[str, Any], tables: int, edges: int) -> float:
    """Of reading, following and encoding what is recorded of a union that is written somewhere."""
    text = json.dumps(content)
    context = CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())
    sink = SinkSchema(dataset=None)
    started = time.process_time()
    plan = Plan.parse(json.loads(text))
    names = [(plan.attribute(each).name,) for each in plan.top.output]
    part = SinkWrite(WriteTarget(sink), query=plan.root, columns=tuple(names))
    lineage = lineage_of_write(StatementWrites((part,), ()), plan, context)
    assert (len(lineage.sources), len(lineage.columns)) == (tables, edges)
    found = fingerprint_of(lineage.sources, (sink,), lineage.columns)
    event = JobLineage(
        fingerprint=found,
        inputs=lineage.sources,
        outputs=(sink,),
        columns=lineage.columns,
        job=JobName(namespace="d", name="j"),
    )
    Producer().emit(event, lambda _event, _data: None)
    return (time.process_time() - started) * 1e3


def _union(tables: int, columns: int, *, brief: bool = False) -> Mapping[str, Any]:
    """As PlanWriter writes it: briefly, a leaf has one column, and the topmost operator its own."""
    b = Building()
    top = [b.attribute(f"c{n}") for n in range(columns)] if brief else []
    branches: list[int] = []
    for table in range(tables):
        out = [b.attribute(f"c{n}") for n in range(1 if brief else columns)]
        top = top or out
        relation = {
            "relation": "org.apache.spark.sql.execution.datasources.HadoopFsRelation",
            "fileFormat": "parquet",
            "paths": [f"file:/t{table}"],
        }
        read = b.node("LogicalRelation", out=out, relation=relation)
        branches.append(b.node("Project", [read], out, projectList={"x": [-1 - each for each in out]}))
    b.node("Union", branches, top)
    return {**b.content(), "brief": 100_000} if brief else b.content()


def main() -> int:
    aims = Aims()
    for name, make in BIG.items():
        aims.at_most(name, milliseconds(make()), MOST, "ms")
    brief = milliseconds_of_union(_union(500, 400, brief=True), 500, 0)
    aims.at_most("500 tables of 400 columns, from text to events", brief, 1_000.0, "ms")
    largest = milliseconds_of_union(_union(50, 400), 50, 20_000)
    aims.at_most("50 tables of 400 columns, from text to events", largest, 1_000.0, "ms")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
