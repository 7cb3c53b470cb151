"""Finds all commits of a state, or of a range of changes, by following each snapshot to its parent.

The first steps are one statement each for all requested snapshots. After that the history of a table is read in
portions, newest first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_rows import ICEBERG, SnapshotWrite, is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef, SnapshotWriters

_STEPS: Final = 4
"""How many single steps before portions."""
_PORTION: Final = 128
_GREATEST: Final = 8_192


class LongHistory(Exception):  # noqa: N818 - nothing failed: another way may be taken
    """There are more commits than wanted."""


@dataclass
class AncestryRequest:
    """A snapshot, and how far back its ancestors are needed."""

    ref: SnapshotRef
    since: int | None = None
    """Ancestors after this snapshot. For a state, all since the last full overwrite."""
    inclusive: bool = False
    """Whether a part of `since` itself was read."""
    is_state: bool = True
    found: list[SnapshotWrite] = field(default_factory=list)
    at: SnapshotRef | None = None
    """Where the walk is; None when it has ended."""

    def __post_init__(self) -> None:
        self.at = self.ref


class Ancestry:
    """Walks for one question."""

    def __init__(self, makers: SnapshotWriters, limits: LimitCollector, most_commits: int | None = None) -> None:
        self._makers = makers
        self._left = most_commits
        self._limits = limits
        self._portions: dict[bytes, int] = {}
        self._of_states: set[bytes] = set()

    def walk(self, reaches: Collection[AncestryRequest]) -> list[SnapshotWrite]:
        """Return all commits of these requests, each once. A state that was walked before isn't walked again."""
        waiting = [reach for reach in reaches if reach.at is not None]
        steps = 0
        while waiting:
            asked = [reach.at for reach in waiting if reach.at is not None]
            missing = [ref for ref in asked if self._makers.near(ref) is None]
            if missing and steps >= _STEPS:
                self._read_on(missing)
                missing = [ref for ref in missing if self._makers.near(ref) is None]
            self._makers.load(missing)
            waiting = [reach for reach in waiting if self._step(reach)]
            steps += 1
        return list({write.id: write for reach in reaches for write in reach.found}.values())

    def _step(self, reach: AncestryRequest) -> bool:
        """Take one step. Return whether the walk continues."""
        assert reach.at is not None  # noqa: S101 - those that have ended aren't waiting
        at = reach.at
        writes = self._makers.writer(at)
        if not writes:
            self._limits.add_snapshot(LimitReason.UNKNOWN_WRITER, at.dataset, at.snapshot, "its writer is unknown")
            return False
        if reach.is_state:
            if writes[0].id in self._of_states:
                return False
            self._of_states.update(write.id for write in writes)
        reach.found += writes
        self._count(len(writes))
        return self._goes_on(reach, writes)

    def _count(self, commits: int) -> None:
        if self._left is not None:
            self._left -= commits
            if self._left < 0:
                raise LongHistory

    def _goes_on(self, reach: AncestryRequest, writes: list[SnapshotWrite]) -> bool:
        first = writes[0]
        if reach.is_state and first.restarts:
            return False
        parent = next((write.parent for write in writes if write.parent is not None), None)
        if parent is None:
            self._is_beginning(reach, first)
            return False
        if not reach.is_state and _is_before(reach, parent, first):
            return False
        self._note(first)
        assert first.dataset is not None  # noqa: S101 - it was found by its dataset
        reach.at = SnapshotRef(first.dataset, parent, first.generation, first.branch, first.at, first.format == ICEBERG)
        return True

    def _is_beginning(self, reach: AncestryRequest, write: SnapshotWrite) -> None:
        """Only a table's first snapshot has no parent, so that changes after another one don't begin with it."""
        since, number = reach.since or 0, write.snapshot
        if reach.is_state:
            is_later = write.format is not None and not is_unordered(write.format) and number is not None and number > 1
        else:
            is_later = since > 0 and number != since
        if is_later:
            detail = "its parent is unknown"
            self._limits.add_snapshot(LimitReason.UNKNOWN_WRITER, reach.ref.dataset, write.snapshot, detail)

    def _note(self, write: SnapshotWrite) -> None:
        if write.replaced == "UNKNOWN" and write.kind in {"OVERWRITE", "REPLACE", "OTHER", "UNKNOWN"} and write.dataset:
            detail = "it is unknown whether it replaced the whole table; earlier commits are included"
            self._limits.add_snapshot(LimitReason.UNKNOWN_EFFECT, write.dataset, write.snapshot, detail)

    def _read_on(self, missing: Collection[SnapshotRef]) -> None:
        """Read the next portion of the tables' histories."""
        wanted = {ref.dataset: ref.at for ref in missing}
        size = max(self._portions.get(ref, _PORTION) for ref in wanted)
        self._portions.update(dict.fromkeys(wanted, min(size * 4, _GREATEST)))
        self._makers.read_back(wanted, size)


def _is_before(reach: AncestryRequest, parent: int, write: SnapshotWrite) -> bool:
    """Return whether the parent is before the requested range. Numbers tell that too, where they are ordered."""
    if write.snapshot == reach.since or (parent == reach.since and not reach.inclusive):
        return True
    return reach.since is not None and not is_unordered(write.format) and parent < reach.since
