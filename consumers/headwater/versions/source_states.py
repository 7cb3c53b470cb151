"""Adds what commits read to what a table contains.

A version that is read as a whole is a state by itself. Changes go on from where the chain that they belong to has got:
both together are one state, the newest that was reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headwater.events.scalars import Format
from headwater.versions.commit_lines import is_restore, keeps_rows
from headwater.versions.commit_reads import CommitReads, OwnRead
from headwater.versions.histories import SKEW_MICROS, VersionHistories
from headwater.versions.model import NOTHING_CONTAINED, Contents, Doubt, SourceState, StateKey, Version

_PAIMON: Final = Format.PAIMON.value


class StateFolder:
    """Adds up states for one question."""

    def __init__(self, histories: VersionHistories) -> None:
        self._histories = histories
        self._applied: dict[tuple[int, bytes, frozenset[Doubt], bool], tuple[Contents, Contents]] = {}
        """What a commit made of contents, with these, so that their id isn't given to others."""

    def forget(self) -> None:
        self._applied.clear()

    def apply(
        self, base: Contents, own: CommitReads, doubts: frozenset[Doubt] = frozenset(), *, is_late: bool = False
    ) -> Contents:
        """Return what a table contains after a commit, from what it contained before. It `is_late` if commits before
        are left out: then changes may go on from what these read."""
        key = (id(base), own.write.id, doubts, is_late)
        known = self._applied.get(key)
        if known is None:
            known = self._applied[key] = (base, self._apply(base, own, doubts, is_late=is_late))
        return known[1]

    def _apply(self, base: Contents, own: CommitReads, doubts: frozenset[Doubt], *, is_late: bool) -> Contents:
        if own.write.restarts:
            base = NOTHING_CONTAINED
        if not own.reads and not own.doubts and not doubts and not _replaces_part(own, base):
            return base
        states, added = dict(base.states), list[SourceState]()
        is_grown = True
        found, is_part_replaced = base.doubts | own.doubts | doubts, _replaces_part(own, base)
        for read in own.reads:
            if read.state.version.dataset == own.table:
                itself = self._read_itself(base, read)
                states |= itself.states
                is_grown = False
                found |= itself.doubts
                is_part_replaced |= itself.is_part_replaced or (own.write.restarts and not is_restore(own.write))
            else:
                is_grown &= self._add(states, read, added, is_late=is_late and not own.write.restarts)
        more = added if is_grown else None
        return Contents(own.table, states, found, is_part_replaced=is_part_replaced, base=base, added=more)

    def _read_itself(self, base: Contents, read: OwnRead) -> Contents:
        """Return what a table brings that a commit of it read: as a whole, or some of its commits once more."""
        if not read.state.is_chain:
            return read.state.behind
        found = base
        for commit in read.commits:
            found = self.apply(found, commit)
        return Contents(found.reader, found.states, found.doubts | read.state.behind.doubts)

    def _add(
        self, states: dict[StateKey, SourceState], read: OwnRead, added: list[SourceState], *, is_late: bool
    ) -> bool:
        """Add a read: to the chain that it goes on, or as a state by itself. Return whether all states stay that there
        were before."""
        state, is_grown = read.state, True
        if state.is_chain:
            before = self._chain_of(states.values(), read)
            behind = NOTHING_CONTAINED if before is None else before.behind
            is_behind_late = read.start is not None and (before is None or before.since is not None)
            state = state._replace(behind=self._advance(behind, read, is_late=is_behind_late))
            if before is not None:
                if not before.is_repeated and (before.is_chain or not is_late):
                    del states[before.key]
                    is_grown = False
                state = self._join(before, state)
        known = states.get(state.key)
        if known is None:
            states[state.key] = state
            added.append(state)
        elif known.behind is not state.behind or not known.is_repeated:
            states[state.key] = state._replace(behind=_union(known.behind, state.behind), is_repeated=True)
            is_grown = False
        return is_grown

    def _advance(self, behind: Contents, read: OwnRead, *, is_late: bool) -> Contents:
        """Return what is contained in a source after changes of it were read."""
        for commit in read.commits:
            behind = self.apply(behind, commit, is_late=is_late)
        missing = read.state.behind.doubts - behind.doubts
        if not missing:
            return behind
        return Contents(
            read.state.version.dataset,
            behind.states,
            behind.doubts | missing,
            is_part_replaced=behind.is_part_replaced,
            base=behind,
            added=(),
        )

    def _chain_of(self, states: Iterable[SourceState], read: OwnRead) -> SourceState | None:
        """Return the state that changes go on from: the one at which they begin, or what the same job has read before,
        if some changes between are missing. Changes that are read again are a state by themselves: what came and went
        between is removed from one of both alone."""
        new = read.state
        mine = [state for state in states if state.version.dataset == new.version.dataset]
        joined = [state for state in mine if read.start is not None and self._is_joined(state, read.start, new)]
        if joined:
            return max(joined, key=lambda state: (state.is_chain, state.job == new.job, state.read_at))
        apart = (state for state in mine if state.is_chain and state.job == new.job and _is_apart(state, new))
        return max(
            (state for state in apart if self._is_on_line(state, new)), key=lambda state: state.read_at, default=None
        )

    def _is_joined(self, one: SourceState, start: Version, new: SourceState) -> bool:
        """Return whether changes begin at a version that was read. Where its writer isn't known, the number alone says
        so, and can have come again."""
        if one.version.key != start.key:
            return False
        is_certain = start.writer is not None or start.format != _PAIMON
        return is_certain or not self._histories.was_set_back(start, new.read_at, one.read_at)

    def _is_on_line(self, one: SourceState, new: SourceState) -> bool:
        """Return whether a version that was read before is still in the table when it is read again, as far as that is
        known: it isn't, if the table was rolled back."""
        first, second = one.version, new.version
        if first.key == second.key or first.snapshot is None:
            return True
        if (first.generation, first.branch) != (second.generation, second.branch):
            return False
        if first.format == _PAIMON:
            return not self._histories.was_set_back(first, new.read_at)
        if first.is_ordered or first.writer is None or second.writer is None:
            return True
        return bool(self._histories.precedes(first, second) or self._histories.precedes(second, first))

    def _join(self, one: SourceState, other: SourceState) -> SourceState:
        """Return how far two reads of a chain reach together."""
        older, newer = (one, other) if self.is_older(one, other) else (other, one)
        newer = newer._replace(is_chain=True, behind=other.behind, job=other.job, is_repeated=False)
        if newer.since is None:
            return newer
        since = older.since
        if since is not None and _is_numbered(older.version, newer.version):
            since = min(since, newer.since)
        has_hole = older.has_hole or newer.has_hole or _is_apart(older, newer)
        return newer._replace(since=since, has_hole=has_hole)

    def is_older(self, one: SourceState, other: SourceState) -> bool:
        """Return whether the first doesn't reach as far as the second."""
        first, second = one.version, other.version
        if _is_numbered(first, second) and first.snapshot != second.snapshot:
            return (first.snapshot or 0) < (second.snapshot or 0)
        times = first.made_at, second.made_at
        if times[0] is None or times[1] is None or first.key == second.key:
            return one.read_at <= other.read_at
        if abs(times[0] - times[1]) <= SKEW_MICROS:
            if self._histories.precedes(first, second):
                return True
            if self._histories.precedes(second, first):
                return False
        return times[0] <= times[1]


def own_state(version: Version) -> SourceState:
    """Return a table as a state of itself."""
    return SourceState(version, version.snapshot, None, False, False, version.made_at or 0, None, NOTHING_CONTAINED)


def _replaces_part(own: CommitReads, base: Contents) -> bool:
    """Return whether states from before a commit can be gone since."""
    if own.write.restarts or not base.states:
        return False
    return base.is_part_replaced or (own.write.replaced not in {"NOTHING", "ALL"} and not keeps_rows([own.write]))


def _union(one: Contents, other: Contents) -> Contents:
    if one is other:
        return one
    states = dict(one.states)
    for key, state in other.states.items():
        known = states.get(key)
        is_same = known is None or known.behind is state.behind
        states[key] = state if known is None or is_same else state._replace(behind=_union(known.behind, state.behind))
    is_part_replaced = one.is_part_replaced or other.is_part_replaced
    return Contents(one.reader or other.reader, states, one.doubts | other.doubts, is_part_replaced=is_part_replaced)


def _is_apart(older: SourceState, newer: SourceState) -> bool:
    """Return whether changes between the two were not read, as far as that can be seen."""
    last = older.until
    if newer.since is None or last is None or newer.since == last or newer.version.key == older.version.key:
        return False
    if _is_numbered(older.version, newer.version):
        return newer.since > last
    return newer.since != older.since


def _is_numbered(first: Version, second: Version) -> bool:
    """Return whether the numbers of two versions say which came first."""
    return (
        first.is_ordered
        and second.is_ordered
        and first.snapshot is not None
        and second.snapshot is not None
        and first.generation == second.generation
        and first.branch == second.branch
    )
