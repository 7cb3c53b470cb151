"""What a statement committed to a table: the snapshots that the hook noted, with what the metadata says of them.

Which branch a snapshot is on is found among the table's branches, never told by the plan alone: sessions can divert
writes (spark.wap.branch), hold them back (spark.wap.id), and one option for it is shown and not obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import CommitKind, Extent, Output, ShapedSink
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.iceberg.places import MAIN, dataset_at, life_of
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.statements import Statement

FORMAT: Final = "iceberg"
_PLACE: Final = ("dataset", "table", "life", "format", "branch", "main", "opaque")
KINDS: Final[Mapping[str, CommitKind]] = {
    "append": CommitKind.APPEND,
    "overwrite": CommitKind.OVERWRITE,
    "delete": CommitKind.DELETE,
    "replace": CommitKind.REPLACE,
}

Commit = Mapping[str, Any]


@dataclass(frozen=True)
class _Found:
    commits: Sequence[Commit]
    candidates: tuple[int, ...] = ()


def outcome_of(target: Target, statement: Statement) -> Outcome:
    sink = _made(target, statement)
    found = _found(target, sink, statement)
    if found.candidates:
        why = "several commits were made while this statement ran, and without hooks nobody sees which is its own"
        output = Output(**place(sink), commit_kind=target.kind, replaced=target.replaced, candidates=found.candidates)
        return Outcome((output,), gap=why, sink=sink)
    facts = statement.facts.looked_up.get(FORMAT, {})
    outputs = tuple(_output(each, target, sink, facts) for each in found.commits)
    told = [output.branch for output in outputs]
    if outputs and told[0] != sink.branch:
        sink = sink.model_copy(update={"branch": told[0], "main": outputs[0].main})
    return Outcome(outputs, sink=sink)


def _found(target: Target, sink: ShapedSink, statement: Statement) -> _Found:
    facts = statement.facts.looked_up.get(FORMAT, {})
    if statement.failure is not None and "location" not in target.hints:
        return _Found(())  # the table it was about to make took its rows, and then wasn't made
    location = target.hints.get("location") or _staged(statement).get("location")
    noted = [n for n in statement.facts.noted if n.get("hook") == FORMAT and n.get("did") == "committed"]
    if noted:
        known = {each["snapshot"]: each for each in facts.get("commits", ()) if each["location"] == location}
        own = [n for n in noted if n["snapshot"] in known or (_is_called(n["table"], target) and not statement.failure)]
        return _Found([{**note, **known.get(note["snapshot"], {})} for note in own])
    repeated = [each for each in facts.get("repeated", ()) if each["location"] == location]
    if repeated:
        return _Found(repeated)
    possible = [each for each in facts.get("candidates", ()) if each["location"] == location]
    if statement.failure is not None:
        return _Found([each for each in possible if each.get("own")])
    return _by_elimination(possible)


def _by_elimination(candidates: Sequence[Commit]) -> _Found:
    """Without hooks: the one whose files the write made, or the only one there is that might be."""
    own = [each for each in candidates if each.get("own")]
    possible = own or [each for each in candidates if each.get("own") is None]
    if len(possible) <= 1:
        return _Found(possible)
    return _Found((), tuple(sorted(each["snapshot"] for each in possible)))


def _is_called(name: str, target: Target) -> bool:
    """A table that is just being made is called without its catalog."""
    table = target.sink.table
    return name in {target.hints.get("name"), str(table), f"{table.database}.{table.table}" if table else None}


def _output(commit: Commit, target: Target, sink: ShapedSink, facts: Mapping[str, Any]) -> Output:
    told = {**place(sink), **branch_of(commit, target.hints.get("branch"), facts)}
    return output_of(commit, told, KINDS.get(commit.get("operation", ""), CommitKind.OTHER), _extent(commit, target))


def output_of(commit: Commit, told: Mapping[str, Any], kind: CommitKind, replaced: Extent) -> Output:
    summary = commit.get("summary", {})
    return Output(
        **told,
        snapshot=commit["snapshot"],
        parent=commit.get("parent"),
        schema_id=commit.get("schemaId"),
        commit_kind=kind,
        replaced=replaced,
        rows=_count(summary, "added-records"),
        bytes=_count(summary, "added-files-size"),
    )


def branch_of(commit: Commit, planned: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The branch a snapshot was committed to. One that is on none was held back, until it is published."""
    if commit.get("main") or "branches" not in commit:
        return {"branch": None, "main": True} if commit.get("main") or planned is None else _on(planned)
    there: list[str] = commit["branches"]
    likely: list[str] = [branch for branch in (planned, facts.get("wapBranch")) if branch and branch in there]
    found = likely or there
    return _on(found[0]) if likely or len(there) == 1 else {"branch": None, "main": False}


def _on(branch: str) -> dict[str, Any]:
    return {"branch": None, "main": True} if branch == MAIN else {"branch": branch, "main": False}


def _extent(commit: Commit, target: Target) -> Extent:
    """A command that may replace rows and only added some has replaced nothing."""
    summary = commit.get("summary", {})
    if target.replaced is Extent.PART and commit.get("operation") == "append":
        return Extent.NOTHING
    if (
        target.replaced is Extent.PART
        and summary.get("total-records") == "0"
        and summary.get("total-data-files") == "0"
    ):
        return Extent.ALL
    return target.replaced


def _count(summary: Mapping[str, str], key: str) -> int | None:
    text = summary.get(key)
    return int(text) if text is not None else None


def _staged(statement: Statement) -> Mapping[str, Any]:
    """The table that the statement made, as the execution that filled it had it."""
    for hint in statement.facts.hints:
        for state in hint.get(FORMAT, ()):
            return dict(state)
    return {}


def _made(target: Target, statement: Statement) -> ShapedSink:
    """The sink; of a table that the statement made with what the making of it told."""
    evolved = statement.facts.looked_up.get(FORMAT, {}).get("evolved", {}).get(target.hints.get("location"))
    if evolved is not None:
        return target.sink.model_copy(update={"columns": columns_from_schema_json(evolved["schema"])})
    state = {} if "location" in target.hints else _staged(statement)
    scene = target.hints.get("scene")
    if not state or scene is None:
        return target.sink
    return target.sink.model_copy(
        update={
            "dataset": dataset_at(state["location"], target.catalog, target.sink.table, scene),
            "life": life_of(state),
            "columns": columns_from_schema_json(state["schema"]),
            "partitioning": partitioning_of(state),
            "primary_key": primary_key_of(state),
        }
    )


def place(sink: ShapedSink) -> dict[str, Any]:
    return {name: getattr(sink, name) for name in _PLACE}
