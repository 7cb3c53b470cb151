"""How long the column lineage of large plans takes, and all that is done to a plan that is too large for it.

    python -m tests.benchmarks.columns

The driver's JVM writes a union of 500 tables with 400 columns each without its columns: what is left, from its text to
the bytes of its events, has to take less than a second of the interpreter.
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
from headwater.events.producer import Producer
from headwater.events.redaction import Redactor
from headwater.listeners.capture.batch.write_lineage import lineage_of_read
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Plan
from tests.benchmarks.harness import Aims
from tests.unit.plan.big import BIG
from tests.unit.plan.building import Building

ROUNDS: Final = 5
MOST: Final = 300.0
"""Milliseconds of the processor, for each."""


def milliseconds(plan: Plan) -> float:
    def once() -> float:
        started = time.process_time()
        lineage_of(plan, plan.root)
        return time.process_time() - started

    return min(once() for _ in range(ROUNDS)) * 1e3


def milliseconds_of_brief(tables: int, columns: int) -> float:
    """Of reading, following and encoding what is recorded of a union that was written without its columns."""
    text = json.dumps(_brief_union(tables, columns))
    context = CaptureContext(Environment(host="driver-1"), {}, Redactor())
    started = time.process_time()
    plan = Plan.parse(json.loads(text))
    lineage = lineage_of_read(plan, context)
    assert len(lineage.sources) == tables
    found = fingerprint_of(lineage.sources, ())
    event = JobLineage(fingerprint=found, inputs=lineage.sources, outputs=(), job=JobName(namespace="d", name="j"))
    Producer().emit(event, lambda _event, _data: None)
    return (time.process_time() - started) * 1e3


def _brief_union(tables: int, columns: int) -> Mapping[str, Any]:
    """As PlanWriter writes it: a column for each leaf, and those of the topmost operator."""
    b = Building()
    out = [b.attribute(f"c{n}") for n in range(columns)]
    read = [
        b.node(
            "LogicalRelation",
            out=[b.attribute("c0")],
            relation={
                "relation": "org.apache.spark.sql.execution.datasources.HadoopFsRelation",
                "fileFormat": "parquet",
                "paths": [f"file:/t{n}"],
            },
        )
        for n in range(tables)
    ]
    b.node("Union", [b.node("Project", [each], []) for each in read], out)
    return {**b.content(), "brief": 150_000}


def main() -> int:
    aims = Aims()
    for name, make in BIG.items():
        aims.at_most(name, milliseconds(make()), MOST, "ms")
    aims.at_most("500 tables of 400 columns, from text to events", milliseconds_of_brief(500, 400), 1_000.0, "ms")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
