"""What a correction does with tables, whatever their format. Each step can be done again: a process may die in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headwater.errors import TerminalError
from headwater.versions.correction.model import PlannedTable


class CorrectionError(TerminalError):
    """A correction can't go on as it is; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Where the correction of a table is made."""

    table: str
    branch: str
    name: str
    """By which SQL reads and writes it."""
    begins_at: int
    """The mirror's own snapshot that it has before anything is written to it."""
    begins_at_in_table: int
    """The table's snapshot that it was made from."""
    expected: int | None
    """The newest snapshot of the table that the mirror takes account of: a switch needs the table to be there still."""

    def to_detail(self) -> dict[str, Any]:
        """Return it as the journal keeps it."""
        return asdict(self)

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any]) -> Mirror:
        """Return it from the detail of a step."""
        return cls(**detail)


@dataclass(frozen=True, kw_only=True)
class LaterCommits:
    """What a table got after a snapshot."""

    newest: int
    snapshots: tuple[int, ...]
    """Of its commits, the oldest first."""
    adds: bool
    """Whether any of them adds rows."""
    obstacles: tuple[str, ...] = ()
    """Why they can't be taken over, each with the snapshot."""

    @property
    def count(self) -> int:
        return len(self.snapshots)


class CorrectionTables(ABC):
    """The tables of one correction, as they are when a method is called."""

    @abstractmethod
    def make_mirror(self, planned: PlannedTable, branch: str) -> Mirror:
        """Make the mirror of a table; if it is there, finish it."""

    @abstractmethod
    def remove_mirror(self, table: str, branch: str) -> None:
        """Remove the mirror of a table, if there is one."""

    @abstractmethod
    def head_of_table(self, table: str) -> int | None:
        """Return the newest snapshot of the table itself."""

    @abstractmethod
    def head_of_mirror(self, mirror: Mirror) -> int:
        """Return the newest snapshot of a mirror. A CorrectionError if there is no such mirror any more."""

    @abstractmethod
    def later_commits(self, table: str, since: int) -> LaterCommits:
        """Return what a table got after a snapshot."""

    def location_of(self, name: str) -> str:
        """Return the directory of a table, or of a mirror that is a table, by its name in SQL."""
        raise CorrectionError(f"{name} has no directory in which a stream could go on")

    def changes_of_mirror(self, mirror: Mirror) -> Sequence[str]:  # noqa: ARG002 - not every kind can tell
        """Return the commits of a mirror that changed rows since it was made, in place of adding some."""
        return ()

    @abstractmethod
    def take_over(self, mirror: Mirror, since: int, until: int, mark: str) -> int | None:
        """Add to the mirror what the table's commits after `since`, until `until`, added. It is done once for each
        mark, however often it is called. Return the mirror's snapshot that has it; None if they added nothing."""


def mirror_branch(correction: str) -> str:
    """Return the name of a correction's branches: a word in each format."""
    return "correction_" + correction.removeprefix("c-").replace("-", "_")
