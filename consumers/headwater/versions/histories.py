"""Loads the commits that versions of tables were made by, for one question."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import dropwhile, islice
from typing import Final

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.ancestry import AncestryRequest, UpstreamWalk
from headwater.lineage.questions.traversal.context import (
    Basis,
    LineageStep,
    TraversalContext,
    is_range,
    snapshot_ref_of,
)
from headwater.lineage.questions.traversal.hidden_rows import load_marked_reads
from headwater.lineage.questions.traversal.history_lines import has_writes
from headwater.lineage.questions.traversal.snapshot_rows import PAIMON, SnapshotRead, SnapshotWrite
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.commit_lines import is_restore, keeps_rows, parent_of
from headwater.versions.fixed_versions import ObservedVersion, has_writing_job, load_versions_read
from headwater.versions.model import Version
from headwater.versions.shared_tables import SharedTables, TablesBehind

SKEW_MICROS: Final = 300_000_000
"""How much the clocks of two writers may differ, in microseconds."""
_PORTION: Final = 256
_FEW: Final = 32


class TooNear(Exception):  # noqa: N818 - nothing failed: more has to be loaded
    """What is behind some tables was left out, and is needed: `include` them, and compute the answer anew."""

    def __init__(self, tables: Collection[bytes]) -> None:
        super().__init__("what was left out is needed")
        self.tables = tables


class VersionHistories:
    """Loads what versions of tables were made by, behind the tables that it leaves out nothing."""

    def __init__(self, walk: TraversalContext) -> None:
        self._walk = walk
        self._shared: SharedTables | None = None
        self._behind = TablesBehind(walk.connection, walk.identities)
        self._is_written: dict[bytes, bool] = {}
        self._restored: dict[bytes, SnapshotRef | None] = {}
        self._versions_read: dict[SnapshotRef, ObservedVersion] = {}
        self.left_out: frozenset[bytes] = frozenset()
        self.runs: set[bytes] = set()
        self._start_over()

    def _start_over(self) -> None:
        self._upward = UpstreamWalk(self._walk, Basis.STATE, ends_at=self.left_out)
        self._reads: dict[bytes, list[SnapshotRead]] = {}
        self._writes: dict[bytes, list[SnapshotWrite]] = {}
        self._reads_left_out: set[bytes] = set()

    def leave_out_shared(self, refs: Collection[SnapshotRef]) -> None:
        """Leave out what is behind tables that all of these contain."""
        identities = self._walk.identities
        tables = {key for ref in refs for key in (ref.dataset, identities.one(ref.dataset, ref.generation))}
        if len({identities.one(ref.dataset, ref.generation) for ref in refs}) < len(tables):
            return  # a renamed table: its edges stand under several identities
        self._shared = SharedTables(self._walk.connection, identities, tables)
        self.left_out = self._shared.nearest()
        self._start_over()

    def include(self, tables: Collection[bytes]) -> None:
        """Leave out no more some tables that were left out, and what is behind them: a version that lacks them will
        lack that, too. All versions have to be loaded again."""
        assert self._shared is not None  # noqa: S101 - nothing was left out otherwise
        self._shared.include(tables)
        self.left_out = self._shared.nearest()
        self._start_over()

    def load(self, refs: Collection[SnapshotRef]) -> None:
        """Load all that these states were made from. `TooNear` if something was read that edges between tables lack:
        then nothing may be left out because of them."""
        wanted = [AncestryRequest(ref) for ref in refs if not self.is_left_out(ref.dataset, ref.generation)]
        self._read_back(request.ref for request in wanted)
        ends = [ref for ref in refs if self.is_left_out(ref.dataset, ref.generation)]
        for steps in self._upward.levels((), wanted, None):
            for step in steps:
                self._reads.setdefault(step.write.id, []).append(step.read)
                if step.write.run is not None:
                    self.runs.add(step.write.run)
                ends += self._ends(step)
        self._load_versions(ends)

    def _read_back(self, refs: Iterable[SnapshotRef]) -> None:
        """Read the last commits before each snapshot, of all tables at once: most states consist of a few."""
        makers = self._walk.makers
        new = {ref.dataset: self.writer(ref) for ref in refs if not makers.is_read_back(ref.dataset)}
        makers.read_back({dataset: write[0].at for dataset, write in new.items() if write}, _FEW)

    def _ends(self, step: LineageStep) -> Iterator[SnapshotRef]:
        """Yield the versions that a step read of a table that is left out."""
        read = step.read
        if read.dataset is None or self._shared is None or not self.left_out:
            return
        if step.write.dataset is None or not self._shared.has_edge(step.write.dataset, read.dataset):
            raise TooNear(self.left_out)
        if not self.is_left_out(read.dataset, read.generation):
            return
        self._reads_left_out.add(read.id)
        ref = snapshot_ref_of(read, step.write.at)
        if ref is not None:
            yield ref
            if is_range(read) and read.since is not None and read.since <= 0:
                yield ref._replace(snapshot=read.since)

    def _load_versions(self, refs: Iterable[SnapshotRef]) -> None:
        """Load who wrote versions, and those before them that have the same rows. After a rollback a number has another
        writer, so that a version is looked at as of each time at which it was read."""
        makers, waiting, seen = self._walk.makers, list(refs), set[SnapshotRef]()
        while waiting:
            new = {*waiting} - seen
            seen |= new
            makers.load(ref for ref in new if makers.near(ref) is None)
            before = (self.before(found) for ref in new if (found := self.writer(ref)))
            waiting = [ref for ref in before if ref is not None]

    def is_made_from(self, table: bytes, sources: Collection[bytes]) -> bool:
        """Return whether a table is known to have been made from any of some tables, by whatever commits."""
        return not self._behind.of(table).isdisjoint(sources)

    def was_set_back(self, version: Version, until: int, since: int | None = None) -> bool:
        """Return whether a table was rolled back behind a version, so that its number came again: after a time, or
        after the version was made."""
        after = version.made_at if since is None else since
        if version.snapshot is None or after is None:
            return False
        where = (version.dataset, version.snapshot, version.generation, version.branch)
        return self._walk.makers.set_backs.is_between(*where, (after, until))

    def set_backs_before(self, ref: SnapshotRef, table_format: str | None) -> int:
        """Return how often a snapshot's number had become free when it was read."""
        if table_format not in {None, PAIMON}:
            return 0
        where = (ref.snapshot, ref.generation, ref.branch)
        return self._walk.makers.set_backs.count(ref.dataset, *where, (-1, ref.at))

    def is_left_out(self, dataset: bytes, generation: str | None) -> bool:
        return bool(self.left_out) and self._walk.identities.one(dataset, generation) in self.left_out

    def is_read_left_out(self, read: SnapshotRead) -> bool:
        """Return whether a read that was loaded is of a table that is left out."""
        return read.id in self._reads_left_out

    def reads_of(self, write: bytes) -> Sequence[SnapshotRead]:
        return self._reads.get(write, ())

    def hidden_reads_of(self, write: bytes) -> Collection[LimitReason]:
        """Return why some of what a write was made from isn't shown; empty where all of it is."""
        return self._upward.hidden_reads.get(write, ())

    def write_of(self, write: bytes) -> list[SnapshotWrite] | None:
        """Return the writes of a commit that was met, by the first of them."""
        return self._writes.get(write)

    def writer(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        """Return the writes of the commit that wrote a snapshot that was loaded."""
        found = self._walk.makers.writer(ref)
        if found:
            self._writes[found[0].id] = found
        return found

    def step_to(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        """Return who wrote a snapshot, and load it if it has to be."""
        makers = self._walk.makers
        if makers.near(ref) is None:
            makers.read_back({ref.dataset: ref.at}, _PORTION)
        if makers.near(ref) is None:
            makers.load([ref])
        return self.writer(ref)

    def restored(self, write: Sequence[SnapshotWrite]) -> SnapshotRef | None:
        """Return the snapshot of its own table whose rows a commit gave back, as RESTORE of Delta does, after it was
        loaded; None for other commits."""
        first = write[0]
        if not is_restore(first) or first.commit_id is None:
            return None
        if first.id not in self._restored:
            found = [
                ref
                for read in load_marked_reads(self._walk, [(first.commit_id, first.barrier)])
                if read.hidden is None and not is_range(read) and (ref := snapshot_ref_of(read, first.at)) is not None
            ]
            same = len(found) == len(write) == 1 and self._identity(found[0]) == self._identity(first)
            self._restored[first.id] = found[0] if same else None
            if same:
                self.step_to(found[0])
        return self._restored[first.id]

    def _identity(self, row: SnapshotRef | SnapshotWrite) -> bytes:
        return self._walk.identities.one(row.dataset or b"", row.generation)

    def before(self, write: Sequence[SnapshotWrite]) -> SnapshotRef | None:
        """Return the snapshot that has the same rows as the one that a commit made; None if it changed them."""
        return parent_of(write) if keeps_rows(write) else self.restored(write)

    def precedes(self, one: Version, other: Version, most: int = 500) -> bool | None:
        """Return whether a version is an ancestor of another one; None if the parents that are known don't tell."""
        if one.writer is None or other.writer is None or one.made_at is None:
            return None
        write: Sequence[SnapshotWrite] = self.write_of(other.writer) or ()
        for _ in range(most):
            if not write or write[0].at < one.made_at - SKEW_MICROS:
                return None
            if write[0].id == one.writer:
                return True
            before = parent_of(write)
            write = () if before is None else self.step_to(before)
        return None

    def line(self, ref: SnapshotRef, most: int) -> Iterator[SnapshotRef]:
        """Yield the versions of a table from this one backwards, along its parents: those after which it has other
        rows than before."""
        at: SnapshotRef | None = ref
        for _ in range(most):
            if at is None:
                return
            write = self.step_to(at)
            if not write:
                yield from self._line_of_reads(at, most)
                return
            if not keeps_rows(write):
                yield at
            at = parent_of(write)

    def _line_of_reads(self, ref: SnapshotRef, most: int) -> Iterator[SnapshotRef]:
        """Yield a version without a known writer, and, if none of the table is known, those before that were read."""
        yield ref
        if not self.is_written(ref.dataset):
            following = dropwhile(
                lambda other: other.snapshot != ref.snapshot, self.versions_read(ref.dataset, ref.branch)
            )
            yield from islice(following, 1, most)

    def versions_read(self, dataset: bytes, branch: str | None, snapshot: int | None = None) -> list[SnapshotRef]:
        """Return the versions of a table that any commit read, the newest first."""
        group = list(self._walk.identities.group(dataset))
        found = load_versions_read(self._walk, group, snapshot=snapshot, branch=branch)
        self._versions_read.update({request.ref: request for request in found})
        return [request.ref for request in found]

    def observed(self, ref: SnapshotRef) -> ObservedVersion | None:
        """Return a version that was read and whose writer isn't known."""
        return self._versions_read.get(ref)

    def is_written(self, dataset: bytes) -> bool:
        """Return whether anybody is known who writes a table."""
        if dataset not in self._is_written:
            group = self._walk.identities.group(dataset)
            self._is_written[dataset] = has_writing_job(self._walk.connection, group) or any(
                has_writes(self._walk.connection, key) for key in group
            )
        return self._is_written[dataset]
