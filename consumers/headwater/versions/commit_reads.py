"""What a commit read: which version each reference means, and where changes began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.events.scalars import Format
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.traversal.context import TraversalContext, is_range, snapshot_ref_of
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite, is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.histories import VersionHistories
from headwater.versions.model import Contents, Doubt, SourceState, Version

_CREATES_EMPTY: Final = frozenset({"CREATE", "CreateTable"})
DELTA: Final = Format.DELTA.value
"""Its versions are numbered from 0, those of others from 1."""


class OwnRead(NamedTuple):
    """A read of one commit."""

    state: SourceState
    """What was read, with what is contained in it; of changes, with what isn't known of them."""
    start: Version | None
    """The version after which changes were read; None if they began before the first one."""
    commits: Sequence[CommitReads]
    """The commits within changes, oldest first, with what they read."""


class CommitReads(NamedTuple):
    """What one commit read."""

    write: SnapshotWrite
    table: bytes
    """The table that was written."""
    reads: Sequence[OwnRead]
    doubts: frozenset[Doubt]


class ReadResolver:
    """Resolves what commits read, for one question."""

    def __init__(self, walk: TraversalContext, histories: VersionHistories) -> None:
        self._walk = walk
        self._histories = histories
        self._versions: dict[tuple[Version, bytes], Version] = {}
        """The versions that references mean, by them and the write that they were found to refer to."""

    def forget(self) -> None:
        self._versions.clear()

    def identity(self, row: SnapshotWrite | SnapshotRead) -> bytes:
        assert row.dataset is not None  # noqa: S101 - it was found by its dataset
        return self._walk.identities.one(row.dataset, row.generation)

    def source(self, read: SnapshotRead) -> bytes:
        return self.identity(read)

    def resolve(
        self, write: SnapshotWrite, read: SnapshotRead, behind: Contents, commits: Sequence[CommitReads]
    ) -> OwnRead:
        source = self.identity(read)
        where = (read.snapshot, read.version, read.generation, read.branch, None, None, read.format)
        version = self.version(Version(source, *where), snapshot_ref_of(read, write.at))
        changes = is_range(read)
        start = self._start(write, read, source) if changes else None
        since = self._beginning(read) if changes else None
        if since is not None and start is not None and self._is_restored(write, read):
            since = start.snapshot
        job = format_job_key(write.job)
        state = SourceState(version, read.snapshot, since, False, changes, write.at, job, behind)
        return OwnRead(state, start, commits)

    def _is_restored(self, write: SnapshotWrite, read: SnapshotRead) -> bool:
        """Return whether changes begin at a version that gave the rows of an earlier one back: they go on from that."""
        if read.dataset is None or read.since is None:
            return False
        before = self._histories.writer(SnapshotRef(read.dataset, read.since, read.generation, read.branch, write.at))
        return bool(before) and self._histories.restored(before) is not None

    def _start(self, write: SnapshotWrite, read: SnapshotRead, source: bytes) -> Version | None:
        """Return the version after which changes were read."""
        if read.since is None and read.since_version is None:
            return None
        where = (read.since, read.since_version, read.generation, read.branch, None, None, read.format)
        ref = None
        if read.since is not None and read.dataset is not None:
            ref = SnapshotRef(read.dataset, read.since, read.generation, read.branch, write.at)
        return self.version(Version(source, *where), ref)

    def _beginning(self, read: SnapshotRead) -> int | None:
        """Return where changes begin; None if nothing was in the table before."""
        if read.since is None:
            return read.snapshot
        if read.since < 0:
            return None
        if read.dataset is None or read.since > 0 or is_unordered(read.format) or read.format is None:
            return read.since
        before = self._histories.writer(SnapshotRef(read.dataset, read.since, read.generation, read.branch))
        is_empty = bool(before) and all(earlier.kind in _CREATES_EMPTY for earlier in before)
        return None if read.format != DELTA or is_empty else read.since

    def version(self, version: Version, ref: SnapshotRef | None) -> Version:
        """Return a version with what is known of its writer, or the one before, if the writer changed no rows."""
        write = [] if ref is None else self._histories.writer(ref)
        if not write:
            set_backs = 0 if ref is None else self._histories.set_backs_before(ref, version.format)
            return version._replace(set_backs=set_backs)
        key = (version, write[0].id)
        known = self._versions.get(key)
        if known is None:
            known = self._versions[key] = self._written_version(version, write)
        return known

    def _written_version(self, version: Version, write: list[SnapshotWrite]) -> Version:
        dataset, snapshot, position, form = version.dataset, version.snapshot, version.position, version.format
        while write and position is None and (before := self._histories.before(write)) is not None:
            snapshot, write = before.snapshot, self._histories.writer(before)
        if not write:
            return version._replace(snapshot=snapshot)
        first = write[0]
        where = (first.generation, first.branch)
        return Version(dataset, snapshot, position, *where, first.id, first.at, first.format or form)
