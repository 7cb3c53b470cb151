"""What an aligned job has to know of a table, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from headwater.errors import TerminalError
from headwater.versions.cuts import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.versions.spark_tables import CatalogTable


class UnalignableTableError(TerminalError):
    """A table has no snapshots that an aligned job could read, or doesn't have them any more."""


class UnmarkedWriteError(TerminalError):
    """A write isn't one commit that carries its barrier, so that a barrier that runs again wouldn't find all of it."""


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
    restores: int | None = None
    """The snapshot whose rows it gave back, and nothing else."""


@dataclass(frozen=True)
class WriteSearch:
    """What was found of a barrier's write."""

    snapshot: int | None
    """The snapshot that carries the mark."""
    is_certain: bool
    """Whether all snapshots since were seen, or enough of them."""


class AlignableTable(ABC):
    """A table as it was when `look` was called last. What it has read of the table's history it doesn't read again, as
    long as it is the same table: commits never change."""

    format: ClassVar[str]

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark: Final = spark
        self.name: Final = name
        self.read_name = name
        """The name that a version stands behind where the table is read."""

    @abstractmethod
    def look(self, loaded: CatalogTable) -> None:
        """Take the table as a catalog has it now."""

    @property
    @abstractmethod
    def generation(self) -> str:
        """What tells this table from one that was dropped before it under the same name."""

    @property
    def can_mark(self) -> bool:
        """Whether each write of the table is one commit that carries its mark."""
        return True

    @abstractmethod
    def newest(self) -> int | None:
        """Return the newest snapshot; None if there is none."""

    @abstractmethod
    def _commits_after(self, at: TableSnapshot) -> list[SourceCommit] | None:
        """Return the commits from a snapshot of this generation to the newest one."""

    @abstractmethod
    def additions(self, after: TableSnapshot, until: TableSnapshot, commits: Sequence[SourceCommit]) -> DataFrame:
        """Return the rows that those of these commits added which only add rows; there is one at least."""

    @abstractmethod
    def stream_options(self, after: int) -> dict[str, str]:
        """Return the options with which Spark's `readStream` begins after a snapshot."""

    @abstractmethod
    def write_marked(self, mark: str, write: Callable[[], object]) -> None:
        """Call a function whose writes carry a mark, those of this thread."""

    @abstractmethod
    def find_mark(self, mark: str, after: int | None) -> WriteSearch:
        """Look for a write with this mark after a snapshot of what is written; without one in all of its history.

        Numbers of a job's barriers grow, so the history before a mark of an earlier barrier isn't looked at.
        """

    def newest_written(self) -> int | None:
        """Return the newest snapshot of the branch that this session's writes go to."""
        return self.newest()

    def fault_of_write(self, mark: str, after: int | None) -> str | None:  # noqa: ARG002
        """Return what is wrong with what was written since: it has to be one commit that carries the mark, or none."""
        return None

    def at(self, snapshot: int) -> TableSnapshot:
        """Return a snapshot as a cut has it."""
        return TableSnapshot(snapshot, self.generation)

    def commits_after(self, at: TableSnapshot) -> list[SourceCommit] | None:
        """Return the commits from this snapshot to the newest one, the oldest first; None if the newest one isn't made
        from this snapshot, or too much has expired to know. An error if the table was made again."""
        self.check_generation(at)
        found = self._commits_after(at)
        return None if found is None else without_taken_back(at.snapshot, found)

    def state(self, at: TableSnapshot) -> DataFrame:
        """Return all rows at a snapshot."""
        self.check_generation(at)
        return self.spark.sql(f"SELECT * FROM {self.read_name} VERSION AS OF {at.snapshot}")  # noqa: S608 - the user's own

    def check_generation(self, at: TableSnapshot) -> None:
        """Raise an error if a snapshot is of a table that was dropped since."""
        if at.generation not in (None, self.generation):
            raise UnalignableTableError(
                f"{self.name} was dropped and made again since its snapshot {at.snapshot} became part of a data "
                "version: align it in a group of another name"
            )


def without_taken_back(before: int, commits: Sequence[SourceCommit]) -> list[SourceCommit]:
    """Return the commits since a snapshot without those that were taken back since. A commit that gave the rows of one
    of them back, or of that snapshot, keeps rows as they are."""
    if not any(commit.restores is not None for commit in commits):
        return list(commits)
    lines: dict[int, list[SourceCommit]] = {before: []}
    at = before
    for commit in commits:
        restored = None if commit.restores is None else lines.get(commit.restores)
        if restored is None:
            lines[commit.snapshot] = [*lines[at], commit]
        else:
            lines[commit.snapshot] = [*restored, replace(commit, effect=CommitEffect.KEEPS)]
        at = commit.snapshot
    return lines[at]


def is_earlier(mark: str, than: str) -> bool:
    """Return whether a mark is of the same write in an earlier barrier."""
    (job, _, number), (other, _, later) = mark.rpartition("/"), than.rpartition("/")
    return job == other and number.isdecimal() and int(number) < int(later)


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Generator[None]:
    """Have settings of a session inside the block, and those of before after it."""
    former = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in former.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
