"""What a statement committed, as the hook noted it in the threads that did it, or as the log tells it afterwards.

Delta's words for what a commit did, as commit kinds, and how much of the table it took the place of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.events.commit_words import delta_commit_kind
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.identity.environment import Environment
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.names import DatasetId
from headwater.listeners.capture.statements import StatementFacts

HOOK: Final = "delta"


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One version of one table."""

    path: str
    version: int | None
    """None where the hook saw that there is one and the log didn't tell which."""
    read_version: int
    """What the transaction read; others may have committed since, so it isn't the version before."""
    generation: str | None
    transaction: str | None = None
    """Its id, which stands in the log too: the same version can be found by it."""
    operation: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    timestamp: int | None = None
    """What the log says of when it was made, in milliseconds."""
    overwrites: str | None = None
    """The session's partitionOverwriteMode, where the table has partitions."""
    table: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    """Only where this commit changed it."""
    before: Mapping[str, Any] | None = None

    @property
    def parent(self) -> int | None:
        """The log is one line: each version is made on the one before."""
        return self.version - 1 if self.version else None

    @property
    def keeps_id(self) -> bool:
        """Whether the table is the one that it was before this version."""
        if self.read_version < 0:
            return False
        return self.metadata is None or (self.before is not None and self.metadata["id"] == self.before["id"])

    def dataset(self, environment: Environment) -> DatasetId | None:
        return place_path(self.path, environment)


def place_path(path: str, environment: Environment) -> DatasetId | None:
    try:
        return dataset_of_path(path, environment)
    except IdentityError:
        return None


def commits_of(facts: StatementFacts) -> list[DeltaCommit]:
    """In the order of their versions: a compaction that a write caused is noted before the write itself."""
    fields = facts.looked_up.get(HOOK, {})
    found = {commit["txnId"]: commit for commit in fields.get("committed", ())}
    noted = [note for note in facts.hook_facts if note.get("hook") == HOOK and note.get("action") == "committed"]
    commits = [_make_commit(note, found.get(note.get("txnId"))) for note in noted]
    if not commits:  # a micro-batch that is run again finds what it committed before
        before = fields.get("repeated", ())
        commits = [
            _make_commit({"path": commit["path"], "readVersion": commit["version"] - 1}, commit) for commit in before
        ]
    return sorted(commits, key=lambda commit: (commit.path, commit.version is None, commit.version or 0))


def parse_commit(note: Mapping[str, Any]) -> DeltaCommit:
    return _make_commit(note, note.get("found"))


def scanned_versions(facts: StatementFacts, path: str) -> list[Mapping[str, Any]]:
    """What scans of a table were prepared at, in executions that ran."""
    notes = [
        n for n in facts.hook_facts if n.get("hook") == HOOK and n.get("action") == "scanned" and n.get("path") == path
    ]
    return [note for note in notes if note.get("nested")] or notes


def is_watched(facts: StatementFacts) -> bool:
    """Whether a hook saw what this statement committed; if not, the log was looked through."""
    return "candidates" not in facts.looked_up.get(HOOK, {})


def candidates(facts: StatementFacts, dataset: DatasetId | None, environment: Environment) -> list[int] | None:
    """Versions that somebody committed while the statement ran; None where its table's log wasn't looked through."""
    by_path = facts.looked_up.get(HOOK, {}).get("candidates", {})
    for path, found in by_path.items():
        if dataset is not None and place_path(path, environment) == dataset:
            return sorted(commit["version"] for commit in found)
    return None


def version_bounds(facts: StatementFacts, path: str) -> tuple[int, int] | None:
    """The versions that the table had when the statement was analysed and when it had ended."""
    fields = facts.looked_up.get(HOOK, {}).get("tables", {}).get(path)
    if fields is None or fields["lowest"] < 0:
        return None
    return fields["lowest"], max(fields["lowest"], before_own_commits(fields["highest"], path, facts))


def before_own_commits(highest: int, path: str, facts: StatementFacts) -> int:
    """A statement reads before it commits."""
    own = [commit.version for commit in commits_of(facts) if commit.path == path and commit.version is not None]
    return min([highest, *(version - 1 for version in own)])


def _make_commit(note: Mapping[str, Any], found: Mapping[str, Any] | None) -> DeltaCommit:
    info = {} if found is None else found.get("info", {}).get("commitInfo", {})
    return DeltaCommit(
        path=note["path"],
        version=note.get("version", found and found.get("version")),
        read_version=note["readVersion"],
        generation=note.get("generation"),
        transaction=note.get("txnId"),
        operation=note.get("operation") or info.get("operation", ""),
        parameters=info.get("operationParameters") or _decode_parameters(note.get("parameters", {})),
        metrics=_counts(note.get("metrics") or info.get("operationMetrics") or {}),
        timestamp=info.get("inCommitTimestamp") or info.get("timestamp") or note.get("timestamp"),
        overwrites=note.get("overwrites"),
        table=note.get("table"),
        metadata=note.get("metadata"),
        before=note.get("before"),
    )


def _decode_parameters(parameters: Mapping[str, str]) -> dict[str, Any]:
    """In memory each is JSON by itself; in the file it isn't text any more."""
    return {key: _json(text) for key, text in parameters.items()}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _counts(metrics: Mapping[str, str]) -> dict[str, int]:
    return {key: int(text) for key, text in metrics.items() if text.isdecimal()}


_REPLACING_KINDS: Final = frozenset({CommitKind.CREATE, CommitKind.REPLACE, CommitKind.RESTORE, CommitKind.CLONE})
_KEEPS_ROWS: Final = frozenset({CommitKind.VACUUM, CommitKind.ALTER, CommitKind.ANALYZE, CommitKind.APPEND})


def kind_of(commit: DeltaCommit) -> CommitKind:
    first = commit.read_version < 0
    return delta_commit_kind(commit.operation, commit.parameters, is_first=first, keeps_id=commit.keeps_id)


def extent_of(commit: DeltaCommit, kind: CommitKind, options: Mapping[str, str]) -> OverwriteScope:
    """`options` are the write's own, in lower case."""
    if kind in _KEEPS_ROWS:
        return OverwriteScope.NOTHING
    if kind in _REPLACING_KINDS or commit.operation == "CONVERT":
        return OverwriteScope.ALL
    if kind is CommitKind.OVERWRITE:
        return _scope_of_overwrite(commit, options.get("partitionoverwritemode"))
    if kind in {CommitKind.DELETE, CommitKind.TRUNCATE}:
        return OverwriteScope.ALL if _matches_all(commit.parameters.get("predicate")) else OverwriteScope.PART
    return OverwriteScope.UNKNOWN if kind is CommitKind.OTHER else OverwriteScope.PART


def _scope_of_overwrite(commit: DeltaCommit, asked: str | None) -> OverwriteScope:
    """Which partitions a dynamic overwrite replaces depends on the rows; the log doesn't say that it was one. What has
    a condition isn't dynamic, whatever the session says."""
    predicate = commit.parameters.get("predicate")
    mode = asked or commit.overwrites or "static"
    if predicate is None and commit.overwrites is not None and mode.lower() == "dynamic":
        return OverwriteScope.PART
    return OverwriteScope.ALL if _matches_all(predicate) else OverwriteScope.PART


def _matches_all(predicate: Any) -> bool:
    """`["true"]` and no predicate at all; the list is JSON once more."""
    condition: object = predicate
    if isinstance(condition, str):
        try:
            condition = json.loads(condition)
        except ValueError:
            return condition == "true"
    return condition is None or condition is True or condition in ([], ["true"])
