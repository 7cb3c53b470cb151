"""Walks from a commit to those that it was made on: within changes that were read, and to a table's beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from headwater.events.scalars import Format
from headwater.lineage.questions.traversal.context import is_range, snapshot_ref_of
from headwater.lineage.questions.traversal.histories import load_writes_before
from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.reconciled import is_pointer
from headwater.lineage.questions.traversal.snapshot_rows import (
    ICEBERG,
    NOTHING,
    SnapshotRead,
    SnapshotWrite,
    is_unordered,
)
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef

WriterLookup = Callable[[SnapshotRef], Sequence[SnapshotWrite]]
"""Returns the write of each output that made a snapshot; nothing if its writer is unknown."""
_KEEPS_ROWS: Final = frozenset({"COMPACT", "ANALYZE", "VACUUM", "ALTER", "AlterTable"})
"""Commits, and catalog changes, after which a table has the rows that it had before."""
_UNCOUNTED: Final = frozenset({ICEBERG, Format.HUDI.value})
"""Formats whose first snapshot can have any number."""
_SOME_BEFORE: Final = 16
"""How many commits are looked at to see whether there is one before."""


def keeps_rows(write: Sequence[SnapshotWrite]) -> bool:
    """Return whether a table has the rows after a commit that it had before. Iceberg calls a commit REPLACE that writes
    the same rows, or what it knows of its files, anew."""
    return all(
        not commit.restarts
        and (commit.kind in _KEEPS_ROWS or (commit.kind == "REPLACE" and commit.replaced == NOTHING))
        for commit in write
    )


def is_restore(write: SnapshotWrite) -> bool:
    """Return whether a commit may have given its table back the rows of one of its snapshots, and nothing else."""
    return write.kind == "RESTORE" and write.restarts


def parent_of(write: Sequence[SnapshotWrite]) -> SnapshotRef | None:
    """Return the snapshot that a commit was made on."""
    first = write[0]
    parent = next((commit.parent for commit in write if commit.parent is not None), None)
    if parent is None or first.dataset is None or is_pointer(first):
        return None
    return SnapshotRef(first.dataset, parent, first.generation, first.branch, first.at, first.format == ICEBERG)


class CommitsRead(NamedTuple):
    """The commit of a state that was read, or those within changes."""

    commits: Sequence[SnapshotWrite]
    """Newest first."""
    unknown: SnapshotRef | None = None
    """The version behind them whose writer is unknown; None if all are known."""
    has_unknown_parent: bool = False
    """Whether the last of them has no parent, though the changes may have begun before it."""


def find_commits_read(write: SnapshotWrite, read: SnapshotRead, writer: WriterLookup) -> CommitsRead:
    """Return the commit of a state that was read, or all commits within changes, as far as they are known."""
    at, commits = snapshot_ref_of(read, write.at), list[SnapshotWrite]()
    while at is not None:
        found = writer(at)
        if not found:
            return CommitsRead(commits, at)
        if is_range(read) and not _is_after(found[0], read):
            return CommitsRead(commits)
        commits.append(found[0])
        if not is_range(read) or read.since is None:
            return CommitsRead(commits)
        at = parent_of(found)
        if at is not None and at.snapshot == read.since:
            rest = writer(at) if read.since_version is not None else ()
            return CommitsRead([*commits, *rest[:1]])
    return CommitsRead(commits, has_unknown_parent=bool(commits))


def is_parent_unknown(connection: Connection, identities: Identities, write: SnapshotWrite) -> bool:
    """Return whether a commit without a parent isn't the first one of its table, which alone has none.

    Numbers say that where they are counted. Iceberg's have no order, and Hudi's are times: there a commit before it, of
    any branch, says it.
    """
    if write.snapshot is None or write.format is None or write.dataset is None:
        return False
    if write.format not in _UNCOUNTED:
        return not is_unordered(write.format) and write.snapshot > 1
    before = load_writes_before(connection, list(identities.group(write.dataset)), write.at, _SOME_BEFORE)
    return any(
        earlier.snapshot not in (None, write.snapshot)
        and earlier.at < write.at
        and earlier.generation == write.generation
        for earlier in before
    )


def _is_after(write: SnapshotWrite, read: SnapshotRead) -> bool:
    """Return whether a commit is within the changes that were read."""
    if read.since is None:
        return write.snapshot == read.snapshot
    if write.snapshot == read.since:
        return read.since_version is not None
    return is_unordered(write.format) or write.snapshot is None or write.snapshot > read.since
