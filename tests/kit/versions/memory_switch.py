"""Tables and mirrors of a switch that are kept in this process: rows are words, and each commit is a snapshot.

A process may die before and after each commit and each write of the journal.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwater.versions.branches import MainMovedError
from headwater.versions.correction.journal import Correction, CorrectionJournal
from headwater.versions.correction.switching import SwitchTables, TableSwitch
from headwater.versions.cuts import TableSnapshot
from tests.kit.versions.memory_correction import KillPoints


@dataclass
class SwitchedTable:
    """Each snapshot with its rows and the mark of its commit."""

    snapshots: list[tuple[str, str]] = field(default_factory=list)

    @property
    def head(self) -> int:
        return len(self.snapshots)

    @property
    def rows(self) -> str:
        return self.snapshots[-1][0]

    def commit(self, rows: str, mark: str = "") -> int:
        self.snapshots.append((rows, mark))
        return self.head


class MemorySwitchTables(SwitchTables):
    """Tables by name, each with the rows of its mirror."""

    def __init__(self, names: list[str]) -> None:
        self.tables = {name: SwitchedTable([("old", "")]) for name in names}
        self.mirrors: dict[str, str] = dict.fromkeys(names, "new")
        self.reports: list[tuple[str, Mapping[str, int]]] = []
        self.ends: list[dict[str, tuple[int | None, int | None]]] = []
        self.kills = KillPoints()

    @contextmanager
    def opening(self) -> Generator[MemorySwitchTables]:
        yield self

    def rows(self) -> set[str]:
        return {table.rows for table in self.tables.values()}

    def head_of_table(self, table: str) -> int:
        return self.tables[table].head

    def head_of_mirror(self, table: str, branch: str) -> int | None:
        return 9 if table in self.mirrors else None

    def problem(self, table: str, branch: str) -> None:
        pass

    def switch(self, switch: TableSwitch) -> int:
        return self._commit(switch.table, switch.expected, self.mirrors[switch.table], switch.mark)

    def find(self, table: str, previous: int | None, mark: str) -> int | None:
        there = self.tables[table].snapshots[previous or 0 :]
        return (previous or 0) + 1 if there and there[0][1] == mark else None

    def go_back(self, table: str, to: int, expected: int, mark: str) -> int:
        return self._commit(table, expected, self.tables[table].snapshots[to - 1][0], mark)

    def report(self, switch: TableSwitch, switched: Mapping[str, int]) -> None:
        self.kills.pass_one()
        self.reports.append((switch.table, dict(switched)))

    def report_end(self, found: Correction, switched: Sequence[TableSwitch]) -> None:
        self.kills.pass_one()
        self.ends.append({each.table: (each.expected, each.snapshot) for each in switched})
        self.kills.pass_one()

    def report_return(self, table: str, to: int, expected: int, snapshot: int) -> None:
        self.reports.append((table, {"to": to, "expected": expected, "snapshot": snapshot}))

    def remove_mirror(self, table: str, branch: str) -> None:
        self.kills.pass_one()
        self.mirrors.pop(table, None)
        self.kills.pass_one()

    def label_of(self, name: str) -> str:
        return name

    def position(self, name: str, snapshot: int) -> TableSnapshot:
        self.kills.pass_one()
        return TableSnapshot(snapshot, "g")

    def _commit(self, table: str, expected: int | None, rows: str, mark: str) -> int:
        self.kills.pass_one()
        if self.tables[table].head != expected:
            raise MainMovedError.of(table, self.tables[table].head, expected)
        number = self.tables[table].commit(rows, mark)
        self.kills.pass_one()
        return number

    def die_at_writes_of_the_journal(self, patch: pytest.MonkeyPatch) -> None:
        """Be killed before and after each of them, too."""
        for name in ("take_over", "move", "add", "move_step"):
            write = getattr(CorrectionJournal, name)

            def write_or_die(*given: Any, write: Any = write) -> Any:
                self.kills.pass_one()
                found = write(*given)
                self.kills.pass_one()
                return found

            patch.setattr(CorrectionJournal, name, write_or_die)
