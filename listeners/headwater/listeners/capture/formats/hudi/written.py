"""What a statement committed to a target: each instant exactly, or what it may have been, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import CommitKind, Extent, Format, Output, ShapedSink
from headwater.listeners.capture.formats.hudi.kinds import extent_of, kind_of, rows_of
from headwater.listeners.capture.formats.hudi.places import placed
from headwater.listeners.capture.formats.hudi.timelines import (
    COMMITS,
    FORMAT,
    Instant,
    Noted,
    before,
    looked_up,
    noted,
    read_note,
    timeline,
)
from headwater.listeners.capture.formats.protocol import Loose, Outcome, Target
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement

_PLACE: Final = ("dataset", "table", "life", "format", "branch", "main", "opaque")
_SERVICES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
UNSEEN: Final = "which instant this statement made isn't seen without the hook in Hudi"
_SEVERAL: Final = "several table services ran meanwhile: which of them came with this write isn't seen"


def outcome_of(target: Target, statement: Statement) -> Outcome:
    commits = commits_to(target, statement.facts)
    if commits:
        return _committed(commits, target, statement)
    facts = looked_up(statement.facts)
    if facts.get("covered"):
        return Outcome()
    return unseen(target, statement)


def commits_to(target: Target, facts: Facts) -> list[Noted]:
    """The statement's commits to this table; where its place isn't known yet, to the only one there is."""
    commits = noted(facts)
    wanted = target.sink.dataset
    if wanted is None:
        return commits if len({commit.path for commit in commits}) == 1 else []
    return [commit for commit in commits if placed(commit.path, target.hints["site"]) == wanted]


def loose_commit(fact: Mapping[str, Any], scene: Scene) -> Loose | None:
    """Hudi's clients commit without a statement: what they did isn't in what the hook sees."""
    if fact.get("hook") != FORMAT:
        return None
    commit = read_note(fact)
    output = Output(dataset=placed(commit.path, scene.site), format=Format.HUDI, snapshot=commit.number)
    return Loose((output,))


def _committed(commits: Sequence[Noted], target: Target, statement: Statement) -> Outcome:
    sink = target.sink
    if sink.dataset is None:
        sink = sink.model_copy(update={"dataset": placed(commits[-1].path, target.hints["site"])})
    line = timeline(statement.facts, commits[-1].path) or []
    places = {each.number: n for n, each in enumerate(line)}
    commits = sorted(commits, key=lambda commit: places.get(commit.number, len(line)))
    outputs = [_output(commit, sink, target, line) for commit in commits]
    gap = None
    if commits[-1].services:
        made, gap = _serviced(commits[-1], sink, line, statement)
        outputs += made
    return Outcome(tuple(outputs), gap, sink)


def _output(commit: Noted, sink: ShapedSink, target: Target, line: Sequence[Instant]) -> Output:
    operation = next((each.operation for each in line if each.number == commit.number), None)
    kind = kind_of(operation, target)
    return Output(
        **place(sink),
        snapshot=commit.number,
        parent=before(commit.number, line),
        commit_kind=kind,
        replaced=extent_of(operation, commit, kind, target),
        rows=rows_of(commit, kind),
        bytes=commit.bytes,
    )


def _serviced(
    commit: Noted, sink: ShapedSink, line: Sequence[Instant], statement: Statement
) -> tuple[list[Output], str | None]:
    """Compactions and clusterings that ran within the write, behind its own commit: one of each at most."""
    own = next((n for n, each in enumerate(line) if each.number == commit.number), len(line))
    ran = [each for each in line[own + 1 :] if each.operation in _SERVICES and each.completed <= statement.ended]
    if len({each.operation for each in ran}) < len(ran):
        return [_unknown(sink, CommitKind.COMPACT, Extent.NOTHING, ran)], _SEVERAL
    return [compacted(each, sink, line) for each in ran], None


def compacted(instant: Instant, sink: ShapedSink, line: Sequence[Instant]) -> Output:
    return Output(
        **place(sink),
        snapshot=instant.number,
        parent=before(instant.number, line),
        commit_kind=CommitKind.COMPACT,
        replaced=Extent.NOTHING,
        made_from=(),
    )


def unseen(target: Target, statement: Statement) -> Outcome:
    """What was committed meanwhile, whoever did it; this statement may have committed nothing."""
    told = looked_up(statement.facts).get("target")
    line = timeline(statement.facts, told)
    sink = target.sink
    if sink.dataset is None:
        sink = sink.model_copy(update={"dataset": placed(told, target.hints["site"])})
    if line is None:
        return Outcome((_unknown(sink, target.kind, target.replaced, ()),), UNSEEN, sink)
    meanwhile = list(during(line, statement))
    if not meanwhile:
        return Outcome()
    return Outcome((_unknown(sink, target.kind, target.replaced, meanwhile),), UNSEEN, sink)


def during(line: Iterable[Instant], statement: Statement) -> Iterator[Instant]:
    """Commits that were completed while the statement ran."""
    since = statement.started or 0
    return (each for each in line if each.action in COMMITS and since <= each.completed <= statement.ended)


def _unknown(sink: ShapedSink, kind: CommitKind, replaced: Extent, candidates: Iterable[Instant]) -> Output:
    numbers = tuple(sorted(each.number for each in candidates))
    return Output(**place(sink), commit_kind=kind, replaced=replaced, candidates=numbers)


def place(sink: ShapedSink) -> dict[str, Any]:
    return {name: getattr(sink, name) for name in _PLACE}
