"""What a statement committed to a target: each version exactly, or what it may have been, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headwater.events import Output, ShapedSink
from headwater.listeners.capture.formats.delta.commits import (
    Commit,
    candidates,
    commits_of,
    is_watched,
)
from headwater.listeners.capture.formats.delta.kinds import extent_of, kind_of
from headwater.listeners.capture.formats.delta.places import life_of
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.statements import Facts, Statement

_ROWS: Final = ("numOutputRows",)
_BYTES: Final = ("numOutputBytes", "numTargetBytesAdded", "numAddedBytes")
_MAKES: Final = ("CREATE", "REPLACE", "CLONE")


def outcome_of(target: Target, statement: Statement) -> Outcome:
    """Nothing of a version without rows, which a CreateTable tells."""
    if not target.hints.get("has_rows", True):
        return Outcome()
    commits = commits_to(target, statement.facts)
    if commits:
        return _committed(commits, target)
    return Outcome() if is_watched(statement.facts) else _unwatched(target, statement.facts)


def commits_to(target: Target, facts: Facts) -> list[Commit]:
    """The statement's commits to this table; where its place isn't known yet, those that made a table."""
    commits, site = commits_of(facts), target.hints["site"]
    wanted = target.sink.dataset
    if wanted is not None:
        return [commit for commit in commits if commit.dataset(site) == wanted]
    paths = {commit.path for commit in commits}
    made = {commit.path for commit in commits if commit.operation.startswith(_MAKES)}
    found = made if len(made) == 1 else paths
    return [commit for commit in commits if commit.path in found] if len(found) == 1 else []


def output_of(commit: Commit, sink: ShapedSink) -> Output:
    kind = kind_of(commit)
    return Output(
        dataset=sink.dataset,
        table=sink.table,
        life=life_of(commit.life) or sink.life,
        format=sink.format,
        snapshot=commit.version,
        parent=commit.parent,
        commit_kind=kind,
        replaced=extent_of(commit, kind, sink.options),
        rows=_first(commit, _ROWS),
        bytes=_first(commit, _BYTES),
    )


def _committed(commits: list[Commit], target: Target) -> Outcome:
    sink = _completed(target.sink, commits[-1], target)
    gap = None
    if any(commit.version is None for commit in commits):
        gap = "the log no longer tells which version this transaction made"
    return Outcome(tuple(output_of(commit, sink) for commit in commits), gap, sink)


def _completed(sink: ShapedSink, commit: Commit, target: Target) -> ShapedSink:
    """A table that the statement made has its place and its life now."""
    known: dict[str, object] = {}
    if sink.dataset is None:
        known["dataset"] = commit.dataset(target.hints["site"])
    if commit.life is not None:
        known["life"] = life_of(commit.life)
    return sink.model_copy(update=known) if known else sink


def _unwatched(target: Target, facts: Facts) -> Outcome:
    """Without the hook: what was committed meanwhile, whoever did it; this statement may have committed nothing."""
    found = candidates(facts, target.sink.dataset, target.hints["site"])
    if found is not None and not found:
        return Outcome()
    sink = target.sink
    output = Output(
        dataset=sink.dataset,
        table=sink.table,
        life=sink.life,
        format=sink.format,
        commit_kind=target.kind,
        replaced=target.replaced,
        candidates=tuple(found or ()),
    )
    return Outcome((output,), "which version this statement made isn't seen without the hook in Delta")


def _first(commit: Commit, names: Iterable[str]) -> int | None:
    return next((commit.metrics[name] for name in names if name in commit.metrics), None)
