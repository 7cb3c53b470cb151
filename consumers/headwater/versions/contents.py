"""Reads from the store what snapshots contain.

What a state contains is what the state before it contains, unless its commit replaced everything, and what its own
commit read. That is computed once for each commit, the oldest first, so that the states of a whole history cost as much
as its newest one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.traversal.context import TraversalContext, is_range, snapshot_ref_of
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite, is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.commit_lines import commits_read, is_parent_unknown, keeps_rows, parent_of, unknown_commit
from headwater.versions.frontiers import FrontierMerger
from headwater.versions.histories import TooNear, VersionHistories
from headwater.versions.model import NOTHING_CONTAINED, Contents, Doubt, Frontier, Pair, TableContents, Version

_CREATES_EMPTY: Final = frozenset({"CREATE", "CreateTable"})
_UNKNOWN_BEGINNING: Final = (
    "it is unknown where the changes began that it was made from: begin the stream anew, with a new checkpoint and a "
    "table that it overwrites"
)
_UNSURE_KINDS: Final = frozenset({"OVERWRITE", "REPLACE", "OTHER", "UNKNOWN"})
DELTA: Final = Format.DELTA.value
"""Its versions are numbered from 0, those of others from 1."""


class _Node(NamedTuple):
    """Something whose contents are computed once."""

    write: bytes
    is_state: bool
    """The whole state after the write, or what its own commit brought."""


class ContentsReader:
    """Computes the contents of snapshots for one question."""

    def __init__(self, walk: TraversalContext) -> None:
        self._walk = walk
        self._computed: dict[_Node, Contents] = {}
        self._versions: dict[tuple[Version, bytes], Version] = {}
        """The versions that references mean, by them and the write that they were found to refer to."""
        self.histories: Final = VersionHistories(walk)
        self.merger: Final = FrontierMerger(self.histories.precedes)

    def state(self, ref: SnapshotRef) -> TableContents:
        """Return a table at a snapshot that was loaded. `TooNear` if it lacks a table that was left out."""
        write = self._writer(ref)
        dataset = self._walk.identities.one(ref.dataset, ref.generation)
        read = self.histories.observed(ref)
        since, form = (None, None) if read is None else (read.first_read, read.format)
        bare = Version(dataset, ref.snapshot, None, ref.generation, ref.branch, None, since, form)
        version = self._version(bare, ref)
        if dataset in self.histories.left_out:
            contents = NOTHING_CONTAINED
        elif not write:
            contents = Contents(doubts=self._unknown(ref))
        else:
            contents = self._compute(_Node(write[0].id, is_state=True))
        missing = self.histories.left_out - contents.ancestors - {dataset}
        if missing:
            raise TooNear(missing)
        return TableContents(version, contents)

    def include(self, tables: Collection[bytes]) -> None:
        """Leave out no more what is behind some tables. All versions have to be loaded again."""
        self._computed.clear()
        self._versions.clear()
        self.histories.include(tables)

    def _writer(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        return self.histories.writer(ref)

    def _writes(self, node: _Node) -> list[SnapshotWrite]:
        found = self.histories.write_of(node.write)
        assert found is not None  # noqa: S101 - nodes are of writes that were met
        return found

    def _compute(self, wanted: _Node) -> Contents:
        """Compute a node after all that it depends on. A commit that reads its own result, which can't be, reads
        nothing."""
        waiting, active = [wanted], set[_Node]()
        while waiting:
            node = waiting[-1]
            if node not in self._computed and node not in active:
                active.add(node)
                needed = (each for each in self._needed_by(node) if each not in active)
                waiting += [each for each in needed if each not in self._computed]
                continue
            waiting.pop()
            if node not in self._computed:
                self._computed[node] = self._state_of(node) if node.is_state else self._own_of(node)
                active.remove(node)
        return self._computed[wanted]

    def _needed_by(self, node: _Node) -> Iterator[_Node]:
        write = self._writes(node)
        if node.is_state:
            yield _Node(node.write, is_state=False)
            before = None if write[0].restarts else parent_of(write)
            if before is not None and (parent := self._writer(before)):
                yield _Node(parent[0].id, is_state=True)
            return
        for each in write:
            for read in self.histories.reads_of(each.id):
                if not self.histories.is_read_left_out(read):
                    yield from self._read_nodes(each, read)

    def _read_nodes(self, write: SnapshotWrite, read: SnapshotRead) -> Iterator[_Node]:
        """Yield whose contents a read brings: a state's, or those of each commit within changes."""
        for each in commits_read(write, read, self._writer):
            yield _Node(each.id, is_state=not is_range(read))

    def _state_of(self, node: _Node) -> Contents:
        write = self._writes(node)
        own = self._computed.get(_Node(node.write, is_state=False), NOTHING_CONTAINED)
        first = write[0]
        if first.restarts:
            return own
        doubts: set[Doubt] = set()
        before, base = parent_of(write), NOTHING_CONTAINED
        if before is None:
            doubts.update(self._missing_beginning(first))
        elif parent := self._writer(before):
            base = self._computed.get(_Node(parent[0].id, is_state=True), NOTHING_CONTAINED)
        else:
            doubts.update(self._unknown(before))
        if first.replaced == "UNKNOWN" and first.kind in _UNSURE_KINDS:
            detail = "it is unknown whether it replaced the whole table"
            doubts.add(Doubt(self._identity(first), LimitReason.UNKNOWN_EFFECT, first.snapshot, detail))
        return self.merger.union((base, own, Contents(doubts=doubts)) if doubts else (base, own))

    def _own_of(self, node: _Node) -> Contents:
        """Return what one commit brought into its table."""
        frontiers: dict[Pair, Frontier] = {}
        doubts: set[Doubt] = set()
        for write in self._writes(node):
            reader = self._identity(write)
            doubts |= self._doubts_of(write)
            for read in self.histories.reads_of(write.id):
                for behind in self._behind(write, read):
                    self.merger.add(frontiers, behind.frontiers.items())
                    doubts.update(behind.doubts)
                if read.dataset is not None:
                    source = self._walk.identities.one(read.dataset, read.generation)
                    if source != reader:
                        self.merger.add(frontiers, [((reader, source), self._frontier(source, write, read))])
        return Contents(frontiers, doubts)

    def _behind(self, write: SnapshotWrite, read: SnapshotRead) -> list[Contents]:
        """Return what was in that which was read. A state, or the first commit within changes, whose writer is unknown
        is a doubt."""
        if self.histories.is_read_left_out(read):
            return []
        found = [self._computed.get(each, NOTHING_CONTAINED) for each in self._read_nodes(write, read)]
        at = unknown_commit(write, read, self._writer)
        return found if at is None else [*found, Contents(doubts=self._unknown(at))]

    def _frontier(self, source: bytes, write: SnapshotWrite, read: SnapshotRead) -> Frontier:
        ref = snapshot_ref_of(read, write.at)
        where = (read.snapshot, read.version, read.generation, read.branch, None, None, read.format)
        version = self._version(Version(source, *where), ref)
        since = self._beginning(read) if is_range(read) else None
        return Frontier(version, read.snapshot, since, has_hole=False, read_at=write.at, job=format_job_key(write.job))

    def _beginning(self, read: SnapshotRead) -> int | None:
        """Return where changes begin; None if nothing was in the table before."""
        if read.since is None:
            return read.snapshot
        if read.since < 0:
            return None
        if read.dataset is None or read.since > 0 or is_unordered(read.format) or read.format is None:
            return read.since
        before = self._writer(SnapshotRef(read.dataset, read.since, read.generation, read.branch))
        is_empty = bool(before) and all(each.kind in _CREATES_EMPTY for each in before)
        return None if read.format != DELTA or is_empty else read.since

    def _version(self, version: Version, ref: SnapshotRef | None) -> Version:
        """Return a version with what is known of its writer, or the one before, if the writer changed no rows."""
        write = [] if ref is None else self._writer(ref)
        if not write:
            return version
        key = (version, write[0].id)
        known = self._versions.get(key)
        if known is None:
            known = self._versions[key] = self._written_version(version, write)
        return known

    def _written_version(self, version: Version, write: list[SnapshotWrite]) -> Version:
        dataset, snapshot, position, *_, form = version
        while write and position is None and keeps_rows(write) and (before := parent_of(write)) is not None:
            snapshot, write = before.snapshot, self._writer(before)
        if not write:
            return version._replace(snapshot=snapshot)
        first = write[0]
        where = (first.generation, first.branch)
        return Version(dataset, snapshot, position, *where, first.id, first.at, first.format or form)

    def _missing_beginning(self, write: SnapshotWrite) -> set[Doubt]:
        if not is_parent_unknown(self._walk.connection, self._walk.identities, write):
            return set()
        return {Doubt(self._identity(write), LimitReason.UNKNOWN_WRITER, write.snapshot, "its parent is unknown")}

    def _identity(self, row: SnapshotWrite) -> bytes:
        assert row.dataset is not None  # noqa: S101 - it was found by its dataset
        return self._walk.identities.one(row.dataset, row.generation)

    def _unknown(self, ref: SnapshotRef) -> set[Doubt]:
        """A snapshot without a known writer is a doubt, unless nothing is known of any writer of that table: then it is
        where lineage begins."""
        if not self.histories.is_written(ref.dataset):
            return set()
        dataset = self._walk.identities.one(ref.dataset, ref.generation)
        return {Doubt(dataset, LimitReason.UNKNOWN_WRITER, ref.snapshot, "its writer is unknown")}

    def _doubts_of(self, write: SnapshotWrite) -> set[Doubt]:
        dataset = self._identity(write)
        if write.hidden:
            return {Doubt(dataset, LimitReason.DELETED, write.snapshot, "its lineage was deleted")}
        if write.made_from == "UNKNOWN":
            detail = "it is unknown which of its commit's inputs it was made from"
            return {Doubt(dataset, LimitReason.UNKNOWN_SOURCES, write.snapshot, detail)}
        found = set()
        for read in self.histories.reads_of(write.id):
            if read.dataset is None and read.opaque is not None:
                detail = f"something was read that Spark doesn't show: {read.opaque}"
                found.add(Doubt(dataset, LimitReason.OPAQUE, write.snapshot, detail))
            if is_range(read) and read.since is None and read.snapshot is not None:
                detail = _UNKNOWN_BEGINNING
                found.add(Doubt(dataset, LimitReason.UNKNOWN_SNAPSHOT, write.snapshot, detail))
            if read.dataset is not None and read.snapshot is None and read.candidates is not None:
                detail = f"which snapshot was read isn't known; it is one of {read.candidates.strip('[]')}"
                found.add(Doubt(dataset, LimitReason.UNKNOWN_SNAPSHOT, write.snapshot, detail))
        return found
