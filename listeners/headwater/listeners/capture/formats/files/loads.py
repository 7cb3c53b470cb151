"""LOAD DATA: files that become part of a table of Hive's as they are. What is in them, nobody looks at."""

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
