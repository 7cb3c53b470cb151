"""CALL: what each of Hudi's procedures does to a table, or why nothing is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from headwater.events import Cause, CommitKind, CreateTag, DropTag, Event, Extent, Format, Output, ShapedSink, TableName
from headwater.events import Truncate as Truncated
from headwater.events.identity.text import split
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.hudi.places import placed
from headwater.listeners.capture.formats.hudi.sinks import hints
from headwater.listeners.capture.formats.hudi.timelines import COMMITS, Instant, looked_up, noted, timeline
from headwater.listeners.capture.formats.hudi.written import compacted, during, place
from headwater.listeners.capture.formats.hudi.written import outcome_of as written
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import SESSION_CATALOG, Scene
from headwater.listeners.capture.statements import Statement

Arguments: TypeAlias = Mapping[str, str | None]
_UNSEEN: Final = "which instant this procedure made can't be seen: others committed meanwhile"
_GONE: Final = "the table's timeline couldn't be read when the procedure had ended"


@dataclass(frozen=True)
class Procedure:
    parameters: tuple[str, ...]
    kind: CommitKind | None = None
    operations: frozenset[str] = frozenset()
    """Hudi's words for what it commits."""
    undoes: str | None = None
    """The action that it leaves on the timeline, where it takes commits back."""
    tell: Callable[[Arguments, Mapping[str, Any]], Iterator[Event]] | None = None


def _create_tag(arguments: Arguments, modified: Mapping[str, Any]) -> Iterator[Event]:
    """A savepoint has no other name than its instant."""
    instant = arguments.get("commit_time")
    if instant:
        yield CreateTag(**modified, tag=instant, snapshot=int(instant))


def _drop_tags(arguments: Arguments, modified: Mapping[str, Any]) -> Iterator[Event]:
    for instant in (arguments.get("instant_time") or "").split(","):
        if instant.strip():
            yield DropTag(**modified, tag=instant.strip())


def _truncated(arguments: Arguments, modified: Mapping[str, Any]) -> Iterator[Event]:
    """Of partitions it can't be told which: the argument may be a pattern."""
    if not arguments.get("partitions"):
        yield Truncated(**modified)


_CLUSTER: Final = frozenset({"CLUSTER"})
_COMPACT: Final = frozenset({"COMPACT", "LOG_COMPACT"})
PROCEDURES: Final[Mapping[str, Procedure]] = {
    "RunCompaction": Procedure(("op", "table", "path", "timestamp"), CommitKind.COMPACT, _COMPACT),
    "RunClustering": Procedure(("table", "path"), CommitKind.COMPACT, _CLUSTER),
    "RollbackToInstantTime": Procedure(("table", "instant_time"), CommitKind.ROLLBACK, undoes="rollback"),
    "RollbackToSavepoint": Procedure(("table", "instant_time", "path"), CommitKind.RESTORE, undoes="restore"),
    "CreateSavepoint": Procedure(("table", "commit_time", "user", "comments", "path"), tell=_create_tag),
    "DeleteSavepoint": Procedure(("table", "instant_time", "path"), tell=_drop_tags),
    "TruncateTable": Procedure(("table", "partitions"), CommitKind.TRUNCATE, tell=_truncated),
    "DropPartition": Procedure(("table", "partition"), CommitKind.DELETE),
    "RunTTL": Procedure(("table", "ttl_policy"), CommitKind.DELETE),
}
"""By the class's name without `Procedure`."""
_LOOKING: Final = ("Show", "Help", "Stats", "Validate", "CommitsCompare", "CopyToTempView", "ExportInstants")
IGNORED: Final[Mapping[str, str]] = {
    "ArchiveCommits": "no table has other rows after it",
    "RunClean": "it removes files that only older instants have",
    "DeleteMarker": "it removes what a failed write left",
    "RunRollbackInflightTableService": "what it takes back was never completed",
    "CreateMetadataTable": "the metadata table is nobody's data",
    "DeleteMetadataTable": "the metadata table is nobody's data",
    "InitMetadataTable": "the metadata table is nobody's data",
    "PartitionBucketIndexManager": "an index doesn't change what a table is",
    "HiveSync": "it tells a metastore what is on the timeline already",
    "RepairAddpartitionmeta": "no table has other rows after it",
    "RepairCorruptedCleanFiles": "no table has other rows after it",
    "RepairMigratePartitionMeta": "no table has other rows after it",
    "RepairOverwriteHoodieProps": "no table has other rows after it",
    "DowngradeTable": "no table has other rows after it",
    "UpgradeTable": "no table has other rows after it",
    "UpgradeOrDowngrade": "no table has other rows after it",
    "SetAuditLock": "it says who looks at locks",
}
UNTOLD: Final[Mapping[str, str]] = {
    "CopyToTable": "what it makes of which instant isn't told yet",
    "HdfsParquetImport": "the files that it makes a table of aren't followed yet",
    "RunBootstrap": "the files that it makes a table of aren't followed yet",
    "RepairDeduplicate": "it writes files beside the timeline",
}
"""Each that is called is told as a Gap."""


def outcome_of(target: Target, statement: Statement) -> Outcome:
    """What a procedure committed."""
    procedure: Procedure = target.hints["procedure"]
    told = looked_up(statement.facts).get("target")
    target = replace(target, sink=_placed(target.sink, told, target))
    if noted(statement.facts) or not (procedure.undoes or procedure.operations):
        return written(replace(target, hints={"site": target.hints["site"]}), statement)
    if statement.failure is not None:
        return Outcome()  # what others did meanwhile would be taken for it
    line = timeline(statement.facts, told)
    if line is None:
        return Outcome((Output(**place(target.sink), commit_kind=target.kind),), _GONE, target.sink)
    if procedure.undoes:
        return _undone(procedure.undoes, target, line, statement)
    return _serviced(procedure.operations, target, line, statement)


def _placed(sink: ShapedSink, path: str | None, target: Target) -> ShapedSink:
    if path is None:
        return sink
    return sink.model_copy(update={"dataset": placed(path, target.hints["site"])})


def _undone(action: str, target: Target, line: Sequence[Instant], statement: Statement) -> Outcome:
    """What was the newest before what was taken back is the newest again. Where it took nothing back, there is none."""
    since = statement.started or 0
    ran = [n for n, each in enumerate(line) if each.action == action and since <= each.completed <= statement.ended]
    wanted = target.hints["arguments"].get("instant_time")
    if action == "rollback" and wanted:
        ran = [n for n in ran if int(wanted) in line[n].undone]
    if not ran:
        return Outcome()
    if len(ran) > 1:
        return Outcome((Output(**place(target.sink), commit_kind=target.kind),), _UNSEEN, target.sink)
    left = [each.number for each in line[: ran[0]] if each.action in COMMITS]
    snapshot = int(wanted) if action == "restore" and wanted else (left[-1] if left else None)
    if snapshot is None:
        return Outcome((Output(**place(target.sink), commit_kind=target.kind, replaced=Extent.ALL, made_from=()),))
    return Outcome((Output(**place(target.sink), snapshot=snapshot, commit_kind=target.kind, made_from=()),))


def _serviced(operations: frozenset[str], target: Target, line: Sequence[Instant], statement: Statement) -> Outcome:
    """The answer names what it ran; without one, those that ran meanwhile may be somebody else's."""
    ran = [each for each in during(line, statement) if each.operation in operations]
    rows = statement.facts.rows
    answered = {int(row["timestamp"]) for row in rows if str(row.get("timestamp", "")).isdecimal()}
    if answered:
        ran = [each for each in ran if each.number in answered]
    elif len(ran) > 1:
        numbers = tuple(sorted(each.number for each in ran))
        unknown = Output(
            **place(target.sink), commit_kind=target.kind, replaced=Extent.NOTHING, made_from=(), candidates=numbers
        )
        return Outcome((unknown,), _UNSEEN, target.sink)
    return Outcome(tuple(compacted(each, target.sink, line) for each in ran), sink=target.sink)


def _name(node: Node) -> str:
    name: str = node.args.get("procedure", {}).get("class", "").rpartition(".")[2]
    return name.removesuffix("Procedure")


def _arguments(node: Node, procedure: Procedure) -> Arguments:
    told: Mapping[str, Any] = node.args.get("args", {})
    values: Sequence[Any] = told.get("internalRow") or ()
    places: Mapping[str, int] = told.get("map") or {}
    given = {key: values[n] for key, n in places.items() if n < len(values)}
    if told.get("isNamedArgs"):
        return {key.lower(): None if text is None else str(text) for key, text in given.items()}
    by_place = {int(key): text for key, text in given.items() if key.isdecimal()}
    return {name: by_place.get(n) for n, name in enumerate(procedure.parameters)}


def _table(text: str | None) -> TableName | None:
    """As far as the argument tells it: the session's own database isn't in it."""
    parts = split(text) if text else []
    parts = parts[1:] if len(parts) == 3 and parts[0] == SESSION_CATALOG else parts
    return TableName(catalog=SESSION_CATALOG, database=parts[0], table=parts[1]) if len(parts) == 2 else None


def _write(node: Node, plan: Plan, scene: Scene) -> Write | None:
    name = _name(node)
    if name in IGNORED or name.startswith(_LOOKING):
        return Write(())
    procedure = PROCEDURES.get(name)
    if procedure is None:
        return None
    arguments = _arguments(node, procedure)
    if procedure.kind is None or (procedure.kind is CommitKind.TRUNCATE and not arguments.get("partitions")):
        return Write(())
    dataset = placed(arguments.get("path"), scene.site)
    sink = ShapedSink(dataset=dataset, table=_table(arguments.get("table")), format=Format.HUDI)
    extent = Extent.NOTHING if procedure.kind is CommitKind.COMPACT else Extent.PART
    own = {**hints(scene), "procedure": procedure, "arguments": arguments}
    catalog = None if sink.table is None else scene.session_catalog()
    return Write((Part(Target(sink, catalog, procedure.kind, extent, versioned=True, hints=own)),))


def _tell(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
    procedure = PROCEDURES.get(_name(node))
    if procedure is None or procedure.tell is None:
        return ()
    arguments = _arguments(node, procedure)
    found = looked_up(statement.facts)
    path = found.get("target") or arguments.get("path")
    told = found.get("table")
    name = None if told is None else TableName(catalog=SESSION_CATALOG, database=told["database"], table=told["name"])
    name = (
        name or _table(arguments.get("table")) or TableName(catalog=SESSION_CATALOG, database="hudi", table=path or "")
    )
    modified = {
        "context": scene.session_catalog().context,
        "cause": Cause.PROCEDURE,
        "identifier": name,
        "dataset": placed(path, scene.site),
        "format": Format.HUDI,
    }
    return procedure.tell(arguments, modified)


def _compacted_by_command(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """RUN COMPACTION ON …; SCHEDULE makes a plan that nobody reads."""
    if str(node.args.get("operation", "")).upper() != "RUN":
        return Write(())
    table = node.args.get("table")
    told = (
        None
        if not isinstance(table, Mapping)
        else TableName(catalog=SESSION_CATALOG, database=table.get("database") or "", table=table["name"])
    )
    sink = ShapedSink(dataset=placed(node.args.get("path"), scene.site), table=told, format=Format.HUDI)
    own = {**hints(scene), "procedure": PROCEDURES["RunCompaction"], "arguments": {}}
    catalog = None if told is None else scene.session_catalog()
    return Write((Part(Target(sink, catalog, CommitKind.COMPACT, Extent.NOTHING, versioned=True, hints=own)),))


COMMAND: Final = Command(_write, _tell)
COMPACTION: Final = Command(_compacted_by_command)
