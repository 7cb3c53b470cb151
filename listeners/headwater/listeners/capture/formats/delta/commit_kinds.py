"""Delta's words for what a commit did, as commit kinds, and how much of the table it took the place of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headwater.events.commit_words import delta_commit_kind
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.listeners.capture.formats.delta.commits import DeltaCommit

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
