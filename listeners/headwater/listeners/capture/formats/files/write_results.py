"""What a statement wrote: into what was there, or into the table that it made.

LOAD DATA: files that become part of a table of Hive's as they are. What is in them, nobody looks at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema, SourceSchema
from headwater.events.names import DatasetId
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import (
    SinkWrite,
    SourceRelation,
    StatementWrites,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

LOAD_COMMAND: Final = "LoadDataCommand"
_PATTERN: Final = frozenset("*?[{")


def loaded_files(node: PlanNode, context: CaptureContext) -> SourceRelation:
    """Several files at once, chosen by a pattern, are no one dataset."""
    path: str = node.args["path"]
    dataset: DatasetId | None = None
    if not _PATTERN.intersection(path):
        try:
            is_local = bool(node.args.get("isLocal")) and "://" not in path and not path.startswith("file:")
            dataset = dataset_of_path(f"file:{path}" if is_local else path, context.environment)
        except IdentityError:
            dataset = None
    source = SourceSchema(dataset=dataset, opaque=None if dataset else "files that were loaded", format=Format.OTHER)
    return SourceRelation(node.index, source)


def _load_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    fields: Mapping[str, Any] = node.args["table"]
    name = table_name({**fields, "name": fields["table"]})
    known = None if name is None else context.find_known(name)
    overwrites = bool(node.args.get("isOverwrite"))
    extent = (
        OverwriteScope.NOTHING
        if not overwrites
        else OverwriteScope.PART
        if node.args.get("partition")
        else OverwriteScope.ALL
    )
    target = WriteTarget(
        SinkSchema(dataset=known.dataset if known else None, table=name, format=Format.HIVE),
        context.session_catalog(),
        CommitKind.OVERWRITE if overwrites else CommitKind.APPEND,
        extent,
        hints={"scene": context},
        result=_load_result,
    )
    return StatementWrites((SinkWrite(target),), (node.index,))


def with_location(sink: SinkSchema, statement: Statement, context: CaptureContext) -> SinkSchema:
    """The table is where its catalog said that it is, when the statement had ended."""
    for fields in statement.facts.looked_up.get("session", {}).get("tables", ()):
        location = fields.get("storage", {}).get("location")
        if sink.table is None or location is None or fields["name"].lower() != sink.table.table.lower():
            continue
        columns = sink.columns or columns_from_schema_json(fields["schemaText"])
        dataset = context.dataset(context.session_catalog(), sink.table, location)
        return sink.model_copy(update={"dataset": dataset, "columns": columns})
    return sink


def _load_result(target: WriteTarget, statement: Statement) -> WriteResult:
    sink = with_location(target.sink, statement, target.hints["scene"])
    return WriteResult((target.output(sink),), sink=sink)


COMMANDS: Final[Mapping[str, CommandRule]] = {LOAD_COMMAND: CommandRule(_load_write)}


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    kind, replaced = _result_of_create(target, statement)
    rows, size = _count_rows(target, statement)
    if kind is None or _is_empty(target, statement):
        return WriteResult()
    sink = _locate_sink(target, statement)
    if rows == 0 and replaced is OverwriteScope.NOTHING:
        return WriteResult(sink=sink, has_no_rows=True)
    output = target.output(sink, commit_kind=kind, replaced=replaced, rows=rows, bytes=size)
    return WriteResult((output,), sink=sink)


def _is_empty(target: WriteTarget, statement: Statement) -> bool:
    """A sink of files writes down which ones each micro-batch added."""
    stream = statement.stream
    return stream is not None and bool(target.hints.get("stream")) and stream.files == 0


def _result_of_create(target: WriteTarget, statement: Statement) -> tuple[CommitKind | None, OverwriteScope]:
    """What a command that may make its table did: nothing where IF NOT EXISTS found it, and rows are only added where
    `saveAsTable` did. Whether the table was made, Spark's own catalog tells."""
    session = statement.facts.looked_up.get("session", {})
    if target.replaced is OverwriteScope.ALL and session.get("dynamic"):
        return target.kind, OverwriteScope.PART
    mode = target.hints.get("mode")
    made = was_created(statement)
    wrote = any(nested.command is not None for nested in statement.facts.nested_facts)
    if mode == "Ignore" and (made is False or (made is None and not wrote)):
        return None, OverwriteScope.NOTHING
    if mode != "Append" or made:
        return target.kind, target.replaced
    return (CommitKind.UNKNOWN, OverwriteScope.UNKNOWN) if made is None else (CommitKind.APPEND, OverwriteScope.NOTHING)


def was_created(statement: Statement) -> bool | None:
    """Whether a table was made in Spark's own catalog; None where nothing tells."""
    fields = statement.facts.looked_up.get("session", {})
    events = (*statement.facts.hook_facts, *fields.get("catalogEvents", ()))
    if any(event.get("event") == "CreateTableEvent" for event in events):
        return True
    return False if fields.get("certain") else None


def _locate_sink(target: WriteTarget, statement: Statement) -> SinkSchema:
    """A table that the statement made is where the write nested in it went, else where its catalog has it."""
    context: CaptureContext | None = target.hints.get("scene")
    if context is None:
        return target.sink
    paths = [nested.output_path for nested in statement.facts.nested_facts if nested.output_path is not None]
    if len(paths) == 1:
        return target.sink.model_copy(update={"dataset": dataset_of_path(paths[0], context.environment)})
    return with_location(target.sink, statement, context)


def _count_rows(target: WriteTarget, statement: Statement) -> tuple[int | None, int | None]:
    """Rows and bytes of the command itself, or of the write nested in it."""
    for fields in (
        statement.facts.metrics,
        *(nested.metrics for nested in reversed(statement.facts.nested_facts)),
    ):
        if "numOutputRows" in fields:
            return fields["numOutputRows"], fields.get("numOutputBytes")
    return None, None
