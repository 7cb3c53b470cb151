"""What a statement committed: every snapshot of the user that Paimon made up for its write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.events import CommitKind, Extent, Output, ShapedSink
from headwater.listeners.capture.formats.paimon.tables import made, place_of
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.statements import Statement

_ROW_LEVEL: Final = {CommitKind.DELETE, CommitKind.UPDATE, CommitKind.MERGE}
_INSERTS: Final = {CommitKind.APPEND, CommitKind.CREATE}
_UNHEARD: Final = "Paimon commits this by a user that nothing tells, so it can't be known which snapshot it made"
_PLACE: Final = ("dataset", "table", "life", "format", "branch", "main", "opaque")


def written(target: Target, statement: Statement) -> Outcome:
    seen = statement.facts.looked_up.get("paimon", {})
    if "unreadable" in seen:
        return Outcome((unknown(target.sink, target),), f"what was committed can't be read: {seen['unreadable']}")
    writers = [each for each in seen.get("writers", ()) if _is_of(each, target)]
    if not writers and not noted(statement):
        if statement.failure is not None:
            return Outcome()  # what others committed meanwhile would be taken for it
        return _unwritten(target, seen.get("within"))
    sink = made(target.sink, writers[0], target.hints["site"]) if writers and "made" in target.hints else None
    commits = _commits(writers, statement)
    outputs = tuple(_outputs(commits, sink or target.sink, target))
    missing = _missing(writers, commits)
    if missing and not outputs:
        outputs = (unknown(sink or target.sink, target),)
    return Outcome(outputs, missing, sink)


def _unwritten(target: Target, within: Mapping[str, Any] | None) -> Outcome:
    """No writer was seen. A table that was there already is made from no query; else something was committed."""
    if within is not None:
        return unheard(target, target.sink, within)
    if "made" in target.hints:
        return Outcome()
    return Outcome((unknown(target.sink, target),), "how this was written wasn't seen")


def unheard(target: Target, sink: ShapedSink, within: Mapping[str, Any] | None) -> Outcome:
    """What was committed by a user nobody heard of. The statement's own snapshot is among those of its time; so where
    it surely committed one, and one alone is there, that is it."""
    certain = target.hints.get("certain", False) or _is_analyzed(target, within)
    if within is None:
        return Outcome((unknown(sink, target),), _UNHEARD) if certain else Outcome()
    commits, complete = within["snapshots"], within["complete"]
    if certain and complete and len(commits) == 1:
        return Outcome((output(commits[0], sink, target.replaced),))
    if not certain and complete and not commits:
        return Outcome()
    return Outcome((unknown(sink, target, (each["snapshot"] for each in commits)),), _UNHEARD)


def _is_analyzed(target: Target, within: Mapping[str, Any] | None) -> bool:
    """ANALYZE makes a snapshot, if there was one before."""
    return target.kind is CommitKind.ANALYZE and within is not None and within.get("older", False)


def unknown(sink: ShapedSink, target: Target, candidates: Iterable[int] = ()) -> Output:
    """Something was committed, or may have been."""
    replaced = Extent.NOTHING if target.kind is CommitKind.COMPACT else target.replaced
    return Output(**_place(sink), commit_kind=target.kind, replaced=replaced, candidates=tuple(sorted(candidates)))


def output(commit: Mapping[str, Any], sink: ShapedSink, replaced: Extent, *, compacts: bool = False) -> Output:
    """A snapshot is made on the one with the number before: Paimon takes the next free number, or tries again."""
    number = commit["snapshot"]
    return Output(
        **_place(sink),
        snapshot=number,
        parent=number - 1 if number > 1 else None,
        schema_id=commit["schema"],
        commit_kind=CommitKind.__members__.get(commit["kind"], CommitKind.OTHER),
        replaced=Extent.NOTHING if compacts else replaced,
        made_from=() if compacts else None,
        rows=None if compacts else commit.get("rows"),
        bytes=None if compacts else commit.get("bytes"),
    )


def noted(statement: Statement) -> list[Mapping[str, Any]]:
    return [note for note in statement.facts.noted if note.get("hook") == "paimon"]


def _is_of(writer: Mapping[str, Any], target: Target) -> bool:
    return "place" not in target.hints or place_of(writer) == target.hints["place"]


def _commits(writers: list[Mapping[str, Any]], statement: Statement) -> list[Mapping[str, Any]]:
    """What the hook noted has more to tell than the files."""
    users = {each["user"] for each in writers} or {note["user"] for note in noted(statement)}
    found = {each["snapshot"]: each for writer in writers for each in writer.get("snapshots", ())}
    found |= {note["snapshot"]: note for note in noted(statement) if note["user"] in users}
    return [found[number] for number in sorted(found)]


def _outputs(commits: list[Mapping[str, Any]], sink: ShapedSink, target: Target) -> Iterable[Output]:
    """Behind the write itself there may be its compaction, and partitions that expired at that."""
    marks = _marks_rows(target)
    replaced = target.replaced
    if replaced is Extent.NOTHING and sink.primary_key:
        replaced = Extent.UNKNOWN  # rows take the place of those with their keys
    first = True
    for commit in commits:
        compacts = commit["kind"] == CommitKind.COMPACT and not marks
        counted = {"rows": _grown(commit)} if target.kind in _INSERTS else {}
        found = output({**counted, **commit}, sink, replaced if first else Extent.PART, compacts=compacts)
        yield found if first or compacts or marks else found.model_copy(update={"made_from": ()})
        first = first and compacts


def _marks_rows(target: Target) -> bool:
    """Rows of files are deleted by marking them, and that is committed under the word of a compaction."""
    vectors = target.sink.options.get("deletion-vectors.enabled") == "true"
    return vectors and not target.sink.primary_key and target.kind in _ROW_LEVEL


def _missing(writers: list[Mapping[str, Any]], commits: list[Mapping[str, Any]]) -> str | None:
    told = {commit["user"] for commit in commits}
    for writer in writers:
        if writer["user"] in told:
            continue
        if writer.get("seen"):
            return "what was noted of the commit was lost"
        if writer.get("complete") is False:
            return "the table's snapshots couldn't be read as far back as the statement began"
    return None


def _grown(commit: Mapping[str, Any]) -> int | None:
    """By how many rows the table grew: that is how many were written, where none was taken away."""
    grown: int = commit["delta"]
    return grown if commit["kind"] == CommitKind.APPEND and grown > 0 else None


def _place(sink: ShapedSink) -> dict[str, Any]:
    return {name: getattr(sink, name) for name in _PLACE}
