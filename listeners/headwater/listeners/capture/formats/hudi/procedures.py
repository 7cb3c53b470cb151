"""CALL: what each of Hudi's procedures does to a table, or why nothing is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from headwater.events import CreateTag, DropTag, Event, Format, TableName
from headwater.events import Truncate as Truncated
from headwater.events.catalog import ModificationCause
from headwater.events.identity.text import split
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext
from headwater.listeners.capture.formats.hudi.sinks import session_hints
from headwater.listeners.capture.formats.hudi.table_refs import place_path
from headwater.listeners.capture.formats.hudi.timelines import (
    COMMITS,
    HudiInstant,
    recorded_commits,
    timeline,
    timeline_facts,
)
from headwater.listeners.capture.formats.hudi.write_results import commits_during, compaction_output
from headwater.listeners.capture.formats.hudi.write_results import write_result as written
from headwater.listeners.capture.formats.protocol import (
    ProcedureArguments,
    SinkWrite,
    StatementWrites,
    WriteResult,
    WriteTarget,
)
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_UNSEEN: Final = "which instant this procedure made can't be seen: others committed meanwhile"
_UNREADABLE: Final = "the table's timeline couldn't be read when the procedure had ended"


@dataclass(frozen=True)
class HudiProcedure:
    parameters: tuple[str, ...]
    kind: CommitKind | None = None
    operations: frozenset[str] = frozenset()
    """Hudi's words for what it commits."""
    undoes: str | None = None
    """The action that it leaves on the timeline, where it takes commits back."""
    translate: Callable[[ProcedureArguments, Mapping[str, Any]], Iterator[Event]] | None = None


def _create_tag(arguments: ProcedureArguments, modified: Mapping[str, Any]) -> Iterator[Event]:
    """A savepoint has no other name than its instant."""
    instant = arguments.get("commit_time")
    if instant:
        yield CreateTag(**modified, tag=instant, snapshot=int(instant))


def _drop_tags(arguments: ProcedureArguments, modified: Mapping[str, Any]) -> Iterator[Event]:
    for instant in (arguments.get("instant_time") or "").split(","):
        if instant.strip():
            yield DropTag(**modified, tag=instant.strip())


def _truncate_changes(arguments: ProcedureArguments, modified: Mapping[str, Any]) -> Iterator[Event]:
    """Of partitions it can't be determined which: the argument may be a pattern."""
    if not arguments.get("partitions"):
        yield Truncated(**modified)


_CLUSTER: Final = frozenset({"CLUSTER"})
_COMPACT: Final = frozenset({"COMPACT", "LOG_COMPACT"})
PROCEDURES: Final[Mapping[str, HudiProcedure]] = {
    "RunCompaction": HudiProcedure(("op", "table", "path", "timestamp"), CommitKind.COMPACT, _COMPACT),
    "RunClustering": HudiProcedure(("table", "path"), CommitKind.COMPACT, _CLUSTER),
    "RollbackToInstantTime": HudiProcedure(("table", "instant_time"), CommitKind.ROLLBACK, undoes="rollback"),
    "RollbackToSavepoint": HudiProcedure(("table", "instant_time", "path"), CommitKind.RESTORE, undoes="restore"),
    "CreateSavepoint": HudiProcedure(("table", "commit_time", "user", "comments", "path"), translate=_create_tag),
    "DeleteSavepoint": HudiProcedure(("table", "instant_time", "path"), translate=_drop_tags),
    "TruncateTable": HudiProcedure(("table", "partitions"), CommitKind.TRUNCATE, translate=_truncate_changes),
    "DropPartition": HudiProcedure(("table", "partition"), CommitKind.DELETE),
    "RunTTL": HudiProcedure(("table", "ttl_policy"), CommitKind.DELETE),
}
"""By the class's name without `HudiProcedure`."""
_READ_ONLY_PREFIXES: Final = ("Show", "Help", "Stats", "Validate", "CommitsCompare", "CopyToTempView", "ExportInstants")
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
"""What isn't named here is reported as a Gap when it is called: `CopyToTable`, `HdfsParquetImport`, `RunBootstrap` and
`RepairDeduplicate`, whose rows come from instants and files that aren't followed yet."""


def _write_result(procedure: HudiProcedure, target: WriteTarget, statement: Statement) -> WriteResult:
    """What a procedure committed."""
    path = timeline_facts(statement.facts).get("target")
    target = replace(target, sink=_sink_at(target.sink, path, target))
    if recorded_commits(statement.facts) or not (procedure.undoes or procedure.operations):
        return written(replace(target, hints={"environment": target.hints["environment"]}), statement)
    if statement.failure is not None:
        return WriteResult()  # what others did meanwhile would be taken for it
    line = timeline(statement.facts, path)
    if line is None:
        return WriteResult((target.output(replaced=OverwriteScope.UNKNOWN),), _UNREADABLE, target.sink)
    if procedure.undoes:
        return _result_of_undo(procedure.undoes, target, line, statement)
    return _result_of_service(procedure.operations, target, line, statement)


def _sink_at(sink: SinkSchema, path: str | None, target: WriteTarget) -> SinkSchema:
    if path is None:
        return sink
    return sink.model_copy(update={"dataset": place_path(path, target.hints["environment"])})


def _result_of_undo(action: str, target: WriteTarget, line: Sequence[HudiInstant], statement: Statement) -> WriteResult:
    """What was the newest before what was taken back is the newest again. Where it took nothing back, there is none."""
    since = statement.started or 0
    ran = [
        n
        for n, instant in enumerate(line)
        if instant.action == action and since <= instant.completed <= statement.ended
    ]
    wanted = target.hints["arguments"].get("instant_time")
    if action == "rollback" and wanted:
        ran = [n for n in ran if int(wanted) in line[n].undone]
    if not ran:
        return WriteResult()
    if len(ran) > 1:
        return WriteResult((target.output(replaced=OverwriteScope.UNKNOWN),), _UNSEEN, target.sink)
    left = [instant.number for instant in line[: ran[0]] if instant.action in COMMITS]
    snapshot = int(wanted) if action == "restore" and wanted else (left[-1] if left else None)
    if snapshot is None:
        return WriteResult((target.output(replaced=OverwriteScope.ALL, made_from=()),))
    return WriteResult((target.output(replaced=OverwriteScope.UNKNOWN, snapshot=snapshot, made_from=()),))


def _result_of_service(
    operations: frozenset[str], target: WriteTarget, line: Sequence[HudiInstant], statement: Statement
) -> WriteResult:
    """The answer names what it ran; without one, those that ran meanwhile may be somebody else's."""
    ran = [commit for commit in commits_during(line, statement) if commit.operation in operations]
    rows = statement.facts.rows
    answered = {int(row["timestamp"]) for row in rows if str(row.get("timestamp", "")).isdecimal()}
    if answered:
        ran = [commit for commit in ran if commit.number in answered]
    elif len(ran) > 1:
        numbers = tuple(sorted(commit.number for commit in ran))
        unknown = target.output(replaced=OverwriteScope.NOTHING, made_from=(), candidates=numbers)
        return WriteResult((unknown,), _UNSEEN, target.sink)
    return WriteResult(tuple(compaction_output(commit, target.sink, line) for commit in ran), sink=target.sink)


def _name_of(node: PlanNode) -> str:
    name: str = node.args.get("procedure", {}).get("class", "").rpartition(".")[2]
    return name.removesuffix("Procedure")


def _arguments(node: PlanNode, procedure: HudiProcedure) -> ProcedureArguments:
    fields: Mapping[str, Any] = node.args.get("args", {})
    values: Sequence[Any] = fields.get("internalRow") or ()
    places: Mapping[str, int] = fields.get("map") or {}
    given = {key: values[n] for key, n in places.items() if n < len(values)}
    if fields.get("isNamedArgs"):
        return {key.lower(): None if text is None else str(text) for key, text in given.items()}
    by_place = {int(key): text for key, text in given.items() if key.isdecimal()}
    return {name: by_place.get(n) for n, name in enumerate(procedure.parameters)}


def _parse_table_name(text: str | None) -> TableName | None:
    """As far as the argument tells it: the session's own database isn't in it."""
    parts = split(text) if text else []
    parts = parts[1:] if len(parts) == 3 and parts[0] == SESSION_CATALOG else parts
    return TableName(catalog=SESSION_CATALOG, database=parts[0], table=parts[1]) if len(parts) == 2 else None


def _procedure_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    name = _name_of(node)
    if name in IGNORED or name.startswith(_READ_ONLY_PREFIXES):
        return StatementWrites(())
    procedure = PROCEDURES.get(name)
    if procedure is None:
        return None
    arguments = _arguments(node, procedure)
    if procedure.kind is None or (procedure.kind is CommitKind.TRUNCATE and not arguments.get("partitions")):
        return StatementWrites(())
    dataset = place_path(arguments.get("path"), context.environment)
    sink = SinkSchema(dataset=dataset, table=_parse_table_name(arguments.get("table")), format=Format.HUDI)
    return _writes(procedure, sink, arguments, context)


def _writes(
    procedure: HudiProcedure, sink: SinkSchema, arguments: ProcedureArguments, context: CaptureContext
) -> StatementWrites:
    catalog, kind = None if sink.table is None else context.session_catalog(), procedure.kind or CommitKind.UNKNOWN
    extent = OverwriteScope.NOTHING if kind is CommitKind.COMPACT else OverwriteScope.PART
    hints, result = {**session_hints(context), "arguments": arguments}, partial(_write_result, procedure)
    return StatementWrites(
        (SinkWrite(WriteTarget(sink, catalog, kind, extent, versioned=True, hints=hints, result=result)),)
    )


def _catalog_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    procedure = PROCEDURES.get(_name_of(node))
    if procedure is None or procedure.translate is None:
        return ()
    arguments = _arguments(node, procedure)
    found = timeline_facts(statement.facts)
    path = found.get("target") or arguments.get("path")
    fields = found.get("table")
    name = (
        None
        if fields is None
        else TableName(catalog=SESSION_CATALOG, database=fields["database"], table=fields["name"])
    )
    name = (
        name
        or _parse_table_name(arguments.get("table"))
        or TableName(catalog=SESSION_CATALOG, database="hudi", table=path or "")
    )
    modified = {
        "context": context.session_catalog().context,
        "cause": ModificationCause.PROCEDURE,
        "identifier": name,
        "dataset": place_path(path, context.environment),
        "format": Format.HUDI,
    }
    return procedure.translate(arguments, modified)


def _compaction_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """RUN COMPACTION ON …; SCHEDULE makes a plan that nobody reads."""
    if str(node.args.get("operation", "")).upper() != "RUN":
        return StatementWrites(())
    table = node.args.get("table")
    name = (
        None
        if not isinstance(table, Mapping)
        else TableName(catalog=SESSION_CATALOG, database=table.get("database") or "", table=table["name"])
    )
    sink = SinkSchema(dataset=place_path(node.args.get("path"), context.environment), table=name, format=Format.HUDI)
    return _writes(PROCEDURES["RunCompaction"], sink, {}, context)


COMMAND: Final = CommandRule(_procedure_write, _catalog_events)
COMPACTION: Final = CommandRule(_compaction_write)
