"""What a statement committed: every snapshot of the user that Paimon made up for its write.

Commands that commit by a user of their own which shows nowhere: truncation, dropped partitions, statistics.

How a write changed a table's schema: the schema that was made while the statement ran, beside the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import AlterTable, Event, Output, Table, TableName, Truncate
from headwater.events.base import StringMap
from headwater.events.catalog import CatalogContext, ModificationCause
from headwater.events.clock import moment_of
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.redaction import mask_message
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.paimon import tables
from headwater.listeners.capture.formats.paimon.tables import complete_sink, location_key, parse_columns
from headwater.listeners.capture.formats.protocol import (
    SinkWrite,
    StatementWrites,
    WriteResult,
    WriteTarget,
    ref_fields,
)
from headwater.listeners.capture.formats.schema_diff import SchemaDiff, fields_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_ROW_LEVEL: Final = {CommitKind.DELETE, CommitKind.UPDATE, CommitKind.MERGE}
_INSERTS: Final = {CommitKind.APPEND, CommitKind.CREATE}
_UNATTRIBUTED: Final = "Paimon commits this by a user that nothing tells, so it can't be known which snapshot it made"


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    seen = statement.facts.looked_up.get("paimon", {})
    if "unreadable" in seen:
        return WriteResult(
            (unknown_result(target.sink, target),),
            f"what was committed can't be read: {mask_message(seen['unreadable'])}",
        )
    writers = [writer for writer in seen.get("writers", ()) if _is_writer_of(writer, target)]
    if not writers and not recorded_commits(statement):
        if statement.failure is not None:
            return WriteResult()  # what others committed meanwhile would be taken for it
        return _result_without_writer(target, seen.get("within"))
    sink = (
        complete_sink(target.sink, writers[0], target.hints["environment"])
        if writers and "made" in target.hints
        else None
    )
    commits = _commits_of(writers, statement)
    outputs = tuple(_outputs_of(commits, sink or target.sink, target))
    missing = _missing_commits(writers, commits)
    if missing and not outputs:
        outputs = (unknown_result(sink or target.sink, target),)
    return WriteResult(outputs, missing, sink)


def _result_without_writer(target: WriteTarget, within: Mapping[str, Any] | None) -> WriteResult:
    """No writer was seen. A table that was there already is made from no query; else something was committed."""
    if within is not None:
        return unattributed_result(target, target.sink, within)
    if "made" in target.hints:
        return WriteResult()
    return WriteResult((unknown_result(target.sink, target),), "how this was written wasn't seen")


def unattributed_result(target: WriteTarget, sink: SinkSchema, within: Mapping[str, Any] | None) -> WriteResult:
    """What was committed by a user nobody heard of. The statement's own snapshot is among those of its time; so where
    it surely committed one, and one alone is there, that is it."""
    certain = target.hints.get("certain", False) or _is_analyzed(target, within)
    if within is None:
        return WriteResult((unknown_result(sink, target),), _UNATTRIBUTED) if certain else WriteResult()
    commits, complete = within["snapshots"], within["complete"]
    if certain and complete and len(commits) == 1:
        return WriteResult((make_output(commits[0], sink, target.replaced),))
    if not certain and complete and not commits:
        return WriteResult()
    return WriteResult((unknown_result(sink, target, (commit["snapshot"] for commit in commits)),), _UNATTRIBUTED)


def _is_analyzed(target: WriteTarget, within: Mapping[str, Any] | None) -> bool:
    """ANALYZE makes a snapshot, if there was one before."""
    return target.kind is CommitKind.ANALYZE and within is not None and within.get("older", False)


def unknown_result(sink: SinkSchema, target: WriteTarget, candidates: Iterable[int] = ()) -> Output:
    """Something was committed, or may have been."""
    replaced = OverwriteScope.NOTHING if target.kind is CommitKind.COMPACT else target.replaced
    return target.output(sink, replaced=replaced, candidates=tuple(sorted(candidates)))


def make_output(
    commit: Mapping[str, Any], sink: SinkSchema, replaced: OverwriteScope, *, compacts: bool = False
) -> Output:
    """A snapshot is made on the one with the number before: Paimon takes the next free number, or tries again."""
    number = commit["snapshot"]
    return Output(
        **ref_fields(sink),
        snapshot=number,
        parent=number - 1 if number > 1 else None,
        schema_id=commit["schema"],
        commit_kind=CommitKind.__members__.get(commit["kind"], CommitKind.OTHER),
        replaced=OverwriteScope.NOTHING if compacts else replaced,
        made_from=() if compacts else None,
        rows=None if compacts else commit.get("rows"),
        bytes=None if compacts else commit.get("bytes"),
        files=None if compacts else commit.get("files"),
        snapshot_time=None if "time" not in commit else moment_of(commit["time"] * 1000),
    )


def recorded_commits(statement: Statement) -> list[Mapping[str, Any]]:
    return [note for note in statement.facts.hook_facts if note.get("hook") == "paimon"]


def _is_writer_of(writer: Mapping[str, Any], target: WriteTarget) -> bool:
    return "place" not in target.hints or location_key(writer) == target.hints["place"]


def _commits_of(writers: list[Mapping[str, Any]], statement: Statement) -> list[Mapping[str, Any]]:
    """What the hook noted has more to tell than the files."""
    users = {writer["user"] for writer in writers} or {note["user"] for note in recorded_commits(statement)}
    found = {commit["snapshot"]: commit for writer in writers for commit in writer.get("snapshots", ())}
    found |= {note["snapshot"]: note for note in recorded_commits(statement) if note["user"] in users}
    return [found[number] for number in sorted(found)]


def _outputs_of(commits: list[Mapping[str, Any]], sink: SinkSchema, target: WriteTarget) -> Iterable[Output]:
    """Behind the write itself there may be its compaction, and partitions that expired at that."""
    marks = _marks_rows(target)
    replaced = target.replaced
    if replaced is OverwriteScope.NOTHING and sink.primary_key:
        replaced = OverwriteScope.UNKNOWN  # rows take the place of those with their keys
    first = True
    for commit in commits:
        compacts = commit["kind"] == CommitKind.COMPACT and not marks
        counted = {"rows": _rows_added(commit)} if target.kind in _INSERTS else {}
        found = make_output({**counted, **commit}, sink, replaced if first else OverwriteScope.PART, compacts=compacts)
        yield found if first or compacts or marks else found.model_copy(update={"made_from": ()})
        first = first and compacts


def _marks_rows(target: WriteTarget) -> bool:
    """Rows of files are deleted by marking them, and that is committed under the word of a compaction."""
    vectors = target.sink.options.get("deletion-vectors.enabled") == "true"
    return vectors and not target.sink.primary_key and target.kind in _ROW_LEVEL


def _missing_commits(writers: list[Mapping[str, Any]], commits: list[Mapping[str, Any]]) -> str | None:
    users = {commit["user"] for commit in commits}
    for writer in writers:
        if writer["user"] in users:
            continue
        if writer.get("seen"):
            return "what was noted of the commit was lost"
        if writer.get("complete") is False:
            return "the table's snapshots couldn't be read as far back as the statement began"
    return None


def _rows_added(commit: Mapping[str, Any]) -> int | None:
    """By how many rows the table grew: that is how many were written, where none was taken away."""
    grown: int = commit["delta"]
    return grown if commit["kind"] == CommitKind.APPEND and grown > 0 else None


def _sink_write(target: WriteTarget, kind: CommitKind, extent: OverwriteScope, *, certain: bool) -> StatementWrites:
    hints = {**target.hints, "certain": certain}
    return StatementWrites((SinkWrite(replace(target, kind=kind, replaced=extent, hints=hints)),))


def _truncate_target(node: PlanNode, context: CaptureContext) -> WriteTarget | None:
    table = node.args.get("v2Table")
    return tables.find_catalog(table, context) if isinstance(table, dict) and "paimon" in table else None


def _truncate_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    target = _truncate_target(node, context)
    if target is None:
        return None
    partitions = node.args.get("partitionSpec")
    return _sink_write(
        target, CommitKind.TRUNCATE, OverwriteScope.PART if partitions else OverwriteScope.ALL, certain=True
    )


def _truncate_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    write = _truncate_write(node, statement.plan, context)
    if write is None:
        return
    target = write.parts[0].target
    catalog, name = _catalog_of(target, node, statement, context)
    if catalog is None or name is None:
        return
    outputs = write_result(target, statement).outputs
    yield Truncate(
        context=catalog.context,
        identifier=name,
        dataset=target.sink.dataset,
        generation=target.sink.generation,
        format=target.sink.format,
        on_branch=target.sink.branch,
        schema_id=target.hints["schema"],
        produced=outputs[0].snapshot if outputs else None,
        parent=outputs[0].parent if outputs else None,
    )


def _catalog_of(
    target: WriteTarget, node: PlanNode, statement: Statement, context: CaptureContext
) -> tuple[SessionNamedCatalog | None, TableName | None]:
    """Where the path alone doesn't tell, the extractor has asked the catalogs."""
    if target.catalog is not None:
        return target.catalog, target.sink.table
    name = statement.facts.looked_up.get("paimon", {}).get("catalog")
    catalog = None if name is None else context.catalog_called(name)
    return catalog, None if catalog is None else tables.name_in(catalog, node.args["v2Table"])


def _drop_partitions_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """With IF EXISTS, nothing may have been there to drop, and then nothing is committed."""
    index = node.plan_of("table")
    target = None if index is None else tables.relation(plan.nodes[index], plan, context)
    if target is None:
        return StatementWrites(())
    return _sink_write(target, CommitKind.TRUNCATE, OverwriteScope.PART, certain=not node.args.get("ifExists", True))


def _analyze_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """A table without a snapshot gets none by being analyzed."""
    table = node.args.get("v2Table")
    if not isinstance(table, dict) or "paimon" not in table:
        return None
    named = PlanNode(node.index, node.name, node.class_name, (), (), {**node.args, "table": table})
    target = tables.relation(named, plan, context)
    return None if target is None else _sink_write(target, CommitKind.ANALYZE, OverwriteScope.NOTHING, certain=False)


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "PaimonTruncateTableCommand": CommandRule(_truncate_write, _truncate_events),
    "DropPartitions": CommandRule(_drop_partitions_write),
    "PaimonAnalyzeTableColumnCommand": CommandRule(_analyze_write),
}


_BY_PATH: Final = CatalogContext(name="paimon", class_name="org.apache.paimon.spark.SparkSource", factory="paimon")


def schema_changes(target: WriteTarget, statement: Statement) -> tuple[AlterTable, ...]:
    if "made" in target.hints and "by path" not in target.hints:
        return ()  # CREATE TABLE AS SELECT tells the schema with the table
    for writer in statement.facts.looked_up.get("paimon", {}).get("writers", ()):
        if "evolved" in writer:
            return (_alter_event(target, writer, writer["evolved"]),)
    return ()


def _alter_event(target: WriteTarget, writer: Mapping[str, Any], fields: Mapping[str, Any]) -> AlterTable:
    sink = complete_sink(target.sink, writer, target.hints["environment"]) if "made" in target.hints else target.sink
    before, after = parse_columns(fields["columnsBefore"]), parse_columns(fields["columns"])
    table = Table(
        columns=before,
        partitioning=sink.partitioning,
        primary_key=sink.primary_key,
        properties=StringMap(sink.options),
        location=writer["location"],
        provider="paimon",
    )
    return AlterTable(
        context=_BY_PATH if target.catalog is None else target.catalog.context,
        cause=ModificationCause.WRITE,
        identifier=sink.table or TableName(catalog="", database="paimon", table=writer["location"]),
        dataset=sink.dataset,
        generation=sink.generation,
        format=sink.format,
        on_branch=sink.branch,
        schema_id=fields["schema"],
        changes=tuple(SchemaDiff().of(fields_of(before), fields_of(after))),
        table=table,
        new_table=table.model_copy(update={"columns": after}),
    )
