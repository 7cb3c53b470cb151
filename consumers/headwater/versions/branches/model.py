"""What a branch of a table is, and what became of main."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from headwater.errors import ConfigurationError, TerminalError


class BranchError(ConfigurationError):
    """A branch can't be had as it was asked for: its name, its tag, or its table's format."""


class MainMovedError(TerminalError):
    """Main isn't at the snapshot any more that it had to be at, so it was left as it is."""

    @classmethod
    def of(cls, table: str, now: int | None, expected: int | None) -> MainMovedError:
        """Return the error of a table whose main is somewhere else."""
        return cls(
            f"main of {table} is at {now}, and not at {expected} any more: look at what has come, and try again if it "
            "may go"
        )


@dataclass(frozen=True)
class Branch:
    """A branch of a table, as the table's format has it."""

    name: str
    tag: str | None
    """The tag of main that it was made from; none where another program made it and didn't say."""
    tagged_snapshot: int | None
    """The snapshot of that tag: what main had since is main's alone."""
    created_at: datetime | None
    head: int | None
    """Its newest snapshot."""


class MoveKind(str, Enum):
    """How main came to have a branch's rows."""

    FAST_FORWARD = "fast-forward"
    """Main had got nothing since the branch's tag."""
    REPLACE = "replace"
    """What main had got since is main's no more."""
    COPY = "copy"
    """The branch's rows were written into main, as one commit."""
    RESTORE = "restore"
    """The branch has no commit of its own: main is at the tag again."""
    NOTHING = "nothing"
    """Main had the branch's newest snapshot already."""


@dataclass(frozen=True)
class MainMove:
    """What a merge does to main, or did."""

    branch: Branch
    kind: MoveKind
    previous: int | None
    """Main's newest snapshot before."""
    snapshot: int | None
    """And after; none where that isn't known before it is done."""
    lost_snapshots: tuple[int, ...] = ()
    """Those that main alone had since the branch's tag, the newest first."""
    lost_tags: tuple[str, ...] = ()
    """Tags of these."""
    parent: int | None = None
    schema_id: int | None = None


@dataclass(frozen=True)
class MainRollBack:
    """What a roll-back to one of a table's own snapshots did to main."""

    to: int
    """The snapshot whose rows main has now."""
    previous: int | None
    """Main's newest snapshot before."""
    snapshot: int
    """And after: with Iceberg it is `to`, with Delta and Paimon a new one."""
    parent: int | None = None
    schema_id: int | None = None


@dataclass(frozen=True)
class NeededSnapshot:
    """A snapshot of main that somebody needs."""

    snapshot: int
    consequence: str
    """Who needs it, and what for."""


@dataclass(frozen=True)
class ExpiryRisk:
    """What an expiry of old snapshots would take from a branch, main among them."""

    branch: str
    snapshot: int | None
    consequence: str


def check_branch_name(name: str) -> str:
    """Return a name that a branch can have. Names with dots are refused, since `VERSION AS OF 'branch.tag'` has one."""
    if not name.strip() or name != name.strip():
        raise BranchError(f"a branch can't be called {name!r}: give it a name, such as fix")
    if "." in name:
        raise BranchError(f"a branch can't be called {name!r}: a dot stands between a branch and its tag")
    if name.lower() == "main":
        raise BranchError("main is there in each table, and is no other branch's name")
    if name.isdecimal():
        raise BranchError(f"a branch can't be called {name!r}: a number means a snapshot")
    return name
