"""The state that the parts of one walk share."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_rows import CHANGES, SnapshotRead, SnapshotWrite
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef, SnapshotWriters
from headwater.lineage.questions.traversal.tombstone_lookup import TombstoneLookup


class Basis(str, Enum):
    """Which of the two meanings of "made from" a question uses."""

    COMMIT = "commit"
    """What the snapshot's own commit read."""
    STATE = "state"
    """What all commits read whose rows may still be in the table: those since its last full overwrite."""


class LineageStep(NamedTuple):
    """A write and one of the reads that it was made from, at a distance from the start."""

    depth: int
    write: SnapshotWrite
    read: SnapshotRead


class TraversalContext:
    """The caches and limits of one walk."""

    def __init__(self, connection: Connection, as_of: int | None = None) -> None:
        self.connection = connection
        self.as_of = as_of
        self.hiding = TombstoneLookup(connection)
        self.identities = Identities(connection)
        self.limits = LimitCollector()
        self.makers = SnapshotWriters(connection, self.hiding, self.identities)


def snapshot_ref_of(taken: SnapshotRead, at: int) -> SnapshotRef | None:
    """Return the snapshot that was read; None if it is unknown, or if the dataset has none."""
    if taken.dataset is None or taken.snapshot is None:
        return None
    return SnapshotRef(taken.dataset, taken.snapshot, taken.generation, taken.branch, at)


def is_range(taken: SnapshotRead) -> bool:
    return taken.mode == CHANGES
