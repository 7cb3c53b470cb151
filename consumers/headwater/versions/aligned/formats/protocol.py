"""What an aligned job has to know of a table format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Protocol

from headwater.errors import TerminalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class UnalignableTableError(TerminalError):
    """A table has no snapshots that an aligned job could read, or doesn't have them any more."""


class CommitEffect(Enum):
    """What a commit did to the rows of its table."""

    ADDS = "adds rows"
    KEEPS = "keeps the rows as they are"
    CHANGES = "changes or removes rows"


@dataclass(frozen=True)
class SourceCommit:
    """A commit of a table."""

    snapshot: int
    effect: CommitEffect
    operation: str
    """What the format calls it."""


class AlignableFormat(Protocol):
    """Tables of one format, each named as Spark names it."""

    name: ClassVar[str]
    can_mark: ClassVar[bool]
    """Whether a write of Spark can carry a mark."""

    def generation(self, spark: SparkSession, table: str) -> str:
        """Return what tells this table from one that was dropped before it under the same name."""
        ...

    def current(self, spark: SparkSession, table: str) -> int | None:
        """Return the newest snapshot, as it is now; None if there is none."""
        ...

    def commits_after(self, spark: SparkSession, table: str, snapshot: int) -> Sequence[SourceCommit] | None:
        """Return the commits from this snapshot to the newest one, the oldest first; None if the newest one isn't made
        from this snapshot, or too much has expired to know."""
        ...

    def state(self, spark: SparkSession, table: str, snapshot: int) -> DataFrame:
        """Return all rows at a snapshot."""
        ...

    def additions(
        self, spark: SparkSession, table: str, after: int, until: int, commits: Sequence[SourceCommit]
    ) -> DataFrame:
        """Return the rows that commits added which only add rows."""
        ...

    def stream_options(self, spark: SparkSession, table: str, after: int) -> dict[str, str]:
        """Return the options with which Spark's `readStream` begins after a snapshot."""
        ...

    def write_marked(self, spark: SparkSession, mark: str, write: Callable[[], object]) -> None:
        """Call a function whose writes carry a mark, those of this thread."""
        ...

    def find_mark(self, spark: SparkSession, table: str, mark: str, after: int | None) -> WriteSearch:
        """Look for a write with this mark after a snapshot."""
        ...


@dataclass(frozen=True)
class WriteSearch:
    """What was found of a barrier's write."""

    snapshot: int | None
    """The snapshot that carries the mark."""
    is_certain: bool
    """Whether all snapshots since were seen."""
    unmarked: tuple[int, ...] = ()
    """Snapshots since that this application wrote without a mark."""
