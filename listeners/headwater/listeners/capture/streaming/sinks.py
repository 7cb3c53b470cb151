"""What a micro-batch writes: a table of some format, files, a function of the user's, or what only shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import CommitKind, Extent, ShapedSink
from headwater.listeners.capture.batch.spark import in_parts, own_names, sink_of
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_SHOWING: Final = frozenset({"MemorySink", "ConsoleTable$", "NoopTable$"})
_FUNCTION: Final = "ForeachBatchSink"
_EACH_ROW: Final = "ForeachWriterTable"
_MODES: Final[Mapping[str, tuple[CommitKind, Extent]]] = {
    "Append": (CommitKind.APPEND, Extent.NOTHING),
    "Complete": (CommitKind.OVERWRITE, Extent.ALL),
}


def _written(node: Node, plan: Plan, scene: Scene) -> Write | None:
    word = _class_of(node)
    query = node.plan_of("query")
    if query is None or word in _SHOWING or word == _FUNCTION:
        return Write(())
    several = in_parts(node, plan, scene)
    if several is not None:
        return several
    found = _target(node, plan, scene)
    if found is None and word == _EACH_ROW:
        found = Target(ShapedSink(dataset=None, opaque="foreach", columns=columns_of(plan, plan.nodes[query].output)))
    if found is None:
        return None
    kind, extent = _MODES.get(node.args.get("outputMode", ""), (CommitKind.UNKNOWN, Extent.UNKNOWN))
    if found.kind is CommitKind.UNKNOWN:
        found = replace(found, kind=kind, replaced=extent)
    if not found.sink.columns:
        columns = columns_of(plan, plan.nodes[query].output)
        found = replace(found, sink=found.sink.model_copy(update={"columns": columns}))
    return Write((Part(found, query, own_names(plan, query)),))


def _target(node: Node, plan: Plan, scene: Scene) -> Target | None:
    """The table that the query names, where it names one; else what the sink says of itself."""
    relation = node.plan_of("relation")
    named = None if relation is None else sink_of(plan.nodes[relation], plan, scene)
    return named or sink_of(node, plan, scene)


def _class_of(node: Node) -> str:
    told: Any = node.args.get("sink") or node.args.get("table") or {}
    return str(told.get("class", "")).rpartition(".")[2]


def is_of_users_function(node: Node) -> bool:
    return _class_of(node) == _FUNCTION


COMMANDS: Final[Mapping[str, Command]] = {
    "WriteToMicroBatchDataSource": Command(_written),
    "WriteToMicroBatchDataSourceV1": Command(_written),
}
