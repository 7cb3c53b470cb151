"""Estimated sizes of plans and lineage beside what tracemalloc says: a bound in bytes is only as good as they are."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import pytest

from headwater.events import ColumnLineage
from headwater.events.column_lineage import Derivation
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.batch.write_lineage import WriteLineage
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.plan_cache import size_of_lineage, size_of_plan
from tests.kit.plan.big import joins, unions, wide
from tests.kit.plan.cases import recorded

pytestmark = pytest.mark.slow

T = TypeVar("T")


def measure(make: Callable[[], T]) -> tuple[T, int]:
    make()  # what is cached for all is there then
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = make()
        gc.collect()
        return made, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def texts_of(name: str) -> list[str]:
    if name == "recorded queries":
        return [json.dumps(each) for each in recorded("queries").values()]
    plan = {"wide": lambda: wide(200), "joins": lambda: joins(10), "unions": lambda: unions(20)}[name]()
    content = {
        "root": plan.root,
        "types": plan.types,
        "attributes": [
            each and [each.name, plan.types.index(each.type or ""), each.nullable] for each in plan.attributes
        ],
        "expressions": [[each.name, each.inputs, each.details] for each in plan.expressions],
        "nodes": [{"c": each.name, "in": each.inputs, "out": each.output, "args": each.args} for each in plan.nodes],
    }
    return [json.dumps(content)]


@pytest.mark.parametrize("name", ["wide", "joins", "unions", "recorded queries"])
def test_a_plan(name: str) -> None:
    texts = texts_of(name)
    plans, measured = measure(lambda: [Plan.parse(json.loads(text)) for text in texts])
    assert 0.9 < sum(map(size_of_plan, plans)) / measured < 1.5


def test_edges_and_columns() -> None:
    plan = wide(200)

    def make() -> WriteLineage:
        edges = (
            ColumnLineage(
                output=0,
                input=0,
                source=(f"c{n}",),
                target=(f"x{n}",),
                derivation=Derivation.TRANSFORMATION,
                expression=f"c{n} + c{n + 1}",
            )
            for n in range(500)
        )
        source = SourceSchema(dataset=None, opaque="rows", columns=columns_of(plan, range(200)))
        return WriteLineage((source,), (), (), tuple(edges), ())

    lineage, measured = measure(make)
    assert 0.7 < size_of_lineage(lineage) / measured < 1.3
