"""Procedures: a commit of its own kind, a modification of a catalog, or nothing, and then why.

Some move a branch and fire no event: the snapshots before and after are what they answer. Which table was meant is only
said by name; what they answer is recorded only where that table has such snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from headwater.events import BranchMerged, CreateTable, Event, Format, Input, Output, TableName
from headwater.events.catalog import ModificationCause
from headwater.events.identity.text import joined, split
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.iceberg.table_changes import (
    FORMAT,
    ModifiedTable,
    event_fields,
    find_modified_table,
)
from headwater.listeners.capture.formats.iceberg.table_refs import MAIN
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of, table_of
from headwater.listeners.capture.formats.iceberg.write_results import branch_of, output_of, picked_input
from headwater.listeners.capture.formats.protocol import (
    SinkWrite,
    StatementWrites,
    WriteResult,
    WriteTarget,
    ref_fields,
)
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_SUFFIX: Final = "Procedure"
_FILES: Final = "which files were taken in isn't shown, so what this was made from isn't recorded"

ResultRow = Mapping[str, Any]
Outputs = Callable[["_Call"], Iterable[Output]]


@dataclass(frozen=True)
class _Call:
    """What a procedure did to a table."""

    kind: CommitKind
    statement: Statement
    reported: Mapping[str, Any]
    """What was looked up."""
    sink: SinkSchema

    @property
    def row(self) -> ResultRow:
        return self.statement.facts.rows[0] if self.statement.facts.rows else {}

    @property
    def noted(self) -> list[Mapping[str, Any]]:
        facts = self.statement.facts.hook_facts
        return [n for n in facts if n.get("hook") == FORMAT and n.get("action") == "committed"]

    @property
    def committed(self) -> list[Mapping[str, Any]]:
        """With what the table's metadata says of it, where that could be looked up."""
        return [{**commit, **(self.snapshot(commit["snapshot"]) or {})} for commit in self.noted]

    def snapshot(self, number: int | None) -> Mapping[str, Any] | None:
        return next(
            (snapshot for snapshot in self.reported.get("snapshots", ()) if snapshot["snapshot"] == number), None
        )


@dataclass(frozen=True)
class _Procedure:
    kind: CommitKind = CommitKind.OTHER
    outputs: Outputs | None = None
    inputs: Callable[[_Call], Iterable[Input]] | None = None
    """What the outputs were made from, beside what the plan reads."""
    catalog: Callable[[ModifiedTable, _Call, CaptureContext], Iterable[Event]] | None = None
    ignored: str | None = None
    gap: str | None = None
    argument: int = 0
    """Which argument names the table."""


def _branch_moved(call: _Call, before: str, after: str, **where: Any) -> Iterator[Output]:
    """A branch that points to another snapshot now."""
    current = call.row.get(after)
    found = call.snapshot(current)
    if found is None or call.row.get(before) == current:
        return
    fields = {**ref_fields(call.sink), "branch": None, "main": True, **where}
    yield output_of(_output_without_rows(found), fields, call.kind, OverwriteScope.UNKNOWN)


def _output_without_rows(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """A snapshot that was there before: its rows were written then."""
    return {key: found[key] for key in ("snapshot", "parent", "schemaId") if key in found}


def _cherry_picked(call: _Call) -> Iterator[Output]:
    """A commit of its own, unless the snapshot was right ahead of the branch: then the branch only moves."""
    if not call.noted:
        current = call.row.get("current_snapshot_id")
        found = call.snapshot(current)
        before = (call.reported.get("before") or {}).get("current")
        if found is not None and before != current:
            yield output_of(
                _output_without_rows(found),
                {**ref_fields(call.sink), "branch": None, "main": True},
                call.kind,
                OverwriteScope.UNKNOWN,
            )
        return
    for found in call.committed:
        extent = OverwriteScope.NOTHING if found.get("operation") == "append" else OverwriteScope.PART
        yield output_of(found, {**ref_fields(call.sink), **branch_of(found, None, {})}, call.kind, extent)


def _picked_inputs(call: _Call) -> Iterator[Input]:
    for commit in call.committed:
        picked = picked_input(commit, call.sink)
        if picked is not None:
            yield picked


def _fast_forwarded(call: _Call) -> Iterator[Output]:
    branch = call.row.get("branch_updated")
    where = {"branch": None if branch == MAIN else branch, "main": branch == MAIN}
    yield from _branch_moved(call, "previous_ref", "updated_ref", **where)


def _committed_outputs(call: _Call) -> Iterator[Output]:
    """Whatever it committed. The rows of a table stay the same when its files are rewritten."""
    for commit in call.noted:
        found = call.snapshot(commit["snapshot"])
        if found is not None:
            fields = {**ref_fields(call.sink), **branch_of(found, None, {})}
            yield output_of({**commit, **found}, fields, call.kind, OverwriteScope.NOTHING)


def _merge_event(found: ModifiedTable, call: _Call, context: CaptureContext) -> Iterator[Event]:
    branch, previous, updated = (call.row.get(key) for key in ("branch_updated", "previous_ref", "updated_ref"))
    source = (call.reported.get("arguments") or [None] * 3)[2]
    if source is None or branch is None or previous == updated or call.snapshot(updated) is None:
        return
    ref = ((found.before or {}).get("refs") or {}).get(source)
    if ref is None or ref["tag"]:
        return
    into = None if branch == MAIN else branch
    yield BranchMerged(
        **event_fields(found, context, ModificationCause.PROCEDURE),
        branch=source,
        into=into,
        previous_snapshot=previous,
        snapshot=updated,
    )


def _creation_events(
    found: ModifiedTable, call: _Call, context: CaptureContext, *, replaced: bool = False
) -> Iterator[Event]:
    if found.after is not None and found.before is None:
        yield CreateTable(
            **event_fields(found, context, ModificationCause.PROCEDURE), table=table_of(found.after), replaced=replaced
        )


def _register_event(found: ModifiedTable, call: _Call, context: CaptureContext) -> Iterator[Event]:
    """Its metadata was there before it had this name."""
    if found.any is not None:
        yield CreateTable(**event_fields(found, context, ModificationCause.PROCEDURE), table=table_of(found.any))


_ROLLBACK: Final = _Procedure(
    CommitKind.ROLLBACK, partial(_branch_moved, before="previous_snapshot_id", after="current_snapshot_id")
)
_CHERRY_PICK: Final = _Procedure(CommitKind.CHERRY_PICK, _cherry_picked, _picked_inputs)
_PROCEDURES: Final[Mapping[str, _Procedure]] = {
    "RollbackToSnapshot": _ROLLBACK,
    "RollbackToTimestamp": _ROLLBACK,
    "SetCurrentSnapshot": _Procedure(CommitKind.RESTORE, _ROLLBACK.outputs),
    "CherrypickSnapshot": _CHERRY_PICK,
    "PublishChanges": _CHERRY_PICK,
    "FastForwardBranch": _Procedure(CommitKind.FAST_FORWARD, _fast_forwarded, catalog=_merge_event),
    "RewriteDataFiles": _Procedure(CommitKind.COMPACT, _committed_outputs),
    "RewritePositionDeleteFiles": _Procedure(CommitKind.COMPACT, _committed_outputs),
    "RewriteManifests": _Procedure(CommitKind.REPLACE, _committed_outputs),
    "AddFiles": _Procedure(CommitKind.APPEND, _committed_outputs, gap=_FILES),
    "SnapshotTable": _Procedure(
        CommitKind.CREATE, _committed_outputs, catalog=_creation_events, gap=_FILES, argument=1
    ),
    "MigrateTable": _Procedure(
        CommitKind.CREATE, _committed_outputs, catalog=partial(_creation_events, replaced=True), gap=_FILES
    ),
    "RegisterTable": _Procedure(catalog=_register_event),
    "ExpireSnapshots": _Procedure(ignored="it forgets old snapshots, and changes no data that is current"),
    "RemoveOrphanFiles": _Procedure(ignored="it deletes files that belong to no snapshot"),
    "AncestorsOf": _Procedure(ignored="it only reads the table's history"),
    "CreateChangelogView": _Procedure(ignored="a temporary view, through which its readers are seen"),
    "ComputeTableStats": _Procedure(ignored="statistics beside the table, which make no snapshot"),
    "ComputePartitionStats": _Procedure(ignored="statistics beside the table, which make no snapshot"),
    "RewriteTablePath": _Procedure(
        ignored="it writes copies of metadata for a table elsewhere, and leaves this one alone"
    ),
}
"""By the class of a procedure, without the suffix."""


def _procedure(node: PlanNode) -> _Procedure | None:
    class_name = _class_of(node)
    return _PROCEDURES.get(class_name.rpartition(".")[2].removesuffix(_SUFFIX))


def _class_of(node: PlanNode) -> str:
    procedure = node.args.get("procedure")
    return str(procedure.get("class", "")) if isinstance(procedure, Mapping) else ""


def _procedure_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    procedure = _procedure(node)
    if procedure is None:
        return None
    if procedure.outputs is None:
        return StatementWrites(())
    reference = node.args["procedure"].get("catalog")
    catalog = None if reference is None else context.catalog(reference)
    sink = _sink(catalog, _argument_at(node, plan, procedure.argument), context)
    result, hints = partial(_write_result, procedure), {"scene": context}
    target = WriteTarget(sink, catalog, procedure.kind, versioned=True, hints=hints, result=result)
    return StatementWrites((SinkWrite(target),))


def _argument_at(node: PlanNode, plan: Plan, number: int) -> str | None:
    references = node.expressions_of("args")
    if len(references) <= number or references[number] < 0:
        return None
    return plan.expressions[references[number]].details.get("value")


def _sink(catalog: SessionNamedCatalog | None, text: str | None, context: CaptureContext) -> SinkSchema:
    """As far as the arguments say it: a table without its database is looked up where the session was."""
    parts = [] if text is None else list(split(text))
    if catalog is not None and len(parts) > 2 and parts[0] == catalog.name:
        parts = parts[1:]
    if catalog is None or len(parts) < 2:
        return SinkSchema(dataset=None, format=Format.ICEBERG, opaque="a table named in a procedure's arguments")
    table = TableName(catalog=catalog.name, database=joined(parts[:-1]), table=parts[-1])
    return SinkSchema(dataset=context.dataset(catalog, table, None), table=table, format=Format.ICEBERG)


def _write_result(procedure: _Procedure, target: WriteTarget, statement: Statement) -> WriteResult:
    context: CaptureContext = target.hints["scene"]
    found = find_modified_table(statement, context, "call")
    if found is None or found.any is None or procedure.outputs is None:
        return WriteResult(gap="the table of a procedure couldn't be looked up, so what it did isn't recorded")
    call = _Call(procedure.kind, statement, found.reported, _complete_sink(target.sink, found, context))
    outputs = tuple(procedure.outputs(call))
    gap = procedure.gap if outputs else _result_without_hooks(call)
    inputs = () if procedure.inputs is None else tuple(procedure.inputs(call))
    return WriteResult(outputs, gap, call.sink, inputs, unknown_origin=procedure.gap is not None)


def _result_without_hooks(call: _Call) -> str | None:
    """Without hooks nobody sees the commits of procedures that don't answer with them."""
    blind = call.statement.facts.looked_up.get(FORMAT, {}).get("hooked") is False
    changed = call.reported.get("changes", 0) > 0
    return "what this procedure committed is only seen by a hook" if blind and changed else None


def _complete_sink(sink: SinkSchema, found: ModifiedTable, context: CaptureContext) -> SinkSchema:
    fields, state = event_fields(found, context), found.any or {}
    return sink.model_copy(
        update={
            "dataset": fields["dataset"],
            "table": found.table,
            "generation": fields["generation"],
            "opaque": None,
            "columns": columns_from_schema_json(state["schema"]),
            "partitioning": partitioning_of(state),
            "primary_key": primary_key_of(state),
        }
    )


def _catalog_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    procedure = _procedure(node)
    found = find_modified_table(statement, context, "call")
    if procedure is None or procedure.catalog is None or found is None:
        return ()
    sink = SinkSchema(dataset=None, table=found.table)
    return procedure.catalog(found, _Call(procedure.kind, statement, found.reported, sink), context)


COMMANDS: Final[Mapping[str, CommandRule]] = {"Call": CommandRule(write=_procedure_write, catalog=_catalog_events)}
