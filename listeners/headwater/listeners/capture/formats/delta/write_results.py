"""What a statement committed to a target: each version exactly, or what it may have been, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from headwater.events import Output
from headwater.events.clock import moment_of
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.formats.delta.commits import (
    DeltaCommit,
    candidates,
    commits_of,
    extent_of,
    is_watched,
    kind_of,
)
from headwater.listeners.capture.formats.delta.table_refs import generation_of
from headwater.listeners.capture.formats.protocol import WriteResult, WriteTarget
from headwater.listeners.capture.statements import Statement, StatementFacts

_ROWS: Final = ("numOutputRows",)
_BYTES: Final = ("numOutputBytes", "numTargetBytesAdded", "numAddedBytes")
_FILES: Final = ("numFiles", "numTargetFilesAdded", "numAddedFiles")
_CREATING_OPERATIONS: Final = ("CREATE", "REPLACE", "CLONE")


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    """Nothing of a version without rows, which a CreateTable tells."""
    if not target.hints.get("has_rows", True):
        return WriteResult()
    commits = commits_to(target, statement.facts)
    if commits:
        return _result_of_commits(commits, target)
    return WriteResult() if is_watched(statement.facts) else _result_without_hook(target, statement.facts)


def commits_to(target: WriteTarget, facts: StatementFacts) -> list[DeltaCommit]:
    """The statement's commits to this table; where its place isn't known yet, those that made a table."""
    commits, environment = commits_of(facts), target.hints["environment"]
    wanted = target.sink.dataset
    if wanted is not None:
        return [commit for commit in commits if commit.dataset(environment) == wanted]
    paths = {commit.path for commit in commits}
    made = {commit.path for commit in commits if commit.operation.startswith(_CREATING_OPERATIONS)}
    found = made if len(made) == 1 else paths
    return [commit for commit in commits if commit.path in found] if len(found) == 1 else []


def output_of(commit: DeltaCommit, sink: SinkSchema) -> Output:
    kind = kind_of(commit)
    return Output(
        dataset=sink.dataset,
        table=sink.table,
        generation=generation_of(commit.generation) or sink.generation,
        format=sink.format,
        snapshot=commit.version,
        parent=commit.parent,
        commit_kind=kind,
        replaced=extent_of(commit, kind, sink.options),
        rows=_first_number(commit, _ROWS),
        bytes=_first_number(commit, _BYTES),
        files=_first_number(commit, _FILES),
        snapshot_time=None if commit.timestamp is None else moment_of(commit.timestamp * 1000),
    )


def _result_of_commits(commits: list[DeltaCommit], target: WriteTarget) -> WriteResult:
    sink = _complete_sink(target.sink, commits[-1], target)
    gap = None
    if any(commit.version is None for commit in commits):
        gap = "the log no longer tells which version this transaction made"
    return WriteResult(tuple(output_of(commit, sink) for commit in commits), gap, sink)


def _complete_sink(sink: SinkSchema, commit: DeltaCommit, target: WriteTarget) -> SinkSchema:
    """A table that the statement made has its place and its generation now."""
    known: dict[str, object] = {}
    if sink.dataset is None:
        known["dataset"] = commit.dataset(target.hints["environment"])
    if commit.generation is not None:
        known["generation"] = generation_of(commit.generation)
    return sink.model_copy(update=known) if known else sink


def _result_without_hook(target: WriteTarget, facts: StatementFacts) -> WriteResult:
    """Without the hook: what was committed meanwhile, whoever did it; this statement may have committed nothing."""
    found = candidates(facts, target.sink.dataset, target.hints["environment"])
    if found is not None and not found:
        return WriteResult()
    if target.hints.get("may_overwrite"):  # a replacement, or an overwrite of all or some of what is there
        target = replace(target, kind=CommitKind.UNKNOWN, replaced=OverwriteScope.UNKNOWN)
    output = target.output(candidates=tuple(found or ()))
    return WriteResult((output,), "which version this statement made isn't seen without the hook in Delta")


def _first_number(commit: DeltaCommit, names: Iterable[str]) -> int | None:
    return next((commit.metrics[name] for name in names if name in commit.metrics), None)
