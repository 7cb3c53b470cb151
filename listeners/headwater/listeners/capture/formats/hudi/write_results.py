"""What a statement committed to a target: each instant exactly, or what it may have been, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import Format, Output
from headwater.events.commit_words import HUDI_KINDS, hudi_operation
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.hudi.table_refs import place_path
from headwater.listeners.capture.formats.hudi.timelines import (
    COMMITS,
    FORMAT,
    HudiCommit,
    HudiInstant,
    instant_before,
    is_parent_unknown,
    parse_commit,
    recorded_commits,
    timeline,
    timeline_facts,
)
from headwater.listeners.capture.formats.protocol import OutsideCommit, WriteResult, WriteTarget, ref_fields
from headwater.listeners.capture.statements import Statement, StatementFacts

_COMMAND_KINDS: Final = frozenset(
    {CommitKind.UPDATE, CommitKind.DELETE, CommitKind.MERGE, CommitKind.CREATE, CommitKind.TRUNCATE}
)
"""What a command says goes before what Hudi made of it: an UPDATE is an upsert there."""
_OVERWRITES: Final = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})


def kind_of(operation: str | None, target: WriteTarget) -> CommitKind:
    if target.kind in _COMMAND_KINDS:
        return target.kind
    if target.kind is CommitKind.OVERWRITE and target.replaced is OverwriteScope.ALL:
        return CommitKind.OVERWRITE
    return HUDI_KINDS.get(hudi_operation(operation), target.kind)


def extent_of(operation: str | None, commit: HudiCommit, kind: CommitKind, target: WriteTarget) -> OverwriteScope:
    if kind in {CommitKind.COMPACT, CommitKind.ALTER}:
        return OverwriteScope.NOTHING
    if target.replaced is OverwriteScope.ALL or hudi_operation(operation) == "INSERT_OVERWRITE_TABLE":
        return OverwriteScope.ALL
    if hudi_operation(operation) in _OVERWRITES:
        return OverwriteScope.PART if target.sink.partitioning else OverwriteScope.ALL
    if hudi_operation(operation) == "DELETE_PARTITION":
        return OverwriteScope.PART
    if not operation:
        return target.replaced
    return OverwriteScope.PART if commit.changed else OverwriteScope.NOTHING


def rows_of(commit: HudiCommit, kind: CommitKind) -> int | None:
    """How many were written, where they were only added."""
    is_adding = kind in {CommitKind.APPEND, CommitKind.OVERWRITE, CommitKind.CREATE}
    return commit.inserted if is_adding and not commit.changed else None


_SERVICES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
NOT_HOOKED: Final = "which instant this statement made isn't seen without the hook in Hudi"
_UNREADABLE: Final = "what {} was made on isn't known: the table's timeline couldn't be read, or doesn't have it"
_SEVERAL: Final = "several table services ran meanwhile: which of them came with this write isn't seen"


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    commits = commits_to(target, statement.facts)
    if commits:
        return _result_of_commits(commits, target, statement)
    facts = timeline_facts(statement.facts)
    if facts.get("covered"):
        return WriteResult()
    return result_without_hook(target, statement)


def commits_to(target: WriteTarget, facts: StatementFacts) -> list[HudiCommit]:
    """The statement's commits to this table; where its place isn't known yet, to the only one there is."""
    commits = recorded_commits(facts)
    wanted = target.sink.dataset
    if wanted is None:
        return commits if len({commit.path for commit in commits}) == 1 else []
    return [commit for commit in commits if place_path(commit.path, target.hints["environment"]) == wanted]


def outside_commit(fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
    """Hudi's clients commit without a statement: what they did isn't in what the hook sees."""
    if fact.get("hook") != FORMAT:
        return None
    commit = parse_commit(fact)
    output = Output(dataset=place_path(commit.path, context.environment), format=Format.HUDI, snapshot=commit.number)
    return OutsideCommit((output,))


def _result_of_commits(commits: Sequence[HudiCommit], target: WriteTarget, statement: Statement) -> WriteResult:
    sink = target.sink
    if sink.dataset is None:
        sink = sink.model_copy(update={"dataset": place_path(commits[-1].path, target.hints["environment"])})
    line = timeline(statement.facts, commits[-1].path) or []
    places = {instant.number: n for n, instant in enumerate(line)}
    commits = sorted(commits, key=lambda commit: places.get(commit.number, len(line)))
    outputs = [_output(commit, sink, target, line) for commit in commits]
    lost = [
        output.snapshot
        for output in outputs
        if output.snapshot is not None and _holds_unknown_rows(output, output.snapshot, line)
    ]
    gap = None
    if commits[-1].services:
        made, gap = _service_outputs(commits[-1], target, sink, line, statement)
        outputs += made
    if lost:
        gap = _UNREADABLE.format(", ".join(map(str, lost)))
    return WriteResult(tuple(outputs), gap, sink, unknown_origin=bool(lost))


def _holds_unknown_rows(output: Output, snapshot: int, line: Sequence[HudiInstant]) -> bool:
    """Whether rows from before are in it of which nothing is known."""
    return output.replaced is not OverwriteScope.ALL and is_parent_unknown(snapshot, line)


def _output(commit: HudiCommit, sink: SinkSchema, target: WriteTarget, line: Sequence[HudiInstant]) -> Output:
    operation = next((instant.operation for instant in line if instant.number == commit.number), None)
    kind = kind_of(operation, target)
    return Output(
        **ref_fields(sink),
        snapshot=commit.number,
        parent=instant_before(commit.number, line),
        commit_kind=kind,
        replaced=extent_of(operation, commit, kind, target),
        rows=rows_of(commit, kind),
        bytes=commit.bytes,
    )


def _service_outputs(
    commit: HudiCommit, target: WriteTarget, sink: SinkSchema, line: Sequence[HudiInstant], statement: Statement
) -> tuple[list[Output], str | None]:
    """Compactions and clusterings that ran within the write, behind its own commit: one of each at most."""
    own = next((n for n, instant in enumerate(line) if instant.number == commit.number), len(line))
    ran = [
        instant
        for instant in line[own + 1 :]
        if instant.operation in _SERVICES and instant.completed <= statement.ended
    ]
    if len({instant.operation for instant in ran}) < len(ran):
        kind, replaced = CommitKind.COMPACT, OverwriteScope.NOTHING
        return [target.output(sink, commit_kind=kind, replaced=replaced, candidates=_numbers(ran))], _SEVERAL
    return [compaction_output(instant, sink, line) for instant in ran], None


def compaction_output(instant: HudiInstant, sink: SinkSchema, line: Sequence[HudiInstant]) -> Output:
    return Output(
        **ref_fields(sink),
        snapshot=instant.number,
        parent=instant_before(instant.number, line),
        commit_kind=CommitKind.COMPACT,
        replaced=OverwriteScope.NOTHING,
        made_from=(),
    )


def result_without_hook(target: WriteTarget, statement: Statement) -> WriteResult:
    """What was committed meanwhile, whoever did it; this statement may have committed nothing."""
    path = timeline_facts(statement.facts).get("target")
    line = timeline(statement.facts, path)
    sink = target.sink
    if sink.dataset is None:
        sink = sink.model_copy(update={"dataset": place_path(path, target.hints["environment"])})
    if line is None:
        return WriteResult((target.output(sink),), NOT_HOOKED, sink)
    meanwhile = list(commits_during(line, statement))
    if not meanwhile:
        return WriteResult()
    return WriteResult((target.output(sink, candidates=_numbers(meanwhile)),), NOT_HOOKED, sink)


def commits_during(line: Iterable[HudiInstant], statement: Statement) -> Iterator[HudiInstant]:
    """Commits that were completed while the statement ran."""
    since = statement.started or 0
    return (instant for instant in line if instant.action in COMMITS and since <= instant.completed <= statement.ended)


def _numbers(candidates: Iterable[HudiInstant]) -> tuple[int, ...]:
    return tuple(sorted(instant.number for instant in candidates))
