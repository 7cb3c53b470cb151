"""Tables that go back, kept in this process, in place of those of a Spark session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headwater.errors import ConfigurationError
from headwater.versions.branches.model import MainMovedError, MainRollBack
from headwater.versions.step_journal import JournalStep

ORDERS: Final = "lake.db.orders"
DETAILS: Final = "lake.db.details"
REVENUE: Final = "lake.db.revenue"


class KilledError(BaseException):
    """As if the process ended there."""


@dataclass
class MemoryTable:
    """A table whose commits are numbered. A roll-back is its next commit."""

    heads: list[int]
    """The rows of each snapshot, by the snapshot that has them."""
    generation: str | None = "1"
    marks: dict[tuple[int | None, str], int] = field(default_factory=dict)
    dies: str = ""
    """Where the process ends: before or after the commit."""

    def main_head(self) -> int | None:
        return len(self.heads)

    @property
    def rows(self) -> int:
        return self.heads[-1]

    def commit(self) -> None:
        self.heads.append(len(self.heads) + 1)

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        if self.main_head() != expected:
            raise MainMovedError.of("t", self.main_head(), expected)
        self._die("before")
        self.heads.append(self.heads[to - 1])
        self.marks[expected, mark] = len(self.heads)
        self._die("after")
        return MainRollBack(to, expected, len(self.heads), expected)

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        return self.marks.get((previous, mark))

    def _die(self, where: str) -> None:
        if self.dies == where:
            self.dies = ""
            raise KilledError


class MemoryTables:
    """The warehouse of the stories: orders has 5 snapshots, details 3, revenue 2."""

    def __init__(self) -> None:
        self.by_name = {
            ORDERS: MemoryTable([1, 2, 3, 4, 5]),
            DETAILS: MemoryTable([1, 2, 3]),
            REVENUE: MemoryTable([1, 2]),
        }
        self.expired: set[tuple[str, int]] = set()
        self.calls: list[str] = []
        self.reported: list[tuple[str, int, int]] = []

    def open(self, name: str) -> Any:
        if name not in self.by_name:
            raise ConfigurationError(f"there is no table {name}")
        return self.by_name[name]

    def problem(self, name: str, snapshot: int) -> str | None:
        return "it has expired" if (name, snapshot) in self.expired else None

    def report(self, table: Any, moved: MainRollBack, step: JournalStep) -> None:
        assert table is self.by_name[step.subject]
        self.reported.append((step.subject, moved.to, moved.snapshot))

    @property
    def rows(self) -> list[int]:
        return [table.rows for table in self.by_name.values()]
