"""What a table format has to do for its tables to have branches: one class for each format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from headwater.errors import PluginError
from headwater.plugins import load_all
from headwater.versions.branches.model import Branch, BranchError, ExpiryRisk, MainMove, MainRollBack
from headwater.versions.spark_tables import CatalogTable, load_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP: Final = "headwater.branch_formats"
"""The group of entry points that names a class for each format, by the word that stands behind USING."""
_REASONS: Final = {
    "hudi": "Hudi has no branches, and its savepoints are points to go back to, which nothing can be written on",
    "": "it is a view, or a table without a format that has versions",
}
_NO_VERSIONS: Final = "its format has no versions, so nothing could branch off: copy the table"


class FormatBranches(ABC):
    """The branches of one table, as they are when a method is called. Names are checked by the caller."""

    format: ClassVar[str]
    """What stands behind USING."""

    def __init__(self, spark: SparkSession, name: str, loaded: CatalogTable) -> None:
        self.spark: Final = spark
        self.name: Final = name
        self.loaded: Final = loaded
        self.look()

    @abstractmethod
    def look(self) -> None:
        """Take the table as it is now, past what its catalog remembers."""

    @property
    @abstractmethod
    def generation(self) -> str | None:
        """What tells this table from one that was dropped before it under the same name."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the table's files are."""

    @abstractmethod
    def main_head(self) -> int | None:
        """Return main's newest snapshot."""

    @abstractmethod
    def tagged_snapshot(self, tag: str) -> int:
        """Return the snapshot of a tag of main. A BranchError if there is no such tag."""

    @abstractmethod
    def branches(self) -> Sequence[Branch]:
        """Return all branches but main, by whomever they were made."""

    @abstractmethod
    def create(self, branch: Branch) -> None:
        """Make a branch that isn't there yet, at the snapshot of its tag."""

    @abstractmethod
    def delete(self, branch: Branch) -> None:
        """Remove a branch, with all that it alone has, as far as the format does that."""

    @abstractmethod
    def plan_move(self, branch: Branch) -> MainMove:
        """Return what has to be done for main to have the branch's rows. A BranchError if that can't be."""

    @abstractmethod
    def move_main(self, move: MainMove, mark: str = "") -> MainMove:
        """Do what was planned, in one commit that is made only if main is at `move.previous`: else a MainMovedError,
        which says where main is. No commit of others is lost, whenever it comes.

        The commit carries `mark`, by which `marked_snapshot` finds it again.
        """

    @abstractmethod
    def unreadable(self, snapshot: int) -> str | None:
        """Return why main can't be given the rows of one of the table's snapshots any more; None if it can."""

    @abstractmethod
    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        """Give main the rows of one of the table's snapshots, in one commit that is made only if main is at `expected`:
        else a MainMovedError, which says where main is. A BranchError if there is no such snapshot any more.

        Main's former snapshots stay, so a roll-back to the former one undoes it. The commit carries `mark`.
        """

    @abstractmethod
    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        """Return the snapshot that main was given by a commit with a mark which was made on `previous`; None if there
        is no such commit."""

    @abstractmethod
    def forget_former_main(self, move: MainMove) -> None:
        """Remove what main alone had before the move for good, as far as the format can."""

    @abstractmethod
    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        """Return what the format's own expiry of snapshots that are older would take from branches."""

    @abstractmethod
    def unreadable_after(self, snapshots: Collection[int], older_than: datetime) -> set[int]:
        """Return which of these snapshots of main can't be read any more after that expiry, or can't be now."""

    @abstractmethod
    def name_of(self, branch: Branch) -> str:
        """Return the name by which SQL reads and writes the branch."""

    @abstractmethod
    def own_snapshots(self, branch: Branch) -> Sequence[int]:
        """Return the snapshots that a branch has got since it was made, as far as they are there."""

    def table_of(self, branch: Branch) -> FormatBranches | None:  # noqa: ARG002 - for formats that have such
        """Return the table that a branch is in itself; None where it is a part of this one."""
        return None

    def has_changed_columns(self, branch: Branch) -> bool:  # noqa: ARG002 - for formats whose branches have their own
        """Return whether main got other columns since a branch was made, which a move of main would take back."""
        return False

    def create_mirror(self, branch: Branch) -> None:
        """Make a branch of a correction, at its snapshot: no tag of the user's is needed."""
        self.create(branch)

    def delete_mirror(self, branch: Branch) -> None:
        """Remove a branch of a correction."""
        self.delete(branch)

    def empty(self, branch: Branch) -> None:
        """Remove all rows of a branch, without reading them."""
        self.spark.sql(f"DELETE FROM {self.name_of(branch)}")  # noqa: S608 - the user's own

    def reset(self, branch: Branch, snapshot: int) -> None:
        """Let a branch have the rows that it had at a snapshot of its own, in place of what was written to it since."""
        raise BranchError(f"{self.name} can't be corrected: {self.format} can't set {branch.name} back to {snapshot}")


def branches_of(spark: SparkSession, name: str) -> FormatBranches:
    """Return the branches of a table by its name in SQL. A BranchError says why its format has none."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    if not hasattr(spark, "_jvm"):
        raise BranchError("branches need a classic Spark session: one of Spark Connect has no JVM here")
    try:
        loaded = load_table(spark, name, anew=True)
    except PySparkException as e:
        raise BranchError(f"there is no table {name}: {str(e).partition(chr(10))[0]}") from e
    kind = _class_for(loaded.provider)
    if kind is None:
        reason = _REASONS.get(loaded.provider, _NO_VERSIONS)
        raise BranchError(f"{name} can't have branches: {reason}")
    return kind(spark, name, loaded)


def _class_for(provider: str) -> type[FormatBranches] | None:
    found = load_all(GROUP).get(provider)
    if isinstance(found, PluginError):
        raise found
    if found is not None and not (isinstance(found, type) and issubclass(found, FormatBranches)):
        raise PluginError(f"{provider} of {GROUP} is {found!r}, and has to be a class of FormatBranches")
    return found
