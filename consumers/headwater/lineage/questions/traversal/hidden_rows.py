"""Loads what whole commits read and wrote, with the reason why some of it isn't shown.

A walk along versions looks itself at what it meets. Who looks at commits otherwise, as a validation does, loads them
here, so that it can't take for known what a deletion or an option of a catalog hides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

from sqlalchemy import Connection, select

from headwater.lineage.questions.traversal.context import TraversalContext
from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotRead,
    SnapshotWrite,
    load_reads_of_commits,
    load_writes_of_commits,
)
from headwater.lineage.questions.traversal.snapshot_writers import CommitReporter, deletion_subject_of
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import PairLookup
from headwater.lineage.sql.tables import table_of

IdAndBarrier = tuple[bytes, int]
"""The id of a commit and its barrier."""


def load_marked_reads(walk: TraversalContext, commits: Collection[IdAndBarrier]) -> Sequence[SnapshotRead]:
    """Load what commits read. What isn't shown is marked as hidden."""
    found = list(load_reads_of_commits(walk.connection, commits))
    if walk.hiding.hides_nothing:
        return found
    by = _load_reporters(walk, {(row.commit_id, row.barrier) for row in found})
    hidden = walk.hiding.are_hidden([deletion_subject_of(row, by[row.commit_id, row.barrier]) for row in found])
    return [row._replace(hidden=why) if why else row for row, why in zip(found, hidden, strict=True)]


def load_marked_writes(walk: TraversalContext, commits: Collection[IdAndBarrier]) -> Sequence[SnapshotWrite]:
    """Load what commits wrote. What isn't shown is marked as hidden."""
    found = list(load_writes_of_commits(walk.connection, commits))
    if walk.hiding.hides_nothing:
        return found
    hidden = walk.hiding.are_hidden([deletion_subject_of(row, row) for row in found])
    return [row._replace(hidden=why) if why else row for row, why in zip(found, hidden, strict=True)]


def ids_of_hidden_rows(connection: Connection, commits: Collection[IdAndBarrier]) -> set[bytes]:
    """Return the ids of the reads and writes of commits that aren't shown."""
    walk = TraversalContext(connection)
    if not commits or walk.hiding.hides_nothing:
        return set()
    reads = {read.id for read in load_marked_reads(walk, commits) if read.hidden}
    return reads | {write.id for write in load_marked_writes(walk, commits) if write.hidden}


def _load_reporters(walk: TraversalContext, commits: Collection[IdAndBarrier]) -> Mapping[IdAndBarrier, CommitReporter]:
    return {
        (bytes(reporter.id), reporter.barrier): CommitReporter(
            (reporter.job_namespace, reporter.job),
            (reporter.parent_namespace, reporter.parent_job),
            None if reporter.run is None else bytes(reporter.run),
        )
        for reporter in _reporters().by_barrier(walk.connection, commits)
    }


@cache
def _reporters() -> PairLookup:
    row = table_of(t.COMMIT).c
    columns = (row.id, row.barrier, row.job_namespace, row.job, row.parent_namespace, row.parent_job, row.run)
    return PairLookup(select(*columns), row.id, row.barrier)
