"""CALL sys.*: what each of Paimon's procedures does to a table, or why nothing is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import (
    BranchMerged,
    CreateBranch,
    CreateTag,
    DropBranch,
    DropTag,
    Event,
    Format,
    Gap,
    Output,
    TableName,
)
from headwater.events.catalog import ModificationCause
from headwater.events.health import GapReason
from headwater.events.identity.text import joined, split
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.paimon import write_results as commits
from headwater.listeners.capture.formats.paimon.tables import complete_sink
from headwater.listeners.capture.formats.protocol import (
    ProcedureArguments,
    SinkWrite,
    StatementWrites,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement


@dataclass(frozen=True)
class PaimonProcedureCall:
    """One call that ended well."""

    arguments: ProcedureArguments
    found: Mapping[str, Any]
    """What the extractor saw of the table afterwards."""
    place: Mapping[str, Any]
    """What each modification of it tells of the table."""
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class PaimonProcedure:
    parameters: tuple[str, ...]
    commits: CommitKind | None = None
    replaced: OverwriteScope = OverwriteScope.UNKNOWN
    translate: Callable[[PaimonProcedureCall], Iterator[Event]] | None = None
    ignored: str | None = None


def _create_tag(call: PaimonProcedureCall) -> Iterator[Event]:
    asked = call.arguments.get("snapshot")
    snapshot = call.rows[0].get("snapshot") if call.rows and "snapshot" in call.rows[0] else call.found.get("tagged")
    yield CreateTag(
        **call.place,
        tag=call.arguments["tag"] or "",
        snapshot=int(asked) if asked else snapshot,
        retention=call.arguments.get("time_retained"),
    )


def _drop_tags(call: PaimonProcedureCall) -> Iterator[Event]:
    for tag in _names(call.arguments["tag"]):
        yield DropTag(**call.place, tag=tag)


def _create_branch(call: PaimonProcedureCall) -> Iterator[Event]:
    yield CreateBranch(
        **call.place,
        branch=call.arguments["branch"] or "",
        tag=call.arguments.get("tag"),
        snapshot=call.found.get("tagged"),
    )


def _drop_branches(call: PaimonProcedureCall) -> Iterator[Event]:
    for branch in _names(call.arguments["branch"]):
        yield DropBranch(**call.place, branch=branch)


def _merge_branch(call: PaimonProcedureCall) -> Iterator[Event]:
    """Both have the same newest snapshot then, unless somebody has committed since."""
    head = call.found.get("head")
    yield BranchMerged(
        **call.place,
        branch=call.arguments["branch"] or "",
        snapshot=head if head == call.found.get("branchHead") else None,
    )


def _migrate_events(call: PaimonProcedureCall) -> Iterator[Event]:
    yield Gap(reason=GapReason.NOT_SUPPORTED, detail="a table of Hive became one of Paimon, which isn't recorded yet")


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


PROCEDURES: Final[Mapping[str, PaimonProcedure]] = {
    "Compact": PaimonProcedure(("table",), CommitKind.COMPACT, OverwriteScope.PART),
    "Rollback": PaimonProcedure(("table", "version"), CommitKind.ROLLBACK),
    "ExpirePartitions": PaimonProcedure(("table",), CommitKind.TRUNCATE, OverwriteScope.PART),
    "CreateTag": PaimonProcedure(("table", "tag", "snapshot", "time_retained"), translate=_create_tag),
    "CreateTagFromTimestamp": PaimonProcedure(("table", "tag", "timestamp", "time_retained"), translate=_create_tag),
    "DeleteTag": PaimonProcedure(("table", "tag"), translate=_drop_tags),
    "CreateBranch": PaimonProcedure(("table", "branch", "tag"), translate=_create_branch),
    "DeleteBranch": PaimonProcedure(("table", "branch"), translate=_drop_branches),
    "FastForward": PaimonProcedure(("table", "branch"), translate=_merge_branch),
    "MigrateTable": PaimonProcedure(("source_type", "table"), translate=_migrate_events),
    "MigrateFile": PaimonProcedure(("source_type", "source_table", "target_table"), translate=_migrate_events),
    "ExpireSnapshots": PaimonProcedure(("table",), ignored="no table has other rows after it"),
    "RemoveOrphanFiles": PaimonProcedure(("table",), ignored="it removes files that no snapshot has"),
    "Repair": PaimonProcedure(("database_or_table",), ignored="it tells a metastore what is in the warehouse already"),
    "ResetConsumer": PaimonProcedure(("table",), ignored="it says where somebody else goes on reading"),
    "MarkPartitionDone": PaimonProcedure(("table",), ignored="it leaves a mark beside a partition's rows"),
}
"""By the class's name without `Procedure`."""


def _write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    """What a procedure committed."""
    seen = statement.facts.looked_up.get("paimon", {})
    found = seen.get("called", {})
    sink = _sink(target, found)
    if target.kind is CommitKind.ROLLBACK:
        return WriteResult() if statement.failure is not None else _result_of_rollback(target, sink, found)
    noted = commits.recorded_commits(statement) or [
        snapshot for w in seen.get("writers", ()) for snapshot in w.get("snapshots", ())
    ]
    if noted:
        return WriteResult(tuple(_output(snapshot, sink, target) for snapshot in noted), sink=sink)
    if statement.failure is not None:
        return WriteResult()
    if any(row.get("expired_partitions") == "No expired partitions." for row in statement.facts.rows):
        return WriteResult()
    outcome = commits.unattributed_result(target, sink, found.get("within"))
    return WriteResult(outcome.outputs, outcome.gap, sink)


def _output(commit: Mapping[str, Any], sink: SinkSchema, target: WriteTarget) -> Output:
    """Sorting is committed as an overwrite of the partitions that were sorted."""
    return commits.make_output(commit, sink, target.replaced, compacts=commit["kind"] == CommitKind.COMPACT)


def _result_of_rollback(target: WriteTarget, sink: SinkSchema, found: Mapping[str, Any]) -> WriteResult:
    """No snapshot is made: one that was there is the newest again."""
    version = target.hints["arguments"].get("version") or ""
    snapshot = int(version) if version.isdigit() else found.get("tagged")
    if snapshot is None:
        why = f"the snapshot that tag {version} was of can't be known any more"
        return WriteResult((commits.unknown_result(sink, target),), why, sink)
    return WriteResult((target.output(sink, snapshot=snapshot, made_from=()),), sink=sink)


def _sink(target: WriteTarget, found: Mapping[str, Any]) -> SinkSchema:
    if "location" not in found:
        return target.sink
    assert target.catalog is not None  # noqa: S101 - a procedure always is of one
    named = target.sink.model_copy(update={"table": _table_name(target.catalog, found)})
    return complete_sink(named, found, target.hints["environment"])


def _table_name(catalog: SessionNamedCatalog, found: Mapping[str, Any]) -> TableName:
    name = found["name"].partition("$")[0]
    return TableName(catalog=catalog.name, database=joined(found["namespace"]), table=name)


def _procedure(node: PlanNode) -> PaimonProcedure | None:
    name = node.args.get("procedure", {}).get("class", "").rpartition(".")[2]
    return PROCEDURES.get(name.removesuffix("Procedure"))


def _arguments(node: PlanNode, plan: Plan, procedure: PaimonProcedure) -> ProcedureArguments:
    given = [plan.expressions[reference] if reference >= 0 else None for reference in node.expressions_of("args")]
    values = [None if argument is None else argument.details.get("value") for argument in given]
    return dict(zip(procedure.parameters, values, strict=False))


def _catalog(node: PlanNode, context: CaptureContext) -> SessionNamedCatalog | None:
    reference = node.args.get("procedure", {}).get("catalog")
    return None if reference is None else context.catalog(reference)


def _procedure_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    procedure, catalog = _procedure(node), _catalog(node, context)
    if procedure is None or catalog is None:
        return None
    if procedure.commits is None:
        return StatementWrites(())
    arguments = _arguments(node, plan, procedure)
    name = _parse_table_name(catalog, arguments["table"] or "")
    dataset = None if name is None else context.dataset(catalog, name, None)
    target = WriteTarget(
        SinkSchema(dataset=dataset, table=name, format=Format.PAIMON),
        catalog,
        procedure.commits,
        procedure.replaced,
        versioned=True,
        hints={
            "arguments": arguments,
            "environment": context.environment,
            "certain": procedure.commits is CommitKind.TRUNCATE,
        },
        result=_write_result,
    )
    return StatementWrites((SinkWrite(target),))


def _parse_table_name(catalog: SessionNamedCatalog, text: str) -> TableName | None:
    """As far as the argument tells it: the session's own database isn't in it."""
    parts = split(text) if text else []
    if len(parts) == 3 and parts[0] == catalog.name:
        parts = parts[1:]
    if len(parts) != 2:
        return None
    return TableName(catalog=catalog.name, database=parts[0], table=parts[1].partition("$")[0])


def _catalog_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    procedure, catalog = _procedure(node), _catalog(node, context)
    if procedure is None or catalog is None or procedure.translate is None:
        return
    found = statement.facts.looked_up.get("paimon", {}).get("called", {})
    arguments = _arguments(node, statement.plan, procedure)
    name = _table_name(catalog, found) if "name" in found else _parse_table_name(catalog, arguments.get("table") or "")
    if name is None:
        yield Gap(reason=GapReason.CAPTURE_FAILED, detail="which table a procedure was called for can't be known")
        return
    sink = complete_sink(SinkSchema(dataset=context.dataset(catalog, name, None)), found, context.environment)
    place = {
        "context": catalog.context,
        "cause": ModificationCause.PROCEDURE,
        "identifier": name,
        "dataset": sink.dataset,
        "generation": sink.generation,
        "format": Format.PAIMON,
        "on_branch": sink.branch,
        "schema_id": found.get("schema"),
    }
    yield from procedure.translate(PaimonProcedureCall(arguments, found, place, statement.facts.rows))


COMMANDS: Final[Mapping[str, CommandRule]] = {"PaimonCallCommand": CommandRule(_procedure_write, _catalog_events)}
