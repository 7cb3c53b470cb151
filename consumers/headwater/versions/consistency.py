"""Compares what tables contain of the tables upstream that they share.

Two tables go together if both contain the same states of each table that they share. What is behind a shared table is
decided by that table's state, so it counts only where one of them reads it in another way too. A doubt could hide
another state of any table that isn't decided like that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

from headwater.lineage.questions.answers import LimitReason
from headwater.versions.model import Doubt, SourceState, TableContents, Version, VersionKey
from headwater.versions.positions import are_equal_positions, doubts_within, unlike

MadeFrom: TypeAlias = Callable[[bytes, Collection[bytes]], bool]
"""Returns whether a table is known to have been made from any of some tables, by whatever commits."""


@dataclass(frozen=True)
class SharedVersions:
    """What each table contains of one that they share."""

    dataset: bytes
    contained: Mapping[bytes, Sequence[tuple[bytes, SourceState]]]
    """By table its states, with the tables that read them. A table that is shared itself has none: it is at its own
    version."""
    own: Version | None
    """The version of the shared table itself, if it is one of those that are compared."""
    is_same: bool | None
    """Whether all contain the same states; None if that can't be seen."""

    @property
    def versions(self) -> dict[VersionKey, Version]:
        found = {state.version.key: state.version for some in self.contained.values() for _, state in some}
        if self.own is not None:
            found[self.own.key] = self.own
        return found


@dataclass(frozen=True)
class VersionComparison:
    """How tables at certain versions go together."""

    shared: tuple[SharedVersions, ...]
    """The nearest tables that at least two of them share."""
    doubts: tuple[Doubt, ...]

    @property
    def is_consistent(self) -> bool | None:
        """Whether they go together; None if that isn't known."""
        if any(table.is_same is False for table in self.shared):
            return False
        if self.doubts or any(table.is_same is None for table in self.shared):
            return None
        return True


class PairComparison(NamedTuple):
    """How two tables go together."""

    same: Mapping[bytes, bool | None]
    """For each of the nearest tables that they share whether both contain the same states."""
    doubts: Collection[Doubt]

    @property
    def is_consistent(self) -> bool:
        """Whether they are known to go together."""
        return not self.doubts and all(self.same.values())


def compare(states: Sequence[TableContents], made_from: MadeFrom) -> VersionComparison:
    """Compare what several tables contain. They go together if any two of them do: a third table that shares more with
    one of two must not hide how these differ."""
    same: dict[bytes, bool | None] = {}
    doubts: set[Doubt] = set()
    for one, other in combinations(states, 2):
        found = compare_pair(one, other, made_from)
        doubts.update(found.doubts)
        for dataset, is_same in found.same.items():
            same[dataset] = _both(same.get(dataset, True), is_same)
    rows = tuple(_row(dataset, states, same[dataset]) for dataset in sorted(same))
    return VersionComparison(rows, tuple(sorted(doubts, key=_order)))


def compare_pair(one: TableContents, other: TableContents, made_from: MadeFrom) -> PairComparison:
    """Compare what two tables contain."""
    shared = one.versions.keys() & other.versions.keys()
    readers = {side.dataset: _private_readers(side, shared) for side in (one, other)}
    near = {
        source
        for side in (one, other)
        for reader, source in side.contents.all.states
        if reader in readers[side.dataset] and source in shared
    }
    near |= shared & {one.dataset, other.dataset}
    private = readers[one.dataset] | readers[other.dataset]
    doubts = _PairDoubts(one, other, private, near, made_from)
    same = {source: _is_same(source, one, other, doubts) for source in near}
    unseen = doubts_within((one, other), private, {source for source in near if same[source] is None}, near)
    return PairComparison(same, doubts.that_count() | unseen)


def shared_by(states: Sequence[TableContents]) -> set[bytes]:
    """Return the tables of which at least two of these contain something, or are one."""
    seen: set[bytes] = set()
    shared: set[bytes] = set()
    for state in states:
        shared |= seen & state.versions.keys()
        seen |= state.versions.keys()
    return shared


def _private_readers(state: TableContents, shared: Collection[bytes]) -> set[bytes]:
    """Return the tables upstream, and the table itself, up to where the shared ones begin."""
    if state.dataset in shared:
        return set()
    sources: dict[bytes, set[bytes]] = {}
    for reader, source in state.contents.all.states:
        sources.setdefault(reader, set()).add(source)
    found, waiting = {state.dataset}, [state.dataset]
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in shared and source not in found:
                found.add(source)
                waiting.append(source)
    return found


def _is_same(dataset: bytes, one: TableContents, other: TableContents, doubts: _PairDoubts) -> bool | None:
    """Return whether two tables contain the same states of a shared one; None if it isn't known."""
    first, second = one.versions[dataset], other.versions[dataset]
    if first == second:
        is_sure = len(first) == 1 or not (_is_unsure(one, dataset) or _is_unsure(other, dataset))
        is_seen = not _is_vague(one, dataset) and not _is_vague(other, dataset)
        return True if is_sure and is_seen and are_equal_positions(dataset, one, other) else None
    if _is_vague(one, dataset) or _is_vague(other, dataset):
        return None
    more, less = unlike(dataset, one, other), unlike(dataset, other, one)
    if first.isdisjoint(second) and len(more) == len(first) and len(less) == len(second):
        return False
    for has, lacks, states in ((one, other, more), (other, one, less)):
        if states and not _is_unsure(has, dataset) and not doubts.can_hide(dataset, lacks):
            return False
    return None


def _is_unsure(state: TableContents, dataset: bytes) -> bool:
    return dataset in state.contents.all.unsure


def _is_vague(state: TableContents, dataset: bytes) -> bool:
    """Return whether equality can't be seen."""
    return not state.version.is_known if state.dataset == dataset else dataset in state.contents.all.vague


class _PairDoubts:
    """The doubts about two tables, and what they can hide.

    What is behind a shared table is in both, so a doubt there counts only if it could hide something that is in one of
    them by another path: of the tables up to the nearest shared ones. Those behind don't count, so that nothing of
    them has to be known.
    """

    def __init__(
        self,
        one: TableContents,
        other: TableContents,
        private: Collection[bytes],
        near: Collection[bytes],
        made_from: MadeFrom,
    ) -> None:
        self._one, self._other = one, other
        self._private, self._near = private, near
        self._made_from = made_from
        self._all = one.contents.all.doubts | other.contents.all.doubts

    def that_count(self) -> set[Doubt]:
        """Return those that could hide something that is in one of the tables."""
        if not self._all:
            return set()
        one, other = self._one.versions, self._other.versions
        differing = {source for source in {*self._private, *self._near} if one.get(source) != other.get(source)}
        is_beside = bool(differing - {self._one.dataset, self._other.dataset})
        return {
            doubt
            for doubt in self._all
            if doubt.dataset in self._private
            or (is_beside and self._is_of_version_read(doubt))
            or self._is_made_from(doubt, differing)
        }

    def can_hide(self, dataset: bytes, table: TableContents) -> bool:
        """Return whether one of the tables can have another state of a shared table, too. That table itself has none
        but its own."""
        return table.dataset != dataset and any(
            doubt.dataset in self._private
            or (doubt.dataset != dataset and self._is_of_version_read(doubt))
            or self._is_made_from(doubt, {dataset})
            for doubt in table.contents.all.doubts
        )

    def _is_of_version_read(self, doubt: Doubt) -> bool:
        """Return whether the very version of a shared table that was read has no known writer."""
        return (
            doubt.reason is LimitReason.UNKNOWN_WRITER
            and doubt.dataset in self._near
            and any(
                state.version.writer is None and state.version.snapshot == doubt.snapshot
                for some in (self._one, self._other)
                for _, state in some.contents.all.of(doubt.dataset)
            )
        )

    def _is_made_from(self, doubt: Doubt, datasets: Collection[bytes]) -> bool:
        others = {*datasets} - {doubt.dataset}
        return bool(others) and self._made_from(doubt.dataset, others)


def _row(dataset: bytes, states: Sequence[TableContents], is_same: bool | None) -> SharedVersions:
    own = next((state.version for state in states if state.dataset == dataset), None)
    contained = {
        state.dataset: found
        for state in states
        if state.dataset != dataset and (found := state.contents.all.of(dataset))
    }
    return SharedVersions(dataset, contained, own, is_same)


def _both(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if one is None or other is None else True


def _order(doubt: Doubt) -> tuple[str, bytes, int, str]:
    return (doubt.reason.value, doubt.dataset, doubt.snapshot or 0, doubt.detail)
