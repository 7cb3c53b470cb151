"""Which columns of streams have a watermark: how late their rows may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from headwater.events import Derivation, Watermark
from headwater.listeners.capture.batch.shapes import ShapeOfWrite
from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Node, Plan

_NODE: Final = "EventTimeWatermark"


def with_watermarks(shape: ShapeOfWrite, plan: Plan) -> ShapeOfWrite:
    """The shape, its sources with the watermarks that the query sets on their columns as they are. One on a column that
    the query makes is no source's."""
    sources = list(shape.sources)
    for node in plan.nodes:
        if node.name == _NODE:
            for leaf, watermark in _set(node, plan):
                number = next((each.source for each in shape.leaves if each.described.node == leaf), None)
                if number is not None and watermark not in sources[number].watermarks:
                    marks = (*sources[number].watermarks, watermark)
                    sources[number] = sources[number].model_copy(update={"watermarks": marks})
    return replace(shape, sources=tuple(sources))


def _set(node: Node, plan: Plan) -> Iterator[tuple[int, Watermark]]:
    delay = node.args.get("delay")
    for reference in node.expressions_of("eventTime"):
        if reference >= 0 or not isinstance(delay, str):
            continue
        for origin in lineage_of(plan, node.inputs[0]).columns.get(-1 - reference, ()):
            if origin.derivation is Derivation.IDENTITY:
                yield origin.leaf, Watermark(column=origin.path, delay=delay)
