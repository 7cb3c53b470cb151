"""What a micro-batch writes: a table of some format, files, a function of the user's, or what only shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.batch.spark_writes import columns_by_own_name, find_sink, find_sinks
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_DISPLAY_SINKS: Final = frozenset({"MemorySink", "ConsoleTable$", "NoopTable$"})
_FUNCTION_SINK: Final = "ForeachBatchSink"
_ROW_WRITER_SINK: Final = "ForeachWriterTable"
_MODES: Final[Mapping[str, tuple[CommitKind, OverwriteScope]]] = {
    "Append": (CommitKind.APPEND, OverwriteScope.NOTHING),
    "Complete": (CommitKind.OVERWRITE, OverwriteScope.ALL),
}


def _read_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    word = _class_of(node)
    query = node.plan_of("query")
    if query is None or word in _DISPLAY_SINKS or word == _FUNCTION_SINK:
        return StatementWrites(())
    several = find_sinks(node, plan, context)
    if several is not None:
        return several
    found = _find_target(node, plan, context)
    if found is None and word == _ROW_WRITER_SINK:
        found = WriteTarget(
            SinkSchema(dataset=None, opaque="foreach", columns=columns_of(plan, plan.nodes[query].output))
        )
    if found is None:
        return None
    kind, extent = _MODES.get(node.args.get("outputMode", ""), (CommitKind.UNKNOWN, OverwriteScope.UNKNOWN))
    if found.kind is CommitKind.UNKNOWN:
        found = replace(found, kind=kind, replaced=extent)
    if not found.sink.columns:
        columns = columns_of(plan, plan.nodes[query].output)
        found = replace(found, sink=found.sink.model_copy(update={"columns": columns}))
    return StatementWrites((SinkWrite(found, query, columns_by_own_name(plan, query)),))


def _find_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    """The table that the query names, where it names one; else what the sink says of itself."""
    relation = node.plan_of("relation")
    named = None if relation is None else find_sink(plan.nodes[relation], plan, context)
    return named or find_sink(node, plan, context)


def _class_of(node: PlanNode) -> str:
    fields: Any = node.args.get("sink") or node.args.get("table") or {}
    return str(fields.get("class", "")).rpartition(".")[2]


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "WriteToMicroBatchDataSource": CommandRule(_read_write),
    "WriteToMicroBatchDataSourceV1": CommandRule(_read_write),
}
