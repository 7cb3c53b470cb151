"""Which statements a part of a format would have recorded more of, had it fitted the driver's Spark and formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headwater.listeners.capture.formats import plugins
from headwater.listeners.capture.plan.tree import Plan


def missing_parts(plan: Plan, degraded: Iterable[str]) -> Iterator[str]:
    """Those of the parts that aren't there whose format this plan reads or writes."""
    of_extractors = {each.java.extractor: each for each in plugins() if each.java is not None}
    known = {each.name for each in plugins()}
    for part in degraded:
        plugin = of_extractors.get(part)
        if plugin is not None and any(map(plugin.owns, class_names(plan))):
            yield part
        elif part not in known and any(f".{part}." in name for name in class_names(plan)):
            yield part  # a plug-in that can't be loaded: its name is all that is known of its library


def class_names(plan: Plan) -> Iterator[str]:
    """Whatever may be the name of a class in the nodes of a plan."""
    for node in plan.nodes:
        if node.class_name is not None:
            yield node.class_name
        waiting: list[Any] = list(node.args.values())
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, Mapping):
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
