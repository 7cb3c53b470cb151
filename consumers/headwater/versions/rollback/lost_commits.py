"""The commits that a table loses when it goes back, and which versions of other tables contain any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite, is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.commit_lines import parent_of
from headwater.versions.contents import ContentsReader
from headwater.versions.model import Doubt, TableContents, Version

MOST_COMMITS: Final = 10_000
"""How many commits a table may lose."""


@dataclass
class LostCommits:
    """The commits between a table's newest snapshot and an earlier one."""

    writes: list[SnapshotWrite] = field(default_factory=list)
    """The newest first."""
    numbers: set[int] = field(default_factory=set)
    unreported: set[int] = field(default_factory=set)
    """The numbers of those that nobody reported."""
    problem: str | None = None
    """Why it isn't known whether the newest snapshot was made from the earlier one."""


def find_lost(reader: ContentsReader, head: SnapshotRef, target: SnapshotRef) -> LostCommits:
    """Return the commits from a table's newest snapshot back to an earlier one, which isn't among them."""
    lost, known_format, at = LostCommits(), None, head
    while at.snapshot != target.snapshot:
        lost.numbers.add(at.snapshot)
        write = reader.histories.step_to(at)
        if write:
            lost.writes += write
            known_format = write[0].format or known_format
        else:
            lost.unreported.add(at.snapshot)
        following = _before(reader, write, target) if write else None
        if following is None and known_format is not None and not is_unordered(known_format):
            following = at._replace(snapshot=at.snapshot - 1)  # their numbers follow each other
        if len(lost.numbers) > MOST_COMMITS:
            lost.problem = f"{target.snapshot} is more than {MOST_COMMITS:,} commits behind {head.snapshot}"
        elif following is None or following.snapshot < 0 or following.snapshot in lost.numbers:
            lost.problem = _unlinked(head, target, at, is_known=bool(write))
        if lost.problem is not None or following is None:
            return lost
        at = following
    return lost


def _before(reader: ContentsReader, write: Sequence[SnapshotWrite], target: SnapshotRef) -> SnapshotRef | None:
    """Return what a commit was made on. Behind one that gave back an earlier snapshot that is what it gave back: what
    is between was lost then."""
    restored = reader.histories.restored(write)
    if restored is not None and restored.snapshot >= target.snapshot and not is_unordered(write[0].format):
        return restored
    return parent_of(write)


def _unlinked(head: SnapshotRef, target: SnapshotRef, at: SnapshotRef, *, is_known: bool) -> str:
    what = "has no known parent" if is_known else "was made by nobody who reported it"
    return (
        f"its newest snapshot {head.snapshot} isn't known to be made from {target.snapshot}: {at.snapshot} {what}. "
        "`headwater reconcile` finds such commits"
    )


class LostContents:
    """Tells which versions of tables contain a commit that is lost."""

    def __init__(self, lost: Mapping[bytes, LostCommits], chain: set[bytes]) -> None:
        """Of the tables that the user named, by their identities; `chain` are those that were made from these."""
        self._lost: Final = lost
        self._ids: Final = {write.id for each in lost.values() for write in each.writes}
        self._chain: Final = chain

    def has_any(self, state: TableContents) -> bool:
        """Return whether a version of a table contains a lost commit, by any path."""
        return any(
            version.writer in self._ids
            if version.writer is not None
            else version.snapshot in self._lost[version.dataset].unreported
            for version in self._versions_of_sources(state)
        )

    def is_made_from_sources(self, state: TableContents) -> bool:
        return any(True for _ in self._versions_of_sources(state))

    def doubts(self, state: TableContents) -> list[Doubt]:
        """Return what isn't known, and could hide that a version contains a lost commit."""
        found = [doubt for doubt in state.contents.all.doubts if doubt.dataset in self._chain]
        return sorted(found, key=lambda doubt: (doubt.reason.value, doubt.snapshot or 0, doubt.detail))

    def _versions_of_sources(self, state: TableContents) -> Iterator[Version]:
        for (_, source), found in state.contents.all.states.items():
            if source in self._lost:
                yield from (each.version for each in found.values())


def identities_of(reader: ContentsReader, refs: Sequence[SnapshotRef]) -> list[bytes]:
    """Return the current identities of tables."""
    reader.histories.load(refs)
    return [reader.state(ref).dataset for ref in refs]
