"""Versions of tables, and what a snapshot contains of the tables upstream of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.snapshot_rows import ORDERED

VersionKey: TypeAlias = tuple[object, ...]
"""What two references to one version have in common."""


class Version(NamedTuple):
    """A version of a table. One that only compacts, analyzes or alters has the rows of the version before, and is
    replaced by that."""

    dataset: bytes
    snapshot: int | None
    position: str | None
    """Offsets, or where within the snapshot a stream stopped."""
    generation: str | None
    branch: str | None
    writer: bytes | None
    """The write that made it; None if nobody reported it."""
    made_at: int | None
    format: str | None
    """The table's format, as far as it is known."""
    set_backs: int = 0
    """How often its number had become free before it was read, where its writer isn't known."""

    @property
    def key(self) -> VersionKey:
        """Equal for equal versions: after a rollback a number can come again, but not its write."""
        if self.writer is not None:
            return (self.dataset, self.writer, self.position)
        return (self.dataset, self.generation, self.branch, self.snapshot, self.position, self.set_backs)

    @property
    def is_ordered(self) -> bool:
        """Whether a greater snapshot number is known to be a later one."""
        return self.format in ORDERED

    @property
    def is_within(self) -> bool:
        """Whether a stream stopped within the snapshot: how much of it was read isn't known."""
        return self.snapshot is not None and self.position is not None

    @property
    def is_known(self) -> bool:
        return self.snapshot is not None or self.position is not None


class SourceState(NamedTuple):
    """A state of one table that is in another one: a version that was read, or up to which a chain of incremental reads
    has got."""

    version: Version
    until: int | None
    """The snapshot that was read: `version`, or one after it that has the same rows."""
    since: int | None
    """Where changes began, if nothing was read in full before; None if everything up to `version` is contained."""
    has_hole: bool
    """Whether changes in between were not read, as far as numbers tell."""
    is_chain: bool
    """Whether it was read as changes, so that the next changes can go on from it."""
    read_at: int
    """When the commit that read it was made."""
    job: str | None
    behind: Contents
    """What is contained in it."""
    is_repeated: bool = False
    """Whether several commits brought it: changes go on from one of them, and the others stay."""

    @property
    def key(self) -> StateKey:
        """Equal for what is one state. Chains of several jobs go on by themselves."""
        version = self.version
        chain = (self.since, self.job) if self.is_chain else None
        return (version.dataset, version.key, self.is_chain, chain)


class Doubt(NamedTuple):
    """Something about a table that isn't known, because of which it may contain more or less than it seems."""

    dataset: bytes
    reason: LimitReason
    snapshot: int | None
    detail: str


StateKey: TypeAlias = tuple[object, ...]
"""What two equal states of one source have in common."""
Pair: TypeAlias = tuple[bytes, bytes]
"""The table that reads, and the one that it reads."""


class Contents:
    """What is in a table at a snapshot: the states of its sources, each with what is contained in that.

    Contents of one commit are mostly those of the commit before with a few states more. So they are kept as what was
    added, and what is in all of it is added up once, when it is asked for.
    """

    __slots__ = ("_added", "_all", "_base", "doubts", "is_part_replaced", "reader", "states")

    def __init__(
        self,
        reader: bytes = b"",
        states: Mapping[StateKey, SourceState] = MappingProxyType({}),
        doubts: frozenset[Doubt] = frozenset(),
        *,
        is_part_replaced: bool = False,
        base: Contents | None = None,
        added: Sequence[SourceState] | None = None,
    ) -> None:
        """`base` has all of these states and doubts but those that were `added`; without these nothing is known of
        that."""
        self.reader = reader
        self.states = states
        self.doubts = doubts
        """What isn't known of the table's own commits."""
        self.is_part_replaced = is_part_replaced
        """Whether some of these states can be gone: later commits replaced parts of the table."""
        is_grown = base is not None and added is not None and base.is_part_replaced == is_part_replaced
        self._base = base if is_grown else None
        self._added = [*states.values()] if added is None or not is_grown else added
        self._all: AllContents | None = None

    @property
    def all(self) -> AllContents:
        """What is contained by any path."""
        if self._all is None:
            waiting = [self]
            while waiting:
                needed = waiting[-1].parts_to_add_up()
                if needed:
                    waiting += needed
                else:
                    waiting.pop().add_up()
        assert self._all is not None  # noqa: S101 - it was added up
        return self._all

    def parts_to_add_up(self) -> list[Contents]:
        """Return the parts that weren't added up yet, so that `all` needs no recursion, which can be deep."""
        parts = [] if self._base is None else [self._base]
        parts += [addition.behind for addition in self._added]
        return [part for part in parts if part._all is None]  # noqa: SLF001

    def add_up(self) -> None:
        """Add up what is contained, after all parts."""
        if self._all is None:
            self._all = self._add_up()

    def _add_up(self) -> AllContents:
        known = NOTHING_AT_ALL if self._base is None else self._base.all
        states = dict(known.states)
        doubts, unsure = set(known.doubts | self.doubts), set(known.unsure)
        for addition in self._added:
            source = addition.version.dataset
            _add_states(states, (self.reader, source), {addition.version.key: addition})
            behind = addition.behind.all
            for pair, found in behind.states.items():
                _add_states(states, pair, found)
            doubts |= behind.doubts
            unsure |= behind.unsure
        if self.is_part_replaced:
            unsure |= {source for _, source in states}
        return AllContents(states, frozenset(doubts), frozenset(unsure))


@dataclass(frozen=True)
class AllContents:
    """What a table contains by any path."""

    states: Mapping[Pair, Mapping[VersionKey, SourceState]]
    """For each table that reads another one the states of that, by version."""
    doubts: frozenset[Doubt]
    unsure: frozenset[bytes]
    """The tables of which it isn't known whether each state is still there."""

    @cached_property
    def ancestors(self) -> Mapping[bytes, frozenset[VersionKey]]:
        """The versions of each table upstream."""
        found: dict[bytes, frozenset[VersionKey]] = {}
        for (_, source), states in self.states.items():
            found[source] = found.get(source, frozenset()).union(states)
        return found

    @cached_property
    def within(self) -> Sequence[tuple[bytes, SourceState]]:
        """The states within a snapshot, with the tables that read them."""
        return [
            (reader, state)
            for (reader, _), states in self.states.items()
            for state in states.values()
            if state.version.is_within
        ]

    @cached_property
    def vague(self) -> frozenset[bytes]:
        """The tables that have no versions, or of which some changes are missing: whether others have the same of them
        can't be seen."""
        return frozenset(
            source
            for (_, source), states in self.states.items()
            if any(state.has_hole or not state.version.is_known for state in states.values())
        )

    def of(self, source: bytes) -> list[tuple[bytes, SourceState]]:
        """Return the states of a table with the tables that read them."""
        return [
            (reader, state)
            for (reader, read), states in self.states.items()
            if read == source
            for state in states.values()
        ]


def _add_states(
    states: dict[Pair, Mapping[VersionKey, SourceState]], pair: Pair, more: Mapping[VersionKey, SourceState]
) -> None:
    """Add states. Of two with one version the one with a hole counts, or else the one that was read last."""
    known = states.get(pair)
    if known is None or known is more:
        states[pair] = more
        return
    found = dict(known)
    for key, state in more.items():
        other = found.get(key)
        if other is None or (other.has_hole, other.read_at) < (state.has_hole, state.read_at):
            found[key] = state
    states[pair] = found


NOTHING_AT_ALL: Final = AllContents(MappingProxyType({}), frozenset(), frozenset())
NOTHING_CONTAINED: Final = Contents()


@dataclass(frozen=True)
class TableContents:
    """A table at a version, with what it contains."""

    version: Version
    contents: Contents

    @property
    def dataset(self) -> bytes:
        return self.version.dataset

    @cached_property
    def versions(self) -> Mapping[bytes, frozenset[VersionKey]]:
        """The versions of each table upstream, and of the table itself."""
        found = dict(self.contents.all.ancestors)
        found[self.dataset] = frozenset({self.version.key})
        return found
