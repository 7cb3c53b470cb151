"""What a table's own log says: its commits, whoever made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from headwater.errors import TerminalError
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.names import Generation
from headwater.events.scalars import Format

KEEPS_ROWS: Final = frozenset({CommitKind.COMPACT, CommitKind.ALTER, CommitKind.VACUUM, CommitKind.ANALYZE})
"""Commits after which a table has the rows that it had before."""


class TableLogError(TerminalError):
    """A table's log can't be read, or isn't there."""


@dataclass(frozen=True)
class PickedCommit:
    """A commit of the same table whose changes another one applied again."""

    snapshot: int
    parent: int | None
    branches: tuple[str | None, ...]


@dataclass(frozen=True)
class LogCommit:
    """A commit that stands in a table's log."""

    snapshot: int
    time: int
    """When it was made, in microseconds, as the log says it."""
    kind: CommitKind = CommitKind.UNKNOWN
    replaced: OverwriteScope = OverwriteScope.UNKNOWN
    parent: int | None = None
    schema_id: int | None = None
    branches: tuple[str | None, ...] = (None,)
    """The branches that have it as a commit of their own; None is main, and comes first. None at all: it is held back,
    or no branch has it any more."""
    rows: int | None = None
    bytes: int | None = None
    is_confirmed: bool = True
    """False where what was read may be an attempt that failed: its metadata is there, and nothing follows it yet."""
    picked: PickedCommit | None = None
    """What it was made from, if the log says that it only picked another commit."""


@dataclass(frozen=True)
class TableLog:
    """The commits that a table's log still has. Those that have expired there are no longer in it."""

    format: Format
    generation: Generation | None
    commits: tuple[LogCommit, ...] = field(default=())
    reuses_numbers: bool = False
    """Whether a snapshot's number is given again after a roll-back (Paimon)."""
