"""Hudi's words for what a commit did, as commit kinds, and how much of the table it took the place of."""

from __future__ import annotations

from typing import Final

from headwater.events.commit_words import HUDI_KINDS, hudi_operation
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.listeners.capture.formats.hudi.timelines import HudiCommit
from headwater.listeners.capture.formats.protocol import WriteTarget

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
