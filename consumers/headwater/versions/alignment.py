"""Finds the newest versions of several tables that belong together.

The versions of each table are looked at newest first, a few of all tables, then more. Versions that belong together
contain the same states of what they share: so for the versions that were chosen of some tables, those of the next one
that can go with them are looked up by what they contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Final, TypeAlias

from headwater.errors import TerminalError
from headwater.versions.consistency import MadeFrom, VersionComparison, compare, compare_pair, shared_by
from headwater.versions.model import TableContents, VersionKey

_MOST_PAIRS: Final = 20_000
"""How many pairs of versions are compared."""
_FEW: Final = 4
_GROWTH: Final = 4
_Signature: TypeAlias = tuple[frozenset[VersionKey] | None, ...]
"""What a version contains of some tables; None if nothing."""


class NoAlignmentError(TerminalError):
    """No versions of these tables belong together, as far as was looked back."""


class Candidates:
    """The versions of one table, newest first. They are read as far as they are needed."""

    def __init__(self, dataset: bytes, found: Iterator[TableContents]) -> None:
        self.dataset = dataset
        self._found = found
        self._states: list[TableContents] = []

    def at(self, index: int) -> TableContents | None:
        """Return the version so many steps back; None if there is none within the look-back."""
        while len(self._states) <= index:
            following = next(self._found, None)
            if following is None:
                return None
            self._states.append(following)
        return self._states[index]

    @property
    def states(self) -> Sequence[TableContents]:
        """Those that were read."""
        return self._states


@dataclass(frozen=True)
class Alignment:
    """Versions that belong together."""

    states: tuple[TableContents, ...]
    steps: tuple[int, ...]
    """How many versions each is behind its newest."""
    comparison: VersionComparison


@dataclass(frozen=True)
class Miss:
    """Why no versions belong together: how the newest ones differ."""

    states: tuple[TableContents, ...]
    comparison: VersionComparison
    sets_left: bool
    """Whether there were more sets than could be tried."""


class AlignmentSearch:
    """Searches the versions of several tables."""

    def __init__(self, tables: Sequence[Candidates], made_from: MadeFrom) -> None:
        self._tables = tables
        self._made_from = made_from
        self._left = _MOST_PAIRS
        self._compared: dict[tuple[int, int, int, int], bool] = {}

    def run(self) -> Alignment | Miss:
        found = [table.at(0) for table in self._tables]
        newest = tuple(version for version in found if version is not None)
        if len(newest) < len(found):
            raise NoAlignmentError("one of these tables has no version in that time")
        plan = _Plan(newest, self._made_from)
        size = _FEW
        while True:
            steps = self._choose(plan, _Versions(self._tables, plan, size), ())
            if steps is not None:
                states = tuple(self._at(*placed) for placed in enumerate(steps))
                return Alignment(states, steps, compare(states, self._made_from))
            if self._left <= 0 or not any(table.at(size) for table in self._tables):
                return Miss(newest, compare(newest, self._made_from), self._left <= 0)
            size *= _GROWTH

    def _at(self, table: int, step: int) -> TableContents:
        found = self._tables[table].at(step)
        assert found is not None  # noqa: S101 - it was found before
        return found

    def _choose(self, plan: _Plan, versions: _Versions, steps: tuple[int, ...]) -> tuple[int, ...] | None:
        """Add a version of the next table that goes with those that were chosen, the newest first."""
        table = len(steps)
        if table == len(self._tables):
            states = [self._at(*placed) for placed in enumerate(steps)]
            return steps if plan.has_begun(states) else None
        chosen = {place: self._at(place, step) for place, step in enumerate(steps)}
        for step in versions.that_fit(table, chosen):
            if all(self._go_together((other, other_step), (table, step)) for other, other_step in enumerate(steps)):
                found = self._choose(plan, versions, (*steps, step))
                if found is not None:
                    return found
            if self._left <= 0:
                return None
        return None

    def _go_together(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        known = self._compared.get(one + other)
        if known is None:
            self._left -= 1
            found = compare_pair(self._at(*one), self._at(*other), self._made_from)
            known = self._compared[one + other] = found.is_consistent
        return known


class _Plan:
    """What versions have to have in common: what the newest ones share."""

    def __init__(self, newest: Sequence[TableContents], made_from: MadeFrom) -> None:
        self._shared = shared_by(newest)
        compared = (compare_pair(one, other, made_from) for one, other in combinations(newest, 2))
        self._near = {dataset for table in compared for dataset in table.same}
        self._holders = {
            dataset: {place for place, state in enumerate(newest) if dataset in state.versions}
            for dataset in self._shared
        }

    def common(self, table: int) -> list[bytes]:
        """Return the shared tables that a table has in common with those before it."""
        return sorted(
            dataset for dataset, holders in self._holders.items() if table in holders and min(holders) < table
        )

    def first_holder(self, dataset: bytes) -> int:
        return min(self._holders[dataset])

    def content(self, state: TableContents, dataset: bytes) -> frozenset[VersionKey] | None:
        """Return what has to be equal. Of what is behind the nearest shared tables, only whether there is any."""
        found = state.versions.get(dataset)
        return found if found is None or dataset in self._near else frozenset()

    def has_begun(self, states: Sequence[TableContents]) -> bool:
        """Return whether versions share anything, if the newest ones do: an empty table goes with nothing."""
        return not self._shared or bool(self._shared & shared_by(states))


class _Versions:
    """As many versions of each table, found by what they contain."""

    def __init__(self, tables: Sequence[Candidates], plan: _Plan, size: int) -> None:
        self._tables = tables
        self._plan = plan
        self._size = size
        self._by_content: dict[int, Mapping[_Signature, Sequence[int]]] = {}

    def that_fit(self, table: int, chosen: Mapping[int, TableContents]) -> Sequence[int]:
        """Return the versions of a table that can go with those that were chosen of the tables before it."""
        common = self._plan.common(table)
        if table not in self._by_content:
            self._by_content[table] = self._sorted(table, common)
        wanted = tuple(self._plan.content(chosen[self._plan.first_holder(dataset)], dataset) for dataset in common)
        return self._by_content[table].get(wanted, ())

    def _sorted(self, table: int, common: Sequence[bytes]) -> dict[_Signature, list[int]]:
        found: dict[_Signature, list[int]] = {}
        for step in count():
            state = self._tables[table].at(step) if step < self._size else None
            if state is None:
                return found
            signature = tuple(self._plan.content(state, dataset) for dataset in common)
            found.setdefault(signature, []).append(step)
        return found
