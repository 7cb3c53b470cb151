"""Commits that were found in a table's own log, beside what drivers reported.

Such a commit is another row than the one that a driver reports of the same snapshot: neither event knows the other, and
either can come first. Which one holds is decided here, when reading: the driver's always does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from headwater.events.jobs import CommitEvidence
from headwater.lineage.questions.traversal.snapshot_rows import (
    ICEBERG,
    SnapshotWrite,
    load_catalog_changes,
    load_writes,
)

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
