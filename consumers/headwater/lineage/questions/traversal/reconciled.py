"""Commits that were found in a table's own log, beside what drivers reported.

Such a commit is another row than the one that a driver reports of the same snapshot: neither event knows the other, and
either can come first. Which one holds is decided here, when reading: the driver's always does.

When tables were set back, so that numbers of snapshots came again.

Paimon gives the numbers behind a rollback anew. Its fast-forward puts the snapshots of a branch in the place of those
that the table had since the branch was made.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.events.jobs import CommitEvidence
from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.snapshot_rows import (
    ICEBERG,
    SnapshotWrite,
    load_catalog_changes,
    load_pointers,
    load_writes,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

_ROLLBACK: Final = "ROLLBACK"
MERGES: Final = ("BranchMerged", "MainReplaced")
"""The events by which the snapshots of a branch come into the place of another's: both do that to main."""


class SetBack(NamedTuple):
    """All snapshots of a branch behind a number became invalid."""

    generation: str | None
    branch: str | None
    snapshot: int
    at: int
    newest: int | None = None
    """The snapshot that the table has since then, if that is another branch's."""


class SetBacks:
    """When tables were set back, as one question needs it."""

    def __init__(self, connection: Connection, identities: Identities) -> None:
        self._connection = connection
        self._identities = identities
        self._known: dict[bytes, list[SetBack]] = {}

    def is_between(
        self, dataset: bytes, snapshot: int, generation: str | None, branch: str | None, times: tuple[int, int]
    ) -> bool:
        """Return whether a snapshot's number became free after a time, until another one."""
        return self.count(dataset, snapshot, generation, branch, times) > 0

    def count(
        self, dataset: bytes, snapshot: int, generation: str | None, branch: str | None, times: tuple[int, int]
    ) -> int:
        """Return how often a snapshot's number became free after a time, until another one."""
        since, until = times
        return sum(
            since < set_back.at <= until
            and set_back.snapshot < snapshot
            and set_back.branch == branch
            and (None in {generation, set_back.generation} or set_back.generation == generation)
            for set_back in self.of(dataset)
        )

    def has_any(self, dataset: bytes) -> bool:
        """Return whether a table was ever set back, as far as was asked."""
        return bool(self._known.get(dataset))

    def of(self, dataset: bytes) -> list[SetBack]:
        """Return all of a table."""
        known = self._known.get(dataset)
        if known is None:
            group = list(self._identities.group(dataset))
            known = [
                SetBack(pointer.generation, pointer.branch, pointer.snapshot, pointer.at)
                for pointer in load_pointers(self._connection, group, _ROLLBACK)
                if pointer.snapshot is not None
            ]
            known += [merge for key in group for merge in self._merges(key, known)]
            self._known[dataset] = known
        return known

    def _merges(self, dataset: bytes, rollbacks: Collection[SetBack]) -> list[SetBack]:
        """Return the set-backs by merges: behind where the branch was made, or behind what the other one was
        rolled back to since. A merge that made a snapshot of its own took no numbers back."""
        row, branch = table_of(t.MODIFICATION).c, table_of(t.BRANCH).c
        chosen = select(row.detail, row.generation, row.time).where(
            row.dataset == dataset, row.kind.in_(MERGES), row.effect == "APPLIED", row.produced.is_(None)
        )
        merges = [
            (json.loads(change.detail), change.generation, change.time) for change in self._connection.execute(chosen)
        ]
        if not merges:
            return []
        begun = {
            started.branch: (started.from_snapshot or 0, started.first)
            for started in self._connection.execute(
                select(branch.branch, branch.from_snapshot, branch.first).where(branch.dataset == dataset)
            )
        }
        found = []
        for detail, generation, at in merges:
            into = detail.get("into")
            start, created = begun.get(detail.get("branch"), (0, 0))
            since = [
                rollback.snapshot for rollback in rollbacks if rollback.branch == into and created < rollback.at <= at
            ]
            found.append(SetBack(generation, into, min([start, *since]), at, detail.get("snapshot")))
        return found


RECONCILED: Final = CommitEvidence.RECONCILED.value
UNREPORTED: Final = "its commit stands in the table's own log, and no driver reported it: what it read isn't known"
REUSE_MICROS: Final = 10 * 60 * 1_000_000
"""A driver reports a commit after it was made. One that was reported so long before is another commit: Paimon gives the
numbers of snapshots that were rolled back again."""
_POINTERS: Final = frozenset({"ROLLBACK", "FAST_FORWARD"})
_POINTERS_IF_UNKNOWN: Final = frozenset({"RESTORE", "CHERRY_PICK"})


def is_pointer(write: SnapshotWrite) -> bool:
    """Return whether the commit only points to an earlier snapshot."""
    return write.kind in _POINTERS or (write.kind in _POINTERS_IF_UNKNOWN and write.replaced == "UNKNOWN")


def prefer_observed(connection: Connection, found: Iterable[SnapshotWrite]) -> list[SnapshotWrite]:
    """Replace each commit that was found in a log by what a driver reported of it, if one did.

    The replacement takes the time that the log has, so that a walk through time goes on from where it was.
    """
    writes = list(found)
    keys = {
        (write.dataset, write.snapshot)
        for write in writes
        if write.evidence == RECONCILED and write.dataset is not None and write.snapshot is not None
    }
    if not keys:
        return writes
    observed = [*load_writes(connection, keys), *load_catalog_changes(connection, keys)]
    chosen: dict[bytes, SnapshotWrite] = {}
    for write in writes:
        same = [other for other in observed if is_same_commit(write, other)] if write.evidence == RECONCILED else []
        for unified in [one._replace(at=min(write.at, one.at)) for one in same] or [write]:
            chosen.setdefault(unified.id, unified)
    return list(chosen.values())


def is_same_commit(reconciled: SnapshotWrite, observed: SnapshotWrite) -> bool:
    """Return whether a driver's write is the one that the log has."""
    if observed.evidence == RECONCILED or is_pointer(observed):
        return False
    if (observed.dataset, observed.snapshot) != (reconciled.dataset, reconciled.snapshot):
        return False
    if None not in {observed.generation, reconciled.generation} and observed.generation != reconciled.generation:
        return False
    is_on_branch = reconciled.format == ICEBERG or observed.branch == reconciled.branch
    return is_on_branch and observed.at >= reconciled.at - REUSE_MICROS
