"""Versions of tables, and what a snapshot contains of the tables upstream of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
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

    @property
    def key(self) -> VersionKey:
        """Equal for equal versions: after a rollback a number can come again, but not its write."""
        if self.writer is not None:
            return (self.dataset, self.writer, self.position)
        return (self.dataset, self.generation, self.branch, self.snapshot, self.position)

    @property
    def is_ordered(self) -> bool:
        """Whether a greater snapshot number is known to be a later one."""
        return self.format in ORDERED

    @property
    def is_known(self) -> bool:
        return self.snapshot is not None or self.position is not None


class Frontier(NamedTuple):
    """How much of one table is in another: the newest version that was read, and from where on."""

    newest: Version
    until: int | None
    """The snapshot that was read: `newest`, or one after it that has the same rows."""
    since: int | None
    """Where changes began, if nothing was read in full before; None if everything up to `newest` is contained."""
    has_hole: bool
    """Whether changes in between were not read, as far as numbers tell."""
    read_at: int
    """When the commit that read it was made."""
    job: str | None


class Doubt(NamedTuple):
    """Something about a table that isn't known, because of which it may contain more or less than it seems."""

    dataset: bytes
    reason: LimitReason
    snapshot: int | None
    detail: str


Pair: TypeAlias = tuple[bytes, bytes]
"""The table that reads, and the one that it reads."""


class Contents(NamedTuple):
    """What is in a table at a snapshot: for every table upstream, how much of its sources is in it."""

    frontiers: Mapping[Pair, Frontier] = MappingProxyType({})
    doubts: Collection[Doubt] = frozenset()

    def readers_of(self, source: bytes) -> dict[bytes, Frontier]:
        """Return how much of a table is in each of those that read it."""
        return {reader: frontier for (reader, read), frontier in self.frontiers.items() if read == source}

    @property
    def ancestors(self) -> set[bytes]:
        return {source for _, source in self.frontiers}


NOTHING_CONTAINED: Final = Contents()


@dataclass(frozen=True)
class TableContents:
    """A table at a version, with what it contains."""

    version: Version
    contents: Contents

    @property
    def dataset(self) -> bytes:
        return self.version.dataset
