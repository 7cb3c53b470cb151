"""What a statement committed to a table: the snapshots that the hook noted, with what the metadata says of them.

Which branch a snapshot is on is found among the table's branches, never known from the plan alone: sessions can divert
writes (spark.wap.branch), hold them back (spark.wap.id), and one option for it is shown and not obeyed.

Snapshots that no plan tells of: made by calling Iceberg's library, on a table that one of Spark's catalogs has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import AlterTable, Format, Input, Output, TableName
from headwater.events.catalog import ModificationCause, ModificationEffect
from headwater.events.clock import moment_of
from headwater.events.commit_words import ICEBERG_KINDS
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind, DatasetRef, OverwriteScope, RangeStart, ReadMode, SinkSchema
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.iceberg.table_changes import FORMAT, ModifiedTable, alter_event
from headwater.listeners.capture.formats.iceberg.table_refs import MAIN, dataset_at, generation_of
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of
from headwater.listeners.capture.formats.protocol import OutsideCommit, WriteResult, WriteTarget, ref_fields
from headwater.listeners.capture.formats.schema_diff import SchemaDiff, fields_in
from headwater.listeners.capture.statements import Statement

Commit = Mapping[str, Any]
_PICKED: Final = "source-snapshot-id"
_ADDED_FILES: Final = ("added-data-files", "added-delete-files")
"""What Iceberg notes in the summary of a snapshot that was picked."""
_ROW_CHANGES: Final = frozenset({CommitKind.MERGE, CommitKind.UPDATE, CommitKind.DELETE})


@dataclass(frozen=True)
class _FoundCommits:
    commits: Sequence[Commit]
    candidates: tuple[int, ...] = ()


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    sink = _complete_sink(target, statement)
    found = _find_commits(target, sink, statement)
    if found.candidates:
        why = "several commits were made while this statement ran, and without hooks nobody sees which is its own"
        return WriteResult((target.output(sink, candidates=found.candidates),), gap=why, sink=sink)
    facts = statement.facts.looked_up.get(FORMAT, {})
    outputs = tuple(_output(commit, target, sink, facts) for commit in found.commits)
    branches = [output.branch for output in outputs]
    if outputs and branches[0] != sink.branch:
        sink = sink.model_copy(update={"branch": branches[0], "main": outputs[0].main})
    return WriteResult(outputs, sink=sink)


def _find_commits(target: WriteTarget, sink: SinkSchema, statement: Statement) -> _FoundCommits:
    facts = statement.facts.looked_up.get(FORMAT, {})
    if statement.failure is not None and "location" not in target.hints:
        return _FoundCommits(())  # the table it was about to make took its rows, and then wasn't made
    location = target.hints.get("location") or _staged_table(statement).get("location")
    noted = [n for n in statement.facts.hook_facts if n.get("hook") == FORMAT and n.get("action") == "committed"]
    if noted:
        known = {commit["snapshot"]: commit for commit in facts.get("commits", ()) if commit["location"] == location}
        own = [n for n in noted if n["snapshot"] in known or (_has_name(n["table"], target) and not statement.failure)]
        return _FoundCommits([{**note, **known.get(note["snapshot"], {})} for note in own])
    repeated = [commit for commit in facts.get("repeated", ()) if commit["location"] == location]
    if repeated:
        return _FoundCommits(repeated)
    possible = [commit for commit in facts.get("candidates", ()) if commit["location"] == location]
    if statement.failure is not None:
        return _FoundCommits([commit for commit in possible if commit.get("own")])
    return _only_candidate(possible)


def _only_candidate(candidates: Sequence[Commit]) -> _FoundCommits:
    """Without hooks: the one whose files the write made, or the only one there is that might be."""
    own = [commit for commit in candidates if commit.get("own")]
    possible = own or [commit for commit in candidates if commit.get("own") is None]
    if len(possible) <= 1:
        return _FoundCommits(possible)
    return _FoundCommits((), tuple(sorted(commit["snapshot"] for commit in possible)))


def _has_name(name: str, target: WriteTarget) -> bool:
    """A table that is just being made is called without its catalog."""
    table = target.sink.table
    return name in {target.hints.get("name"), str(table), f"{table.database}.{table.table}" if table else None}


def _output(commit: Commit, target: WriteTarget, sink: SinkSchema, facts: Mapping[str, Any]) -> Output:
    fields = {**ref_fields(sink), **branch_of(commit, target.hints.get("branch"), facts)}
    return output_of(commit, fields, _kind(commit, target), _extent(commit, target))


def _kind(commit: Commit, target: WriteTarget) -> CommitKind:
    """What the statement did, where Iceberg only says that files were replaced or removed."""
    kind = ICEBERG_KINDS.get(commit.get("operation", ""), CommitKind.OTHER)
    is_vague = kind in {CommitKind.OVERWRITE, CommitKind.DELETE}
    return target.kind if is_vague and target.kind in _ROW_CHANGES else kind


def output_of(commit: Commit, fields: Mapping[str, Any], kind: CommitKind, replaced: OverwriteScope) -> Output:
    summary = commit.get("summary", {})
    return Output(
        **fields,
        snapshot=commit["snapshot"],
        parent=commit.get("parent"),
        schema_id=commit.get("schemaId"),
        commit_kind=kind,
        replaced=replaced,
        rows=_count(summary, "added-records"),
        bytes=_count(summary, "added-files-size"),
        files=_added_files(summary),
        snapshot_time=None if "at" not in commit else moment_of(commit["at"] * 1000),
    )


def picked_input(commit: Commit, sink: DatasetRef) -> Input | None:
    """The snapshot whose changes a commit applied again; None where it applied none. Without the metadata of that
    snapshot it isn't known where its changes begin."""
    picked = commit.get("picked")
    number = commit.get("summary", {}).get(_PICKED) if picked is None else picked["snapshot"]
    if number is None:
        return None
    place: dict[str, Any] = {"branch": None, "main": False} if picked is None else branch_of(picked, None, {})
    parent = None if picked is None else picked.get("parent")
    is_first = picked is not None and parent is None
    return Input(
        **{**ref_fields(sink), **place},
        mode=ReadMode.STATE if is_first else ReadMode.CHANGES,
        snapshot=int(number),
        since=None if parent is None else RangeStart(snapshot=parent),
    )


def branch_of(commit: Commit, planned: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The branch a snapshot was committed to. One that is on none was held back, until it is published."""
    if commit.get("main") or "branches" not in commit:
        return {"branch": None, "main": True} if commit.get("main") or planned is None else _branch_fields(planned)
    there: list[str] = commit["branches"]
    likely: list[str] = [branch for branch in (planned, facts.get("wapBranch")) if branch and branch in there]
    found = likely or there
    return _branch_fields(found[0]) if likely or len(there) == 1 else {"branch": None, "main": False}


def _branch_fields(branch: str) -> dict[str, Any]:
    return {"branch": None, "main": True} if branch == MAIN else {"branch": branch, "main": False}


def _extent(commit: Commit, target: WriteTarget) -> OverwriteScope:
    """A command that may replace rows and only added some has replaced nothing."""
    summary = commit.get("summary", {})
    if target.replaced is OverwriteScope.PART and commit.get("operation") == "append":
        return OverwriteScope.NOTHING
    if (
        target.replaced is OverwriteScope.PART
        and summary.get("total-records") == "0"
        and summary.get("total-data-files") == "0"
    ):
        return OverwriteScope.ALL
    return target.replaced


def _count(summary: Mapping[str, str], key: str) -> int | None:
    text = summary.get(key)
    return int(text) if text is not None else None


def _added_files(summary: Mapping[str, str]) -> int | None:
    """A summary leaves out counts that are 0."""
    return sum(int(summary.get(key, 0)) for key in _ADDED_FILES) if summary else None


def _staged_table(statement: Statement) -> Mapping[str, Any]:
    """The table that the statement made, as the execution that filled it had it."""
    for fact in statement.facts.nested_facts:
        for state in fact.of_format.get(FORMAT, ()):
            return dict(state)
    return {}


def _complete_sink(target: WriteTarget, statement: Statement) -> SinkSchema:
    """The sink; of a table that the statement made with what its creation reported."""
    evolved = statement.facts.looked_up.get(FORMAT, {}).get("evolved", {}).get(target.hints.get("location"))
    if evolved is not None:
        return target.sink.model_copy(update={"columns": columns_from_schema_json(evolved["schema"])})
    state = {} if "location" in target.hints else _staged_table(statement)
    context = target.hints.get("scene")
    if not state or context is None:
        return target.sink
    return target.sink.model_copy(
        update={
            "dataset": dataset_at(state["location"], target.catalog, target.sink.table, context),
            "generation": generation_of(state),
            "columns": columns_from_schema_json(state["schema"]),
            "partitioning": partitioning_of(state),
            "primary_key": primary_key_of(state),
        }
    )


_OWN_CHANGES: Final = 2
"""The schema, and then the data."""


def schema_changes(target: WriteTarget, statement: Statement, context: CaptureContext) -> tuple[AlterTable, ...]:
    fields = statement.facts.looked_up.get(FORMAT, {}).get("evolved", {}).get(target.hints.get("location"))
    if fields is None or "before" not in fields or target.catalog is None or target.sink.table is None:
        return ()
    changes = tuple(SchemaDiff().of(fields_in(fields["before"]["schema"]), fields_in(fields["schema"])))
    if not changes:
        return ()
    found = ModifiedTable(
        target.catalog, target.sink.table, fields["before"], fields.get("after"), fields["changes"], fields
    )
    event = alter_event(found, changes, context, ModificationCause.WRITE)
    update: dict[str, object] = {"schema_id": fields["schemaId"], "on_branch": target.sink.branch}
    if fields["changes"] > _OWN_CHANGES:
        update["effect"] = ModificationEffect.UNKNOWN
    return (event.model_copy(update=update),)


_EXTENTS: Final[Mapping[str, OverwriteScope]] = {
    "append": OverwriteScope.NOTHING,
    "replace": OverwriteScope.NOTHING,
    "delete": OverwriteScope.PART,
}


def outside_commit(fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
    """The table is given where the snapshot was found in it: a name alone may be another catalog's."""
    if fact.get("hook") != FORMAT or fact.get("action") != "committed":
        return None
    found = fact.get("found")
    if found is None:
        return OutsideCommit(whole=False)
    catalog = _catalog(found.get("catalog"), context)
    spaces = found.get("namespace")
    table = None
    if catalog is not None and spaces is not None:
        table = TableName(catalog=catalog.name, database=joined(spaces), table=found["name"])
    sink = SinkSchema(
        dataset=dataset_at(found["location"], catalog, table, context),
        table=table,
        generation=generation_of(found),
        format=Format.ICEBERG,
    )
    fields = {**ref_fields(sink), **branch_of(found, None, {})}
    operation = found["operation"]
    extent = _EXTENTS.get(operation, OverwriteScope.UNKNOWN)
    picked = picked_input(found, sink) if "picked" in found else None
    if picked is not None:
        extent = OverwriteScope.PART if extent is OverwriteScope.UNKNOWN else extent
        return OutsideCommit((output_of(found, fields, CommitKind.CHERRY_PICK, extent),), (picked,))
    return OutsideCommit((output_of(found, fields, ICEBERG_KINDS.get(operation, CommitKind.OTHER), extent),))


def _catalog(name: str | None, context: CaptureContext) -> SessionNamedCatalog | None:
    if name is None:
        return None
    known = context.catalog_called(name)
    return known or next((catalog for catalog in context.catalogs(FORMAT) if catalog.name == name), None)
