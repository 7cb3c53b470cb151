"""About how many bytes of memory plans and their lineage take: counted, as measuring takes longer than reading them.

The figures are CPython's, of 3.10 to 3.13. tests/unit/plan/test_plan_sizes.py holds them to what tracemalloc says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from headwater.listeners.capture.batch.write_lineage import WriteLineage
from headwater.listeners.capture.plan.tree import Plan

_TEXT: Final = 58
"""A text beside its characters."""
_NUMBER: Final = 32
_SMALLEST_NUMBER, _LARGEST_NUMBER = -5, 256
"""Numbers between these are CPython's own, and take no room."""
_LIST: Final = 72
_REFERENCE: Final = 8
_ENTRY: Final = 40
"""Of a dictionary, beside key and value. Keys are shared."""
_DICTIONARY: Final = 100
_ATTRIBUTE: Final = 130
_EXPRESSION: Final = 130
_NODE: Final = 180
_EDGE: Final = 1_100
_COLUMN: Final = 1_200
_LEAF: Final = 3_000
"""A source or sink, or a leaf, beside its columns."""


def size_of_plan(plan: Plan) -> int:
    """What was parsed, with its arguments as JSON has them."""
    found = 0
    reference = _REFERENCE if len(plan.attributes) <= _LARGEST_NUMBER else _REFERENCE + _NUMBER
    for text in plan.types:
        found += _TEXT + len(text)
    for attribute in plan.attributes:
        if attribute is not None:
            found += _ATTRIBUTE + _TEXT + len(attribute.name)
    for expression in plan.expressions:
        found += _EXPRESSION + reference * len(expression.inputs)
        if expression.details:
            found += _size_of_json(expression.details)
    for node in plan.nodes:
        found += _NODE + reference * (len(node.inputs) + len(node.output)) + _size_of_json(node.args)
    return found


def size_of_lineage(lineage: WriteLineage) -> int:
    """Sources, leaves, sinks and edges; what they share is counted once."""
    found = _LEAF * (len(lineage.sources) + len(lineage.parts) + len(lineage.leaves))
    for source in lineage.sources:
        found += _COLUMN * len(source.columns)
    for resolved in lineage.parts:
        found += _COLUMN * len(resolved.part.target.sink.columns)
    found += _EDGE * len(lineage.columns)
    return found + _size_of_texts(edge.expression for edge in lineage.columns)


def _size_of_texts(texts: Iterable[str | None]) -> int:
    """Edges into one column share its text."""
    found, last = 0, None
    for text in texts:
        if text is not None and text is not last:
            found += _TEXT + len(text)
        last = text
    return found


def _size_of_json(value: Any) -> int:
    found, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            found += _TEXT + len(each)
        elif isinstance(each, dict):
            found += _DICTIONARY + _ENTRY * len(each)
            waiting.extend(each.values())
        elif isinstance(each, list):
            found += _LIST + _REFERENCE * len(each)
            waiting.extend(each)
        elif isinstance(each, float) or (each is not None and not _SMALLEST_NUMBER <= each <= _LARGEST_NUMBER):
            found += _NUMBER
    return found
