"""A correction's tables that are kept in this process: rows are numbers, and each write is a snapshot.

It does what a format does, mirrors that are found again and marks that a write carries among it, so that a process
may die between any two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from headwater.versions.correction import PlannedTable
from headwater.versions.correction.execution.tables import CorrectionError, CorrectionTables, LaterCommits, Mirror


class KilledError(BaseException):
    """The process dies here."""


@dataclass
class KillPoints:
    """Counts the points at which a process may die, and dies at one of them."""

    at: int | None = None
    count: int = 0

    def pass_one(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise KilledError


@dataclass
class MemoryTable:
    """Snapshots by number, each with all of its rows and what it did."""

    states: dict[int, tuple[int, ...]] = field(default_factory=dict)
    changes: set[int] = field(default_factory=set)
    """Snapshots that changed rows in place of adding some."""
    marks: set[str] = field(default_factory=set)

    @property
    def head(self) -> int:
        return max(self.states)

    @property
    def rows(self) -> tuple[int, ...]:
        return self.states[self.head]

    def add(self, *rows: int) -> None:
        self.states[self.head + 1] = (*self.rows, *rows)

    def replace(self, *rows: int) -> None:
        self.states[self.head + 1] = rows
        self.changes.add(self.head)


class MemoryTables(CorrectionTables):
    """Tables and mirrors by name."""

    def __init__(self, tables: dict[str, MemoryTable]) -> None:
        self.tables = tables
        self.mirrors: dict[str, MemoryTable] = {}
        self.kills = KillPoints()
        self.opened = 0

    @contextmanager
    def opening(self) -> Generator[MemoryTables]:
        self.opened += 1
        yield self

    def make_mirror(self, planned: PlannedTable, branch: str) -> Mirror:
        self.kills.pass_one()
        table, name = self.tables[planned.table], f"{planned.table}.branch_{branch}"
        begins = table.head if planned.starts_at is None else planned.starts_at
        there = self.mirrors.setdefault(name, MemoryTable({begins: table.states[begins]}))
        self.kills.pass_one()
        if planned.starts_at is None and there.rows:
            there.replace()
        self.kills.pass_one()
        return Mirror(
            table=planned.table,
            branch=branch,
            name=name,
            begins_at=there.head,
            begins_at_in_table=begins,
            expected=begins,
        )

    def remove_mirror(self, table: str, branch: str) -> None:
        self.kills.pass_one()
        self.mirrors.pop(f"{table}.branch_{branch}", None)
        self.kills.pass_one()

    def head_of_table(self, table: str) -> int | None:
        return self.tables[table].head

    def head_of_mirror(self, mirror: Mirror) -> int:
        return self.mirrors[mirror.name].head

    def later_commits(self, table: str, since: int) -> LaterCommits:
        found = self.tables[table]
        later = [number for number in found.states if number > since]
        changes = [number for number in later if number in found.changes]
        return LaterCommits(
            newest=found.head,
            snapshots=tuple(later),
            adds=len(later) > len(changes),
            obstacles=tuple(f"{table}@{number} (overwrite)" for number in changes),
        )

    def take_over(self, mirror: Mirror, since: int, until: int, mark: str) -> int | None:
        self.kills.pass_one()
        target, table = self.mirrors[mirror.name], self.tables[mirror.table]
        if mark not in target.marks:
            target.add(*table.states[until][len(table.states[since]) :])
            target.marks.add(mark)
        self.kills.pass_one()
        return target.head


@dataclass
class MemoryRunner:
    """Runs functions in place of scripts: each gets the mirrors by table, and may die before, within and after."""

    tables: MemoryTables
    scripts: dict[str, Callable[[dict[str, MemoryTable]], object]]
    ran: list[str] = field(default_factory=list)

    def run(
        self,
        correction: str,
        job: str,
        command: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        *,
        checkpoints: Mapping[str, str],
        should_continue: Callable[[], bool] = lambda: True,
    ) -> None:
        assert not checkpoints  # these jobs are no streams
        assert should_continue()
        self.tables.kills.pass_one()
        there = {mirror.table: self.tables.mirrors[mirror.name] for mirror in mirrors}
        for mirror in mirrors:
            if mirror.table in resets:
                table = there[mirror.table]
                table.states[table.head + 1] = table.states[mirror.begins_at]
        self.tables.kills.pass_one()
        self.ran.append(command)
        if command not in self.scripts:
            raise CorrectionError(f"the job {job} ended with exit code 1 on the mirrors of {correction}")
        self.scripts[command](there)
        self.tables.kills.pass_one()
