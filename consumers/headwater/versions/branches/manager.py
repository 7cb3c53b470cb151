"""The branches of a table: made from tags of main, written and read like tables, merged, and put in main's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from headwater.events.envelope import Event
from headwater.versions.branches.format_branches import FormatBranches, branches_of
from headwater.versions.branches.model import (
    Branch,
    BranchError,
    ExpiryRisk,
    MainMove,
    MainMovedError,
    MainRollBack,
    NeededSnapshot,
    check_branch_name,
)
from headwater.versions.branches.reporting import BranchEvents, Report, driver_report, store_report
from headwater.versions.table_parts import MAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lineage.store import Store


class BranchManager:
    """The branches of one table.

        branches = BranchManager(spark, "lake.ods.orders")
        branches.create("fix", tag="eod")
        spark.sql(f"DELETE FROM {branches.name_of('fix')} WHERE price < 0")
        branches.merge("fix")

    What is done is reported like any statement where headwater is installed in the driver; elsewhere to the store, if
    one is given.
    """

    def __init__(
        self, spark: SparkSession, table: str, *, store: Store | None = None, report: Report | None = None
    ) -> None:
        self._formats: Final[FormatBranches] = branches_of(spark, table)
        self._report: Final = driver_report(spark) or report or (None if store is None else store_report(store))
        self.table: Final = table

    @property
    def main(self) -> str:
        """The name of the main branch: the one that the table's name means."""
        return MAIN

    @property
    def is_reported(self) -> bool:
        """Whether anybody is told of what is done."""
        return self._report is not None

    def list(self) -> tuple[Branch, ...]:
        """Return all branches but main."""
        self._formats.look()
        return tuple(self._formats.branches())

    def name_of(self, name: str) -> str:
        """Return the name by which SQL reads and writes a branch."""
        return self._formats.name_of(self._branch(name))

    def create(self, name: str, tag: str, *, dry_run: bool = False) -> Branch:
        """Make a branch from a tag of main. With `dry_run` it is only looked whether that can be done."""
        check_branch_name(name)
        there = next((branch for branch in self.list() if branch.name.lower() == name.lower()), None)
        if there is not None:
            raise BranchError(
                f"{self.table} has a branch {there.name!r} already: delete it first, or take another name"
            )
        snapshot = self._formats.tagged_snapshot(tag)
        branch = Branch(name, tag, snapshot, datetime.now(timezone.utc).replace(microsecond=0), snapshot)
        if dry_run:
            return branch
        self._formats.create(branch)
        self._tell(lambda events: [events.created(branch)])
        return self._branch(name)

    def delete(self, name: str, *, dry_run: bool = False) -> Branch:
        """Remove a branch. Main keeps what was merged into it."""
        branch = self._branch(name)
        if not dry_run:
            self._formats.delete(branch)
            self._tell(lambda events: [events.dropped(branch)])
        return branch

    def merge(self, name: str, *, main: int | None = None, dry_run: bool = False) -> MainMove:
        """Let main have the rows of a branch in place of what it got since the branch's tag. The branch stays as it is,
        and independent. `main` is the snapshot that main has to be at, unless it is the one it is at now."""
        return self._move(name, main, dry_run=dry_run, is_replaced=False)

    def replace_main(self, name: str, *, main: int | None = None, dry_run: bool = False) -> MainMove:
        """Do the same, and remove what only main had before, as far as the table's format can. Whoever reads or writes
        the branch goes on doing so."""
        return self._move(name, main, dry_run=dry_run, is_replaced=True)

    def roll_back(self, to: int, *, main: int | None = None, dry_run: bool = False) -> MainRollBack:
        """Let main have the rows of one of its snapshots. `main` is the snapshot that main has to be at, unless it is
        the one it is at now. A MainMovedError says where main is, and then nothing was done."""
        self._formats.look()
        now = self._formats.main_head()
        expected = now if main is None else main
        if now != expected:
            raise MainMovedError.of(self.table, now, expected)
        if dry_run:
            return MainRollBack(to, expected, to)
        done = self._formats.roll_back(to, expected)
        self._tell(lambda events: events.rolled_back(done))
        return done

    def check_expiry(self, older_than: datetime, needed: Iterable[NeededSnapshot] = ()) -> tuple[ExpiryRisk, ...]:
        """Return what would be lost for branches if snapshots were expired that are older than a time, and which of
        main's would be that somebody needs, as `versions.needed_snapshots` says it."""
        self._formats.look()
        wanted = tuple(needed)
        lost = self._formats.unreadable_after({each.snapshot for each in wanted}, older_than) if wanted else set[int]()
        of_main = [ExpiryRisk(MAIN, each.snapshot, each.consequence) for each in wanted if each.snapshot in lost]
        return (*self._formats.expiry_risks(older_than), *of_main)

    def _branch(self, name: str) -> Branch:
        known = {branch.name: branch for branch in self.list()}
        if name not in known:
            words = f"its branches are {', '.join(sorted(known))}" if known else "it has none but main"
            raise BranchError(f"{self.table} has no branch {name!r}: {words}")
        return known[name]

    def _move(self, name: str, main: int | None, *, dry_run: bool, is_replaced: bool) -> MainMove:
        branch = self._branch(name)
        planned = self._formats.plan_move(branch)
        if main is not None and planned.previous != main:
            raise MainMovedError(
                f"main of {self.table} is at {planned.previous}, and not at {main}: look at what has come, and name "
                f"{planned.previous} if it may go"
            )
        if dry_run:
            return planned
        moved = self._formats.move_main(planned)
        self._tell(lambda events: events.moved(moved, is_replaced=is_replaced))
        if is_replaced:
            self._formats.forget_former_main(moved)
        return replace(moved, branch=branch)

    def _tell(self, make: Callable[[BranchEvents], Iterable[Event]]) -> None:
        if self._report is None:
            return
        self._formats.look()
        for event in make(BranchEvents(self._formats)):
            self._report(event)
