"""A table with branches that is kept in this process, in place of a format's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

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


class MemoryBranches(FormatBranches):
    """Main has the snapshots 1 to 5 and the tag eod at 3."""

    format: ClassVar[str] = "memory"

    def __init__(self) -> None:
        self.there: dict[str, Branch] = {}
        self.head = 5
        self.forgotten: list[MainMove] = []
        self.calls: list[str] = []
        self.marks: dict[int, tuple[str, int]] = {}
        super().__init__(Any, "lake.db.t", Any)  # type: ignore[arg-type]

    def look(self) -> None:
        self.calls.append("look")

    @property
    def generation(self) -> str | None:
        return None

    @property
    def location(self) -> str:
        return "file:/lake/t"

    def main_head(self) -> int | None:
        return self.head

    def tagged_snapshot(self, tag: str) -> int:
        if tag != "eod":
            raise BranchError(f"there is no tag {tag}")
        return 3

    def branches(self) -> Sequence[Branch]:
        return list(self.there.values())

    def create(self, branch: Branch) -> None:
        self.there[branch.name] = branch

    def delete(self, branch: Branch) -> None:
        del self.there[branch.name]

    def plan_move(self, branch: Branch) -> MainMove:
        return MainMove(branch, MoveKind.REPLACE, self.head, 7, (5, 4))

    def move_main(self, move: MainMove, mark: str = "") -> MainMove:
        self.marks[self.head] = (mark, 7)
        self.head = 7
        return replace(move, parent=3)

    def unreadable(self, snapshot: int) -> str | None:
        return None if 1 <= snapshot <= 7 else "it never was"

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        if self.head != expected:
            raise MainMovedError.of(self.name, self.head, expected)
        self.marks[self.head] = (mark, to)
        self.head = to
        return MainRollBack(to, expected, to)

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        found = None if previous is None else self.marks.get(previous)
        return None if found is None or found[0] != mark else found[1]

    def own_snapshots(self, branch: Branch) -> Sequence[int]:
        return [7]

    def forget_former_main(self, move: MainMove) -> None:
        self.forgotten.append(move)

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        return [ExpiryRisk(name, 3, f"older than {older_than:%Y}") for name in self.there]

    def unreadable_after(self, snapshots: Collection[int], older_than: datetime) -> set[int]:
        """What is older than the newest, in these years."""
        return {each for each in snapshots if each < self.head and older_than.year > 2020}

    def name_of(self, branch: Branch) -> str:
        return f"{self.name}.branch_{branch.name}"
