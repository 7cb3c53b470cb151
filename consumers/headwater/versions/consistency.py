"""Compares what tables contain of the tables upstream that they share.

Two tables go together if both contain the same version of each table that they share. What is behind a shared table is
decided by that table's version, so it counts only where one of them reads it in another way too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from headwater.versions.model import Doubt, Frontier, TableContents, Version, VersionKey

_Path = bytes | None
"""The shared table through which another one is contained; None if it is read by a table that isn't shared."""


@dataclass(frozen=True)
class SharedVersions:
    """What each table contains of one that they share."""

    dataset: bytes
    frontiers: Mapping[bytes, tuple[Frontier, ...]]
    """By table. A table that is shared itself has none: it is at its own version."""
    own: Version | None
    """The version of the shared table itself, if it is one of those that are compared."""
    differs: bool

    @property
    def versions(self) -> dict[VersionKey, Version]:
        found = {each.newest.key: each.newest for one in self.frontiers.values() for each in one}
        if self.own is not None:
            found[self.own.key] = self.own
        return found

    @property
    def is_unknown(self) -> bool:
        """Whether equality can't be seen: it has no versions, or some changes of it are missing."""
        return not all(each.is_known for each in self.versions.values()) or any(
            each.has_hole for one in self.frontiers.values() for each in one
        )


@dataclass(frozen=True)
class VersionComparison:
    """How tables at certain versions go together."""

    shared: tuple[SharedVersions, ...]
    """The nearest tables that at least two of them share."""
    doubts: tuple[Doubt, ...]

    @property
    def differences(self) -> tuple[SharedVersions, ...]:
        return tuple(each for each in self.shared if each.differs)

    @property
    def is_consistent(self) -> bool | None:
        """Whether they go together; None if that isn't known."""
        if any(each.differs and not each.is_unknown for each in self.shared):
            return False
        if self.doubts or any(each.is_unknown for each in self.shared):
            return None
        return True


def compare(states: Sequence[TableContents]) -> VersionComparison:
    """Compare what several tables contain."""
    shared = shared_by(states)
    private, near = _compare_pairs(states)
    rows = []
    for dataset in sorted(shared):
        row = _compare_one(dataset, states, shared, near)
        if row is not None:
            rows.append(row)
    doubts = {doubt for each in states for doubt in each.contents.doubts if doubt.dataset in private[each.dataset]}
    return VersionComparison(tuple(rows), tuple(sorted(doubts, key=_order)))


def shared_by(states: Sequence[TableContents]) -> set[bytes]:
    """Return the tables of which at least two of these contain something, or are one."""
    seen: set[bytes] = set()
    shared: set[bytes] = set()
    for each in states:
        contained = _contained_in(each)
        shared |= seen & contained
        seen |= contained
    return shared


def _contained_in(state: TableContents) -> set[bytes]:
    return state.contents.ancestors | {state.dataset}


def _compare_pairs(states: Sequence[TableContents]) -> tuple[dict[bytes, set[bytes]], set[bytes]]:
    """Return the private readers of each table beside any other one, and the shared tables that one of them reads. A
    third table that shares more with one of two must not hide how these differ."""
    private: dict[bytes, set[bytes]] = {each.dataset: set() for each in states}
    near: set[bytes] = set()
    contained = [_contained_in(each) for each in states]
    for (one, in_one), (other, in_other) in combinations(zip(states, contained, strict=True), 2):
        shared = in_one & in_other
        for each in (one, other):
            readers = _private_readers(each, shared)
            private[each.dataset] |= readers
            near |= {source for reader, source in each.contents.frontiers if reader in readers and source in shared}
    return private, near


def _private_readers(state: TableContents, shared: Collection[bytes]) -> set[bytes]:
    """Return the tables upstream, and the table itself, up to where the shared ones begin."""
    if state.dataset in shared:
        return set()
    sources: dict[bytes, set[bytes]] = {}
    for reader, source in state.contents.frontiers:
        sources.setdefault(reader, set()).add(source)
    found, waiting = {state.dataset}, [state.dataset]
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in shared and source not in found:
                found.add(source)
                waiting.append(source)
    return found


def _compare_one(
    dataset: bytes,
    states: Sequence[TableContents],
    shared: Collection[bytes],
    near: Collection[bytes],
) -> SharedVersions | None:
    """Compare one shared table; None if it is contained through other shared ones only, which decide it."""
    own = next((each.version for each in states if each.dataset == dataset), None)
    readers = {
        each.dataset: found
        for each in states
        if each.dataset != dataset and (found := each.contents.readers_of(dataset))
    }
    if own is None and dataset not in near:
        return None
    paths = [_paths(found, shared) for found in readers.values()]
    if own is not None:
        paths.append({None: {own.key}})
    differs = not _are_one(paths) and not _are_alike(paths)
    frontiers = {table: tuple(found.values()) for table, found in readers.items()}
    return SharedVersions(dataset, frontiers, own, differs)


def _paths(readers: Mapping[bytes, Frontier], shared: Collection[bytes]) -> dict[_Path, set[VersionKey]]:
    found: dict[_Path, set[VersionKey]] = {}
    for reader, frontier in readers.items():
        found.setdefault(reader if reader in shared else None, set()).add(frontier.newest.key)
    return found


def _are_one(paths: Sequence[Mapping[_Path, set[VersionKey]]]) -> bool:
    return len(set().union(*(keys for each in paths for keys in each.values()))) <= 1


def _are_alike(paths: Sequence[Mapping[_Path, set[VersionKey]]]) -> bool:
    """Return whether all contain the same mixture: by the same shared tables, and one version beside them."""
    return all(each == paths[0] for each in paths[1:]) and len(paths[0].get(None, ())) <= 1


def _order(doubt: Doubt) -> tuple[str, bytes, int, str]:
    return (doubt.reason.value, doubt.dataset, doubt.snapshot or 0, doubt.detail)
