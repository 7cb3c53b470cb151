"""Finds the newest versions of several tables that belong together.

What a table contains grows along its history. So whoever contains more of a shared table than another one steps back,
until all are equal: that finds the newest set. Where a table was rolled back, its history doesn't grow like that; then
all sets within the look-back are tried, newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count, pairwise
from typing import Final

from headwater.errors import TerminalError
from headwater.versions.consistency import SharedVersions, VersionComparison, compare, shared_by
from headwater.versions.frontiers import FrontierMerger, own_frontier
from headwater.versions.model import Frontier, TableContents

_MOST_SETS: Final = 20_000
"""How many sets are tried one by one."""


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

    def __init__(self, tables: Sequence[Candidates], merger: FrontierMerger) -> None:
        self._tables = tables
        self._merger = merger
        self._left = _MOST_SETS
        self._newest: Sequence[TableContents] = ()

    def run(self) -> Alignment | Miss:
        newest = self._states([0] * len(self._tables))
        if newest is None:
            raise NoAlignmentError("one of these tables has no version in that time")
        self._newest = newest
        found = self._descend()
        if found is None and not all(self._grows(each) for each in self._tables):
            found = self._try_all((), ())
        return found or Miss(newest, compare(newest), self._left <= 0)

    def _states(self, steps: Sequence[int]) -> tuple[TableContents, ...] | None:
        found = [each.at(step) for each, step in zip(self._tables, steps, strict=True)]
        states = tuple(each for each in found if each is not None)
        return states if len(states) == len(found) else None

    def _descend(self) -> Alignment | None:
        """Step back with those that contain more than others."""
        steps = [0] * len(self._tables)
        while (states := self._states(steps)) is not None:
            comparison = compare(states)
            ahead = (
                self._with_beginnings(states) if comparison.is_consistent else self._tables_ahead(states, comparison)
            )
            if comparison.is_consistent and not ahead:
                return Alignment(states, tuple(steps), comparison)
            if not ahead:
                return None
            for index in ahead:
                steps[index] += 1
        return None

    def _with_beginnings(self, states: Sequence[TableContents]) -> set[int]:
        """Return the tables that contain something of which another one contains nothing yet, and later does. All of
        them do so where nothing at all is shared yet."""
        found: set[int] = set()
        is_shared = is_shared_later = False
        for dataset in shared_by(self._newest):
            has = {index for index, each in enumerate(states) if _contains(each, dataset)}
            later = {index for index, each in enumerate(self._newest) if _contains(each, dataset)}
            is_shared |= len(has) > 1
            is_shared_later = True
            found |= has if later - has else set()
        return set(range(len(states))) if is_shared_later and not is_shared else found

    def _tables_ahead(self, states: Sequence[TableContents], comparison: VersionComparison) -> set[int]:
        """Return the tables that can't be in any set with these versions of the others: they reach farther than another
        one, or what they contain isn't known."""
        found: set[int] = set()
        for row in comparison.shared:
            if row.differs:
                found |= self._reaching_farther(states, row)
            elif row.is_unknown:
                found |= {index for index, each in enumerate(states) if any(one.has_hole for one in _reach(each, row))}
        doubtful = {each.dataset for each in comparison.doubts}
        return found | {
            index for index, each in enumerate(states) if doubtful & {one.dataset for one in each.contents.doubts}
        }

    def _reaching_farther(self, states: Sequence[TableContents], row: SharedVersions) -> set[int]:
        reaches = [_reach(each, row) for each in states]
        least = reduce(self._less, (each for found in reaches for each in found))
        return {index for index, found in enumerate(reaches) if any(self._is_beyond(each, least) for each in found)}

    def _less(self, one: Frontier, other: Frontier) -> Frontier:
        return other if self._is_beyond(one, other) else one

    def _is_beyond(self, one: Frontier, other: Frontier) -> bool:
        return one.newest.key != other.newest.key and not self._merger.is_older(one, other)

    def _grows(self, table: Candidates) -> bool:
        """Return whether each version that was read contains at least what the one before it does."""
        states = table.states
        return all(
            not self._is_beyond(frontier, newer.contents.frontiers[pair])
            for newer, older in pairwise(states)
            for pair, frontier in older.contents.frontiers.items()
            if pair in newer.contents.frontiers
        )

    def _try_all(self, states: tuple[TableContents, ...], steps: tuple[int, ...]) -> Alignment | None:
        """Try all sets, newest first: add a version of the next table that goes with those that were chosen."""
        if len(states) == len(self._tables):
            comparison = compare(states)
            belong_together = comparison.is_consistent and not self._with_beginnings(states)
            return Alignment(states, steps, comparison) if belong_together else None
        for step in count():
            state = self._tables[len(states)].at(step)
            if state is None or self._left <= 0:
                return None
            self._left -= 1
            if not states or not compare((*states, state)).differences:
                found = self._try_all((*states, state), (*steps, step))
                if found is not None:
                    return found
        return None


def _contains(state: TableContents, dataset: bytes) -> bool:
    return dataset == state.dataset or dataset in state.contents.ancestors


def _reach(state: TableContents, row: SharedVersions) -> Sequence[Frontier]:
    """Return how much of a shared table is in a table, which may be that one itself."""
    if state.dataset == row.dataset:
        return [own_frontier(state.version)]
    return row.frontiers.get(state.dataset, ())
