"""Adds up how much of one table is in another: which read reached farthest, and whether anything is missing before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from headwater.versions.model import NOTHING_CONTAINED, Contents, Doubt, Frontier, Pair, Version

SKEW_MICROS: Final = 300_000_000
"""How much the clocks of two writers may differ, in microseconds."""

AncestorTest = Callable[[Version, Version], bool | None]


class FrontierMerger:
    """Adds up contents. It is told how to see whether one version is an ancestor of another."""

    def __init__(self, precedes: AncestorTest) -> None:
        self._precedes = precedes

    def union(self, parts: Iterable[Contents]) -> Contents:
        """Return what all parts contain together."""
        found = [each for each in parts if each.frontiers or each.doubts]
        if len(found) < 2:
            return found[0] if found else NOTHING_CONTAINED
        frontiers = dict(found[0].frontiers)
        for each in found[1:]:
            self.add(frontiers, each.frontiers.items())
        return Contents(frontiers, frozenset[Doubt]().union(*(each.doubts for each in found)))

    def add(self, frontiers: dict[Pair, Frontier], more: Iterable[tuple[Pair, Frontier]]) -> None:
        """Add how far more reads reach."""
        for pair, frontier in more:
            known = frontiers.get(pair)
            frontiers[pair] = frontier if known is None else self.join(known, frontier)

    def join(self, one: Frontier, other: Frontier) -> Frontier:
        """Return how far two reads of a table reach together."""
        if one == other:
            return one
        older, newer = (one, other) if self.is_older(one, other) else (other, one)
        if newer.since is None:
            return newer._replace(has_hole=True) if not newer.has_hole and _came_again(older, newer) else newer
        since = (
            None
            if older.since is None
            else min(older.since, newer.since)
            if _is_numbered(older, newer)
            else (older.since)
        )
        has_hole = older.has_hole or newer.has_hole or self._is_apart(older, newer) or _came_again(older, newer)
        return newer._replace(since=since, has_hole=has_hole)

    def is_older(self, one: Frontier, other: Frontier) -> bool:
        """Return whether the first doesn't reach as far as the second."""
        if _is_numbered(one, other) and one.newest.snapshot != other.newest.snapshot:
            return (one.newest.snapshot or 0) < (other.newest.snapshot or 0)
        times = one.newest.made_at, other.newest.made_at
        if times[0] is None or times[1] is None or one.newest.key == other.newest.key:
            return one.read_at <= other.read_at
        if abs(times[0] - times[1]) <= SKEW_MICROS:
            if self._precedes(one.newest, other.newest):
                return True
            if self._precedes(other.newest, one.newest):
                return False
        return times[0] <= times[1]

    def _is_apart(self, older: Frontier, newer: Frontier) -> bool:
        """Return whether changes between the two were not read, as far as that can be seen."""
        last = older.until
        if newer.since is None or last is None or newer.since == last:
            return False
        if newer.newest.key == older.newest.key:
            return False
        if _is_numbered(older, newer):
            return newer.since > last
        return newer.since != older.since


def own_frontier(version: Version) -> Frontier:
    """Return how much of a table is in itself."""
    return Frontier(version, version.snapshot, None, has_hole=False, read_at=version.made_at or 0, job=None)


def _is_numbered(one: Frontier, other: Frontier) -> bool:
    """Return whether the numbers of two versions say which came first."""
    first, second = one.newest, other.newest
    return (
        first.is_ordered
        and second.is_ordered
        and first.snapshot is not None
        and second.snapshot is not None
        and first.generation == second.generation
        and first.branch == second.branch
    )


def _came_again(older: Frontier, newer: Frontier) -> bool:
    """Return whether a number stands for two versions: the table was rolled back, and the older one isn't in it any
    more."""
    first, second = older.newest, newer.newest
    return first.snapshot is not None and first.snapshot == second.snapshot and first.key[:2] != second.key[:2]
