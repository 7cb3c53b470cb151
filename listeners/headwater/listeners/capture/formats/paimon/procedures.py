"""CALL sys.*: what each of Paimon's procedures does to a table, or why nothing is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from headwater.events import (
    BranchMerged,
    Cause,
    CommitKind,
    CreateBranch,
    CreateTag,
    DropBranch,
    DropTag,
    Event,
    Extent,
    Format,
    Gap,
    GapReason,
    Output,
    ShapedSink,
    TableName,
)
from headwater.events.identity.text import joined, split
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.paimon import written as commits
from headwater.listeners.capture.formats.paimon.tables import made
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement

Arguments: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True)
class Called:
    """One call that ended well."""

    arguments: Arguments
    found: Mapping[str, Any]
    """What the eye saw of the table afterwards."""
    place: Mapping[str, Any]
    """What each modification of it tells of the table."""
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Procedure:
    parameters: tuple[str, ...]
    commits: CommitKind | None = None
    replaced: Extent = Extent.UNKNOWN
    tell: Callable[[Called], Iterator[Event]] | None = None
    ignored: str | None = None


def _create_tag(call: Called) -> Iterator[Event]:
    asked = call.arguments.get("snapshot")
    snapshot = call.rows[0].get("snapshot") if call.rows and "snapshot" in call.rows[0] else call.found.get("tagged")
    yield CreateTag(
        **call.place,
        tag=call.arguments["tag"] or "",
        snapshot=int(asked) if asked else snapshot,
        retention=call.arguments.get("time_retained"),
    )


def _drop_tags(call: Called) -> Iterator[Event]:
    for tag in _names(call.arguments["tag"]):
        yield DropTag(**call.place, tag=tag)


def _create_branch(call: Called) -> Iterator[Event]:
    yield CreateBranch(
        **call.place,
        branch=call.arguments["branch"] or "",
        tag=call.arguments.get("tag"),
        snapshot=call.found.get("tagged"),
    )


def _drop_branches(call: Called) -> Iterator[Event]:
    for branch in _names(call.arguments["branch"]):
        yield DropBranch(**call.place, branch=branch)


def _merge_branch(call: Called) -> Iterator[Event]:
    """Both have the same newest snapshot then, unless somebody has committed since."""
    head = call.found.get("head")
    yield BranchMerged(
        **call.place,
        branch=call.arguments["branch"] or "",
        snapshot=head if head == call.found.get("branchHead") else None,
    )


def _migrated(call: Called) -> Iterator[Event]:
    yield Gap(reason=GapReason.NOT_SUPPORTED, detail="a table of Hive became one of Paimon, which isn't told yet")


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "Compact": Procedure(("table",), CommitKind.COMPACT, Extent.PART),
    "Rollback": Procedure(("table", "version"), CommitKind.ROLLBACK),
    "ExpirePartitions": Procedure(("table",), CommitKind.TRUNCATE, Extent.PART),
    "CreateTag": Procedure(("table", "tag", "snapshot", "time_retained"), tell=_create_tag),
    "CreateTagFromTimestamp": Procedure(("table", "tag", "timestamp", "time_retained"), tell=_create_tag),
    "DeleteTag": Procedure(("table", "tag"), tell=_drop_tags),
    "CreateBranch": Procedure(("table", "branch", "tag"), tell=_create_branch),
    "DeleteBranch": Procedure(("table", "branch"), tell=_drop_branches),
    "FastForward": Procedure(("table", "branch"), tell=_merge_branch),
    "MigrateTable": Procedure(("source_type", "table"), tell=_migrated),
    "MigrateFile": Procedure(("source_type", "source_table", "target_table"), tell=_migrated),
    "ExpireSnapshots": Procedure(("table",), ignored="no table has other rows after it"),
    "RemoveOrphanFiles": Procedure(("table",), ignored="it removes files that no snapshot has"),
    "Repair": Procedure(("database_or_table",), ignored="it tells a metastore what is in the warehouse already"),
    "ResetConsumer": Procedure(("table",), ignored="it says where somebody else goes on reading"),
    "MarkPartitionDone": Procedure(("table",), ignored="it leaves a mark beside a partition's rows"),
}
"""By the class's name without `Procedure`."""


def written(target: Target, statement: Statement) -> Outcome:
    """What a procedure committed."""
    seen = statement.facts.looked_up.get("paimon", {})
    found = seen.get("called", {})
    sink = _sink(target, found)
    if target.kind is CommitKind.ROLLBACK:
        return Outcome() if statement.failure is not None else _rolled_back(target, sink, found)
    noted = commits.noted(statement) or [each for w in seen.get("writers", ()) for each in w.get("snapshots", ())]
    if noted:
        return Outcome(tuple(_output(each, sink, target) for each in noted), sink=sink)
    if statement.failure is not None:
        return Outcome()
    if any(row.get("expired_partitions") == "No expired partitions." for row in statement.facts.rows):
        return Outcome()
    outcome = commits.unheard(target, sink, found.get("within"))
    return Outcome(outcome.outputs, outcome.gap, sink)


def _output(commit: Mapping[str, Any], sink: ShapedSink, target: Target) -> Output:
    """Sorting is committed as an overwrite of the partitions that were sorted."""
    return commits.output(commit, sink, target.replaced, compacts=commit["kind"] == CommitKind.COMPACT)


def _rolled_back(target: Target, sink: ShapedSink, found: Mapping[str, Any]) -> Outcome:
    """No snapshot is made: one that was there is the newest again."""
    version = target.hints["arguments"].get("version") or ""
    snapshot = int(version) if version.isdigit() else found.get("tagged")
    if snapshot is None:
        why = f"the snapshot that tag {version} was of can't be known any more"
        return Outcome((commits.unknown(sink, target),), why, sink)
    place = {name: getattr(sink, name) for name in ("dataset", "table", "life", "format", "branch", "main")}
    return Outcome((Output(**place, snapshot=snapshot, commit_kind=CommitKind.ROLLBACK, made_from=()),), sink=sink)


def _sink(target: Target, found: Mapping[str, Any]) -> ShapedSink:
    if "location" not in found:
        return target.sink
    assert target.catalog is not None  # noqa: S101 - a procedure always is of one
    named = target.sink.model_copy(update={"table": _table(target.catalog, found)})
    return made(named, found, target.hints["site"])


def _table(catalog: NamedCatalog, found: Mapping[str, Any]) -> TableName:
    name = found["name"].partition("$")[0]
    return TableName(catalog=catalog.name, database=joined(found["namespace"]), table=name)


def _procedure(node: Node) -> Procedure | None:
    name = node.args.get("procedure", {}).get("class", "").rpartition(".")[2]
    return PROCEDURES.get(name.removesuffix("Procedure"))


def _arguments(node: Node, plan: Plan, procedure: Procedure) -> Arguments:
    given = [plan.expressions[each] if each >= 0 else None for each in node.expressions_of("args")]
    values = [None if each is None else each.details.get("value") for each in given]
    return dict(zip(procedure.parameters, values, strict=False))


def _catalog(node: Node, scene: Scene) -> NamedCatalog | None:
    reference = node.args.get("procedure", {}).get("catalog")
    return None if reference is None else scene.catalog(reference)


def _write(node: Node, plan: Plan, scene: Scene) -> Write | None:
    procedure, catalog = _procedure(node), _catalog(node, scene)
    if procedure is None or catalog is None:
        return None
    if procedure.commits is None:
        return Write(())
    arguments = _arguments(node, plan, procedure)
    name = _asked_for(catalog, arguments["table"] or "")
    dataset = None if name is None else scene.dataset(catalog, name, None)
    target = Target(
        ShapedSink(dataset=dataset, table=name, format=Format.PAIMON),
        catalog,
        procedure.commits,
        procedure.replaced,
        versioned=True,
        hints={
            "procedure": True,
            "arguments": arguments,
            "site": scene.site,
            "certain": procedure.commits is CommitKind.TRUNCATE,
        },
    )
    return Write((Part(target),))


def _asked_for(catalog: NamedCatalog, text: str) -> TableName | None:
    """As far as the argument tells it: the session's own database isn't in it."""
    parts = split(text) if text else []
    if len(parts) == 3 and parts[0] == catalog.name:
        parts = parts[1:]
    if len(parts) != 2:
        return None
    return TableName(catalog=catalog.name, database=parts[0], table=parts[1].partition("$")[0])


def _tell(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
    procedure, catalog = _procedure(node), _catalog(node, scene)
    if procedure is None or catalog is None or procedure.tell is None:
        return
    found = statement.facts.looked_up.get("paimon", {}).get("called", {})
    arguments = _arguments(node, statement.plan, procedure)
    name = _table(catalog, found) if "name" in found else _asked_for(catalog, arguments.get("table") or "")
    if name is None:
        yield Gap(reason=GapReason.CAPTURE_FAILED, detail="which table a procedure was called for can't be known")
        return
    sink = made(ShapedSink(dataset=scene.dataset(catalog, name, None)), found, scene.site)
    place = {
        "context": catalog.context,
        "cause": Cause.PROCEDURE,
        "identifier": name,
        "dataset": sink.dataset,
        "life": sink.life,
        "format": Format.PAIMON,
        "on_branch": sink.branch,
        "schema_id": found.get("schema"),
    }
    yield from procedure.tell(Called(arguments, found, place, statement.facts.rows))


COMMANDS: Final[Mapping[str, Command]] = {"PaimonCallCommand": Command(_write, _tell)}
