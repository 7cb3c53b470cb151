"""The contract of `headwater.branch_formats` on a format that keeps rows in this process: it passes, and formats that
are wrong in one way don't."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

import pytest

from headwater.testing.branches import FormatBranchesContract, TableUnderTest
from headwater.versions.branches import (
    Branch,
    BranchError,
    ExpiryRisk,
    FormatBranches,
    MainMove,
    MainMovedError,
    MainRollBack,
    MoveKind,
)

MAIN = "main"


@dataclass
class Snapshot:
    """The files of a snapshot: each has one row."""

    files: tuple[int, ...]
    parent: int | None
    mark: str = ""


@dataclass
class Lake:
    """One table. Each commit has the next number, whichever branch it is on."""

    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    """Files that an expiry has deleted."""
    counter: int = 0

    def commit(self, line: str, files: Sequence[int], mark: str = "") -> int:
        self.counter += 1
        self.snapshots[self.counter] = Snapshot(tuple(files), self.heads.get(line), mark)
        self.heads[line] = self.counter
        return self.counter

    def line(self, head: int | None) -> list[int]:
        found = list[int]()
        while head in self.snapshots:
            found.append(head)
            head = self.snapshots[head].parent
        return found


class LakeBranches(FormatBranches):
    """A format that does what it has to."""

    format: ClassVar[str] = "lake"
    guards: ClassVar[bool] = True

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        super().__init__(Any, "lake.db.t", Any)  # type: ignore[arg-type]

    def look(self) -> None:
        """It is always as it is now."""

    @property
    def generation(self) -> str | None:
        return "1"

    @property
    def location(self) -> str:
        return "file:/lake/t"

    def main_head(self) -> int | None:
        return self._lake.heads[MAIN]

    def tagged_snapshot(self, tag: str) -> int:
        if tag != "eod":
            raise BranchError(f"there is no tag {tag}")
        return 2

    def branches(self) -> Sequence[Branch]:
        return [replace(each, head=self._lake.heads[each.name]) for each in self._lake.branches.values()]

    def create(self, branch: Branch) -> None:
        assert branch.tagged_snapshot is not None
        self._lake.branches[branch.name], self._lake.heads[branch.name] = branch, branch.tagged_snapshot

    def delete(self, branch: Branch) -> None:
        del self._lake.branches[branch.name], self._lake.heads[branch.name]

    def plan_move(self, branch: Branch) -> MainMove:
        main, line = self.main_head(), self._lake.line(branch.head)
        own = tuple(number for number in self._lake.line(main) if number not in line)
        return MainMove(branch, MoveKind.REPLACE, main, None, own)

    def move_main(self, move: MainMove, mark: str = "") -> MainMove:
        assert move.branch.head is not None
        return replace(move, snapshot=self._give(move.branch.head, move.previous, mark))

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        if problem := self.unreadable(to):
            raise BranchError(f"{self.name} can't go back to {to}: {problem}")
        return MainRollBack(to, expected, self._give(to, expected, mark))

    def _give(self, content: int, expected: int | None, mark: str) -> int:
        if self.guards and self.main_head() != expected:
            raise MainMovedError.of(self.name, self.main_head(), expected)
        return self._lake.commit(MAIN, self._lake.snapshots[content].files, mark)

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        found = self._lake.snapshots.items()
        return next((number for number, each in found if (each.parent, each.mark) == (previous, mark)), None)

    def unreadable(self, snapshot: int) -> str | None:
        return None if snapshot in self._lake.snapshots else "it has expired, or never was"

    def forget_former_main(self, move: MainMove) -> None:
        pass

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        return ()

    def unreadable_after(self, snapshots: Collection[int], older_than: datetime) -> set[int]:
        return set(snapshots) - set(self._lake.heads.values())

    def name_of(self, branch: Branch) -> str:
        return f"{self.name}.{branch.name}"

    def own_snapshots(self, branch: Branch) -> Sequence[int]:
        return [number for number in self._lake.line(self._lake.heads[branch.name]) if number > 2]

    def empty(self, branch: Branch) -> None:
        self._lake.commit(branch.name, ())

    def reset(self, branch: Branch, snapshot: int) -> None:
        self._lake.heads[branch.name] = snapshot


class LakeTable(TableUnderTest):
    """Files that no snapshot has are deleted when the others have expired."""

    tag = "eod"
    kind: ClassVar[type[LakeBranches]] = LakeBranches

    def __init__(self) -> None:
        self.lake = Lake()
        for number in (1, 2, 3):
            self.add(number)

    def open(self) -> FormatBranches:
        return self.kind(self.lake)

    def add(self, number: int, branch: Branch | None = None) -> None:
        line = MAIN if branch is None else branch.name
        head = self.lake.heads.get(line)
        self.lake.commit(line, (*(() if head is None else self.lake.snapshots[head].files), number))

    def overwrite(self, number: int) -> None:
        self.lake.commit(MAIN, (number,))

    def ids(self, branch: Branch | None = None) -> list[int]:
        files = self.lake.snapshots[self.lake.heads[MAIN if branch is None else branch.name]].files
        assert self.lake.gone.isdisjoint(files), "a file is gone"
        return sorted(files)

    def expire(self) -> None:
        for number in set(self.lake.snapshots) - set(self.lake.heads.values()):
            self.lake.gone |= self._unneeded(number)
            del self.lake.snapshots[number]

    def _unneeded(self, number: int) -> set[int]:
        kept = {file for head in self.lake.heads.values() for file in self.lake.snapshots[head].files}
        return set(self.lake.snapshots[number].files) - kept


class TestLake(FormatBranchesContract):
    """A format that keeps the contract."""

    @pytest.fixture
    def table(self) -> TableUnderTest:
        return LakeTable()


class Unguarded(LakeBranches):
    """Commits on whatever there is."""

    guards = False


class UnguardedTable(LakeTable):
    kind = Unguarded


class Unmarked(LakeBranches):
    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        return None


class UnmarkedTable(LakeTable):
    kind = Unmarked


class ForgetfulTable(LakeTable):
    """Its expiry deletes what was removed once, though it came back."""

    def _unneeded(self, number: int) -> set[int]:
        parent = self.lake.snapshots[number].parent
        before = self.lake.snapshots[parent].files if parent in self.lake.snapshots else (1, 2, 3)
        return set(before) - set(self.lake.snapshots[number].files)


@pytest.mark.parametrize(
    ("table", "case", "error"),
    [
        (UnguardedTable, "test_no_commit_of_others_is_lost_by_a_move_or_a_roll_back", "DID NOT RAISE"),
        (UnmarkedTable, "test_main_takes_a_branchs_rows_by_one_commit_that_is_found_by_its_mark", "^"),
        (ForgetfulTable, "test_what_main_got_back_stays_when_former_snapshots_expire", "a file is gone"),
    ],
)
def test_a_format_that_is_wrong_in_one_way_fails_its_case(table: type[LakeTable], case: str, error: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception), match=error):
        getattr(FormatBranchesContract(), case)(table())
