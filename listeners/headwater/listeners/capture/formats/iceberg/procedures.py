"""Procedures: a commit of its own kind, a modification of a catalog, or nothing, and then why.

Some move a branch and fire no event: the snapshots before and after are what they answer. Which table was meant is only
said by name; what they answer is told only where that table has such snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from headwater.events import (
    BranchMerged,
    Cause,
    CommitKind,
    CreateTable,
    Event,
    Extent,
    Format,
    Output,
    ShapedSink,
    TableName,
)
from headwater.events.identity.text import joined, split
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.iceberg.modified import FORMAT, Modified, about, modified
from headwater.listeners.capture.formats.iceberg.places import MAIN
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of, table_of
from headwater.listeners.capture.formats.iceberg.written import branch_of, output_of, place
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement

_SUFFIX: Final = "Procedure"
_FILES: Final = "which files were taken in isn't shown, so what this was made from isn't told"

Row = Mapping[str, Any]
Outputs = Callable[["_Call"], Iterable[Output]]


@dataclass(frozen=True)
class _Call:
    """What a procedure did to a table."""

    kind: CommitKind
    statement: Statement
    told: Mapping[str, Any]
    """What was looked up."""
    sink: ShapedSink

    @property
    def row(self) -> Row:
        return self.statement.facts.rows[0] if self.statement.facts.rows else {}

    @property
    def noted(self) -> list[Mapping[str, Any]]:
        facts = self.statement.facts.noted
        return [n for n in facts if n.get("hook") == FORMAT and n.get("did") == "committed"]

    def snapshot(self, number: int | None) -> Mapping[str, Any] | None:
        return next((each for each in self.told.get("snapshots", ()) if each["snapshot"] == number), None)


@dataclass(frozen=True)
class _Procedure:
    kind: CommitKind = CommitKind.OTHER
    outputs: Outputs | None = None
    catalog: Callable[[Modified, _Call, Scene], Iterable[Event]] | None = None
    ignored: str | None = None
    gap: str | None = None
    argument: int = 0
    """Which argument names the table."""


def _moved(call: _Call, before: str, after: str, **where: Any) -> Iterator[Output]:
    """A branch that points to another snapshot now."""
    current = call.row.get(after)
    found = call.snapshot(current)
    if found is None or call.row.get(before) == current:
        return
    told = {**place(call.sink), "branch": None, "main": True, **where}
    yield output_of(_only_moved(found), told, call.kind, Extent.UNKNOWN)


def _only_moved(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """A snapshot that was there before: its rows were written then."""
    return {key: found[key] for key in ("snapshot", "parent", "schemaId") if key in found}


def _picked(call: _Call) -> Iterator[Output]:
    """A commit of its own, unless the snapshot was right ahead of the branch: then the branch only moves."""
    if not call.noted:
        current = call.row.get("current_snapshot_id")
        found = call.snapshot(current)
        before = (call.told.get("before") or {}).get("current")
        if found is not None and before != current:
            yield output_of(
                _only_moved(found), {**place(call.sink), "branch": None, "main": True}, call.kind, Extent.UNKNOWN
            )
        return
    for commit in call.noted:
        found = {**commit, **(call.snapshot(commit["snapshot"]) or {})}
        extent = Extent.NOTHING if found.get("operation") == "append" else Extent.PART
        yield output_of(found, {**place(call.sink), **branch_of(found, None, {})}, call.kind, extent)


def _forwarded(call: _Call) -> Iterator[Output]:
    branch = call.row.get("branch_updated")
    where = {"branch": None if branch == MAIN else branch, "main": branch == MAIN}
    yield from _moved(call, "previous_ref", "updated_ref", **where)


def _committed(call: _Call) -> Iterator[Output]:
    """Whatever it committed. The rows of a table stay the same when its files are rewritten."""
    for commit in call.noted:
        found = call.snapshot(commit["snapshot"])
        if found is not None:
            told = {**place(call.sink), **branch_of(found, None, {})}
            yield output_of({**commit, **found}, told, call.kind, Extent.NOTHING)


def _merged(found: Modified, call: _Call, scene: Scene) -> Iterator[Event]:
    branch, previous, updated = (call.row.get(key) for key in ("branch_updated", "previous_ref", "updated_ref"))
    source = (call.told.get("arguments") or [None] * 3)[2]
    if source is None or branch is None or previous == updated or call.snapshot(updated) is None:
        return
    ref = ((found.before or {}).get("refs") or {}).get(source)
    if ref is None or ref["tag"]:
        return
    into = None if branch == MAIN else branch
    yield BranchMerged(
        **about(found, scene, Cause.PROCEDURE),
        branch=source,
        into=into,
        previous_snapshot=previous,
        snapshot=updated,
    )


def _created(found: Modified, call: _Call, scene: Scene, *, replaced: bool = False) -> Iterator[Event]:
    if found.after is not None and found.before is None:
        yield CreateTable(**about(found, scene, Cause.PROCEDURE), table=table_of(found.after), replaced=replaced)


def _registered(found: Modified, call: _Call, scene: Scene) -> Iterator[Event]:
    """Its metadata was there before it had this name."""
    if found.any is not None:
        yield CreateTable(**about(found, scene, Cause.PROCEDURE), table=table_of(found.any))


_ROLLBACK: Final = _Procedure(
    CommitKind.ROLLBACK, partial(_moved, before="previous_snapshot_id", after="current_snapshot_id")
)
_PROCEDURES: Final[Mapping[str, _Procedure]] = {
    "RollbackToSnapshot": _ROLLBACK,
    "RollbackToTimestamp": _ROLLBACK,
    "SetCurrentSnapshot": _Procedure(CommitKind.RESTORE, _ROLLBACK.outputs),
    "CherrypickSnapshot": _Procedure(CommitKind.CHERRY_PICK, _picked),
    "PublishChanges": _Procedure(CommitKind.CHERRY_PICK, _picked),
    "FastForwardBranch": _Procedure(CommitKind.FAST_FORWARD, _forwarded, _merged),
    "RewriteDataFiles": _Procedure(CommitKind.COMPACT, _committed),
    "RewritePositionDeleteFiles": _Procedure(CommitKind.COMPACT, _committed),
    "RewriteManifests": _Procedure(CommitKind.REPLACE, _committed),
    "AddFiles": _Procedure(CommitKind.APPEND, _committed, gap=_FILES),
    "SnapshotTable": _Procedure(CommitKind.CREATE, _committed, _created, gap=_FILES, argument=1),
    "MigrateTable": _Procedure(CommitKind.CREATE, _committed, partial(_created, replaced=True), gap=_FILES),
    "RegisterTable": _Procedure(catalog=_registered),
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


def _procedure(node: Node) -> _Procedure | None:
    class_name = _class_of(node)
    return _PROCEDURES.get(class_name.rpartition(".")[2].removesuffix(_SUFFIX))


def _class_of(node: Node) -> str:
    procedure = node.args.get("procedure")
    return str(procedure.get("class", "")) if isinstance(procedure, Mapping) else ""


def _write(node: Node, plan: Plan, scene: Scene) -> Write | None:
    procedure = _procedure(node)
    if procedure is None:
        return None
    if procedure.outputs is None:
        return Write(())
    reference = node.args["procedure"].get("catalog")
    catalog = None if reference is None else scene.catalog(reference)
    sink = _sink(catalog, _argument(node, plan, procedure.argument), scene)
    hints = {"written": partial(_written, procedure), "scene": scene}
    return Write((Part(Target(sink, catalog, procedure.kind, versioned=True, hints=hints)),))


def _argument(node: Node, plan: Plan, number: int) -> str | None:
    references = node.expressions_of("args")
    if len(references) <= number or references[number] < 0:
        return None
    return plan.expressions[references[number]].details.get("value")


def _sink(catalog: NamedCatalog | None, text: str | None, scene: Scene) -> ShapedSink:
    """As far as the arguments say it: a table without its database is looked up where the session was."""
    parts = [] if text is None else list(split(text))
    if catalog is not None and len(parts) > 2 and parts[0] == catalog.name:
        parts = parts[1:]
    if catalog is None or len(parts) < 2:
        return ShapedSink(dataset=None, format=Format.ICEBERG, opaque="a table named in a procedure's arguments")
    table = TableName(catalog=catalog.name, database=joined(parts[:-1]), table=parts[-1])
    return ShapedSink(dataset=scene.dataset(catalog, table, None), table=table, format=Format.ICEBERG)


def _written(procedure: _Procedure, target: Target, statement: Statement) -> Outcome:
    scene: Scene = target.hints["scene"]
    found = modified(statement, scene, "call")
    if found is None or found.any is None or procedure.outputs is None:
        return Outcome(gap="the table of a procedure couldn't be looked up, so what it did isn't told")
    call = _Call(procedure.kind, statement, found.told, _found_sink(target.sink, found, scene))
    outputs = tuple(procedure.outputs(call))
    gap = procedure.gap if outputs else _unhooked(call)
    return Outcome(outputs, gap, call.sink, unknown_origin=procedure.gap is not None)


def _unhooked(call: _Call) -> str | None:
    """Without hooks nobody sees the commits of procedures that don't answer with them."""
    blind = call.statement.facts.looked_up.get(FORMAT, {}).get("hooked") is False
    changed = call.told.get("changes", 0) > 0
    return "what this procedure committed is only seen by a hook" if blind and changed else None


def _found_sink(sink: ShapedSink, found: Modified, scene: Scene) -> ShapedSink:
    told, state = about(found, scene), found.any or {}
    return sink.model_copy(
        update={
            "dataset": told["dataset"],
            "table": found.table,
            "life": told["life"],
            "opaque": None,
            "columns": columns_from_schema_json(state["schema"]),
            "partitioning": partitioning_of(state),
            "primary_key": primary_key_of(state),
        }
    )


def _tell(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
    procedure = _procedure(node)
    found = modified(statement, scene, "call")
    if procedure is None or procedure.catalog is None or found is None:
        return ()
    sink = ShapedSink(dataset=None, table=found.table)
    return procedure.catalog(found, _Call(procedure.kind, statement, found.told, sink), scene)


COMMANDS: Final[Mapping[str, Command]] = {"Call": Command(write=_write, catalog=_tell)}
