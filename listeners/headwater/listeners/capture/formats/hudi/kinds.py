"""Hudi's words for what a commit did, as commit kinds, and how much of the table it took the place of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.events import CommitKind, Extent
from headwater.listeners.capture.formats.hudi.timelines import Noted
from headwater.listeners.capture.formats.protocol import Target

_KINDS: Final[Mapping[str, CommitKind]] = {
    "INSERT": CommitKind.APPEND,
    "BULK_INSERT": CommitKind.APPEND,
    "BOOTSTRAP": CommitKind.APPEND,
    "UPSERT": CommitKind.MERGE,
    "DELETE": CommitKind.DELETE,
    "DELETE_PARTITION": CommitKind.DELETE,
    "INSERT_OVERWRITE": CommitKind.OVERWRITE,
    "INSERT_OVERWRITE_TABLE": CommitKind.OVERWRITE,
    "CLUSTER": CommitKind.COMPACT,
    "COMPACT": CommitKind.COMPACT,
    "LOG_COMPACT": CommitKind.COMPACT,
    "ALTER_SCHEMA": CommitKind.ALTER,
}
_SAID: Final = frozenset(
    {CommitKind.UPDATE, CommitKind.DELETE, CommitKind.MERGE, CommitKind.CREATE, CommitKind.TRUNCATE}
)
"""What a command says goes before what Hudi made of it: an UPDATE is an upsert there."""
_OVERWRITES: Final = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})


def word(operation: str | None) -> str:
    """Writes that were prepared before are the same to whoever reads the table."""
    return (operation or "").removesuffix("_PREPPED")


def kind_of(operation: str | None, target: Target) -> CommitKind:
    if target.kind in _SAID:
        return target.kind
    if target.kind is CommitKind.OVERWRITE and target.replaced is Extent.ALL:
        return CommitKind.OVERWRITE
    return _KINDS.get(word(operation), target.kind)


def extent_of(operation: str | None, commit: Noted, kind: CommitKind, target: Target) -> Extent:
    if kind in {CommitKind.COMPACT, CommitKind.ALTER}:
        return Extent.NOTHING
    if target.replaced is Extent.ALL or word(operation) == "INSERT_OVERWRITE_TABLE":
        return Extent.ALL
    if word(operation) in _OVERWRITES:
        return Extent.PART if target.sink.partitioning else Extent.ALL
    if word(operation) == "DELETE_PARTITION":
        return Extent.PART
    if not operation:
        return target.replaced
    return Extent.PART if commit.changed else Extent.NOTHING


def rows_of(commit: Noted, kind: CommitKind) -> int | None:
    """How many were written, where they were only added."""
    is_adding = kind in {CommitKind.APPEND, CommitKind.OVERWRITE, CommitKind.CREATE}
    return commit.inserted if is_adding and not commit.changed else None
