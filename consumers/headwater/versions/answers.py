"""The answers to questions about data versions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.datasets import Dataset


@dataclass(frozen=True)
class TableAt:
    """A table at a version."""

    dataset: Dataset
    snapshot: int | None
    position: str | None = None
    generation: str | None = None
    branch: str | None = None
    made_at: datetime | None = None
    format: str | None = None

    @property
    def label(self) -> str:
        """What a person calls it: `lake.sales.orders@20`."""
        branch = f"[{self.branch}]" if self.branch else ""
        version = (
            self.position
            if self.snapshot is None
            else f"{self.snapshot}" + (f":{self.position}" if self.position is not None else "")
        )
        return f"{self.dataset.label}{branch}" + ("" if version is None else f"@{version}")


@dataclass(frozen=True)
class ContainedVersion:
    """The newest version of a table upstream that one reader of it contains."""

    table: TableAt
    reader: Dataset
    """The table that read it: the one that was asked about, or one upstream of that."""
    is_whole: bool
    """Whether everything up to that version is contained, as far as numbers tell."""
    since: int | None
    """Where changes began, if nothing was read in full before."""
    read_at: datetime
    job: str | None


@dataclass(frozen=True, kw_only=True)
class ContainedAnswer(Answer[ContainedVersion]):
    """What a table contains at a snapshot."""

    of: TableAt


@dataclass(frozen=True)
class LackedVersion:
    """A commit of a shared table that isn't in all of the tables."""

    table: TableAt
    kind: str | None
    """What the commit did: APPEND, OVERWRITE and so on; None if nobody reported it."""
    job: str | None
    lacking: tuple[tuple[TableAt, Dataset], ...]
    """The tables that haven't got so far, each with the reader that hasn't: itself, or a table upstream of it."""


@dataclass(frozen=True)
class SharedAncestor:
    """A table that several tables share, and which versions of it they contain."""

    dataset: Dataset
    contained: tuple[tuple[TableAt, tuple[ContainedVersion, ...]], ...]
    """By table. One that is the shared table itself contains nothing of it: it is at its version."""
    is_same: bool | None
    """Whether all contain the same version; None if that isn't known."""
    lacked: tuple[LackedVersion, ...] | None = None
    """The commits that make the difference, newest first; None if there is none, if they aren't known, or if the
    question wasn't `check`."""


@dataclass(frozen=True, kw_only=True)
class ConsistencyAnswer(Answer[SharedAncestor]):
    """Whether versions of tables belong together."""

    tables: tuple[TableAt, ...]
    is_consistent: bool | None
    """None if it isn't known: the limits say why."""
    cut: tuple[TableAt, ...] = ()
    """The versions of the shared tables, where all contain the same."""


@dataclass(frozen=True)
class AlignedTable:
    """A table at the version that belongs with the others'."""

    table: TableAt
    steps_behind: int
    """How many versions there are after it."""
    newest: TableAt


@dataclass(frozen=True, kw_only=True)
class AlignmentAnswer(Answer[AlignedTable]):
    """Versions of tables that belong together: the newest ones."""

    cut: tuple[TableAt, ...]
    shared: tuple[SharedAncestor, ...]
